"""Trains one run from one configuration: builds its parts, lets the learner learn, evaluates the outcome."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from hotlap.errors import BridgeError, DivergedError, ProcessLostError, TrainingError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.returns import Returns
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.models.model_file import read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.run_lock import RunLock
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.algorithms.registry import LEARNERS, build_learner
from hotlap.training.callbacks.checkpointing import CheckpointingCallback
from hotlap.training.callbacks.progress import OnProgress, ProgressCallback
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback
from hotlap.training.callbacks.run_metrics import MetricsCallback
from hotlap.training.checkpoint import Checkpoint, CheckpointManager
from hotlap.training.device import find_cuda_problem
from hotlap.training.lap_source import has_time_for_laps
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import FINAL_SEED, PolicyEvaluator
from hotlap.training.results import ExperimentResults, FinalFigures, RunTotals, best_model, make_results
from hotlap.training.run_writer import RunWriter, SilentRunWriter
from hotlap.training.start_model import load_start_model
from hotlap.training.state.run_state import RunState
from hotlap.training.vec_envs.factory import TrainingEnvs
from hotlap.training.vec_envs.finite_check import EnvironmentDivergedError


@dataclass(frozen=True)
class Outcome:
    """How training ended. There are no results where it was stopped, or where its writer is silent.

    `is_saved` says whether a stopped run can resume from where it stopped, `num_unsaved` how many checkpoints and best
    models could not be written.
    """

    step: int
    results: ExperimentResults | None
    is_saved: bool = True
    num_unsaved: int = 0
    is_stopped: bool = False


class Trainer:
    """Trains one run. `stop()` may be called from a signal handler: the run saves and ends.

    `callbacks` are called after the run's own. `writer` writes the run's files; it is a `RunWriter` unless given.
    Where several `processes` train the run, the leader alone writes, evaluates and reports progress.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        on_progress: OnProgress | None = None,
        callbacks: Sequence[BaseCallback] = (),
        writer: RunWriter | None = None,
        processes: Processes = ALONE,
    ) -> None:
        self.config = config
        self.folder = folder
        self.checkpoints = CheckpointManager(folder.path, config.checkpoint)
        self.lock = RunLock(folder.path)  # held while training; a caller that prepares the folder acquires it before
        self.on_progress = on_progress
        self.callbacks = tuple(callbacks)
        self.processes = processes
        own_writer = RunWriter if processes.is_leader else SilentRunWriter
        self.writer = writer if writer is not None else own_writer(config, folder)
        self.optimal_lap_s: float | None = None  # known once training has started
        self._checkpointing: CheckpointingCallback | None = None
        self._is_stop_requested = False

    def stop(self) -> None:
        """Ask the run to save and end."""
        self._is_stop_requested = True
        if self._checkpointing is not None:
            self._checkpointing.is_stop_requested = True

    def run(self, checkpoint: Checkpoint | None = None, on_ready: Callable[[], object] | None = None) -> Outcome:
        """Train from the start, or from a checkpoint, to the end of the step budget or until stopped.

        `on_ready` is called when environments and learner are built and nothing has been written yet; what cannot be
        built raises before. With several processes it waits for all of them, and only the leader calls it. The run's
        folder is locked until this returns.
        """
        problem = find_cuda_problem() if self.config.device == "cuda" else None
        if problem:
            raise TrainingError(f"--device cuda: {problem}")
        # Before anything is drawn: a run is a function of its configuration.
        set_random_seed(self.config.seed, using_cuda=self.config.device == "cuda")
        self._prepare_processes()
        envs = TrainingEnvs(self.config, self.processes)
        try:
            if self.config.is_racer:
                warm_up()  # numba sets the number of torch's threads too when it starts its own, so this comes first
            torch.set_num_threads(self.config.torch_threads)
            session = _Session(self, envs, checkpoint)
            self._checkpointing = session.checkpointing
            self.optimal_lap_s = session.evaluator.optimal_lap_s
            session.checkpointing.is_stop_requested = self._is_stop_requested
            self.processes.wait()
            if on_ready is not None and self.processes.is_leader:
                on_ready()
            if not self.writer.is_silent:
                self.lock.acquire()
            return session.run()
        finally:
            self._checkpointing = None
            envs.close()
            self.lock.release()

    def _prepare_processes(self) -> None:
        if not self.processes.is_alone and (not self.config.is_racer or self.config.is_remote):
            raise TrainingError(
                f"{self.config.env}: several processes train only our cars in this process. Start it without torchrun."
            )
        if self.config.device == "cuda":
            self.processes.use_gpu()


class _Session:
    """One process's part of a run, from its start or from a checkpoint. Making one writes nothing."""

    def __init__(self, trainer: Trainer, envs: TrainingEnvs, checkpoint: Checkpoint | None) -> None:
        self._trainer, self._config, self._writer = trainer, trainer.config, trainer.writer
        self._envs, self._checkpoint = envs, checkpoint
        config = self._config
        self._is_racer = config.is_racer
        self._learner = build_learner(config, envs.env, trainer.processes)
        self._learner.set_logger(Logger(None, []))
        self.evaluator = PolicyEvaluator(config, make_card(config, envs.env, 0, ""))
        has_laps = not self._is_racer or has_time_for_laps(config.racer)
        self._racer_metrics = RacerMetricsCallback(
            optimal_lap_s=self.evaluator.optimal_lap_s,
            first_lap_is_flying=config.racer.settings().episode.start != "line",
        )
        self._state = RunState(config, self._learner, envs, self._racer_metrics, self._writer)
        # Where several processes train, each takes part in what the leader's evaluations decide.
        is_evaluated = not (self._writer.is_silent and trainer.processes.is_alone)
        self.checkpointing = CheckpointingCallback(
            self._state,
            self._writer,
            self.evaluator,
            checkpoint_interval=config.checkpoint.interval,
            evaluation_interval=config.evaluation.interval if is_evaluated else 0,
            curve_interval=config.evaluation.curve_interval if is_evaluated else 0,
            logs_laps=not has_laps,
        )
        if checkpoint is not None:
            self._state.restore(checkpoint, self.checkpointing)
        else:
            load_start_model(config, self._learner)
        self._racer_metrics.logs_laps = not self.checkpointing.logs_laps

    def run(self) -> Outcome:
        """Learn, then evaluate the final model and write the results."""
        self._trainer.processes.explain_loss = self._lost
        try:
            return self._run()
        except BridgeError as error:
            raise self._bridge_lost(str(error)) from None

    def _run(self) -> Outcome:
        learner = self._learner
        try:
            self._writer.open(self._envs.env, self._checkpoint)
            learner.logger.output_formats.extend(self._writer.log_outputs)
            learner.learn(
                self._config.steps - learner.num_timesteps,
                callback=self._callbacks(),
                log_interval=LEARNERS[self._config.algo].log_interval,
                reset_num_timesteps=self._checkpoint is None,
            )
        except ProcessLostError as error:
            raise self._lost(str(error)) from None
        except DivergedError as error:
            # The learner counts a step once it has its results.
            uncounted = learner.total_envs if isinstance(error, EnvironmentDivergedError) else 0
            raise self._diverged(str(error), uncounted) from None
        except (ValueError, RuntimeError):
            # Torch refuses a distribution with NaN parameters, and the cars refuse NaN actions.
            self._refuse_not_finite_weights()
            raise
        finally:
            learner.release_graphs()
            self._writer.close()
        checkpointing = self.checkpointing
        if checkpointing.is_stopped:
            return Outcome(learner.num_timesteps, None, checkpointing.is_saved, checkpointing.num_unsaved, True)
        results = None if self._writer.is_silent and self._trainer.processes.is_alone else self._finish()
        return Outcome(learner.num_timesteps, results, num_unsaved=checkpointing.num_unsaved)

    def _refuse_not_finite_weights(self) -> None:
        for name, weights in self._learner.policy.state_dict().items():
            if not bool(torch.isfinite(weights).all()):
                raise self._diverged(f"policy {name!r} holds NaN or infinity") from None

    def _lost(self, cause: str) -> ProcessLostError:
        """The error with the checkpoint to resume from; the leader first saves the state before this rollout."""
        path, processes = self._trainer.folder.path, self._trainer.processes
        if processes.is_leader:
            self.checkpointing.save_boundary()
        names = self._trainer.checkpoints.names()
        remedy = (
            f"{names[-1]} is intact: {processes.resume_command} {path}"
            if names
            else "There is no checkpoint yet: start again"
        )
        return ProcessLostError(
            f"{path}: {cause}, so training stopped at step {self._learner.num_timesteps}. {remedy}."
        )

    def _bridge_lost(self, cause: str) -> TrainingError:
        """The error with the checkpoint to resume from, which holds the state before this rollout."""
        path = self._trainer.folder.path
        self.checkpointing.save_boundary()
        names = self._trainer.checkpoints.names()
        remedy = (
            f"{names[-1]} is intact: {self._trainer.processes.resume_command} {path} --bridge-url URL"
            if names
            else "There is no checkpoint yet: start again"
        )
        step = self._learner.num_timesteps
        return TrainingError(f"{path}: {cause.rstrip('.')}, so training stopped at step {step}. {remedy}.")

    def _diverged(self, cause: str, uncounted: int = 0) -> DivergedError:
        """The error with the step and the checkpoint to resume from."""
        names = self._trainer.checkpoints.names()
        path = self._trainer.folder.path
        remedy = (
            f"{names[-1]} is intact: mend the cause, then: {self._trainer.processes.resume_command} {path}"
            if names
            else "There is no checkpoint yet: mend the cause and start again"
        )
        step = self._learner.num_timesteps + uncounted
        return DivergedError(f"{path}: {cause} at step {step}, so training stopped. {remedy}.")

    def _callbacks(self) -> CallbackList:
        found: list[BaseCallback] = [self._racer_metrics] if self._is_racer else []
        found += [MetricsCallback(self._writer.collector), self.checkpointing]
        if self._trainer.on_progress is not None:
            found.append(
                ProgressCallback(
                    self._trainer.on_progress, self._config.steps, lambda: self._writer.collector.latest_racer
                )
            )
        return CallbackList([*found, *self._trainer.callbacks])

    def _finish(self) -> ExperimentResults | None:
        trained_s = self._state.trained_s
        final = self._state.capture(self.checkpointing, with_replay=False)
        try:
            final.refuse_not_finite()
        except DivergedError as error:
            raise self._diverged(str(error)) from None
        if self._writer.is_silent:
            return None
        card = self._writer.save_final(final)
        folder, evaluator, episodes = self._trainer.folder, self.evaluator, self._config.evaluation.final_episodes
        # Over episodes not used for selection, which would flatter the model that was selected.
        returns = evaluator.evaluate_returns(evaluator.live_policy(self._learner), episodes, FINAL_SEED)
        laps = evaluator.evaluate_file(folder.chosen, episodes) if self._is_racer else None
        best = self._evaluate_best(laps) if folder.best.exists() else None
        totals = RunTotals(self._state.started_s, time.time(), trained_s, self._writer.collector.num_episodes)
        results = make_results(folder, self._config, card, totals, FinalFigures(returns, laps, best))
        self._writer.save_results(results)
        return results

    def _evaluate_best(self, laps: Evaluation | None) -> dict[str, Any]:
        """The figures of the best model; `laps` are its own, where this is the racer."""
        model = read_model(self._trainer.folder.best)
        found: Evaluation | Returns | None = laps
        if found is None:
            policy = LearnedPolicy.from_file(model, *model.card.spaces)
            found = self.evaluator.evaluate_returns(policy, self._config.evaluation.final_episodes, FINAL_SEED)
        return best_model(model, self._config, found)

"""Trains one run from one configuration: collect, update, log, evaluate, save, until the step budget is used up.

From recipe to checkpoint: `resolve_config` (`runs/recipe.py`) makes the `RunConfig`, `build_learner` the learner with
its cars, and `Trainer.run` a `_Session`, whose `_learn` is the loop. Before each rollout `Checkpointing` decides what
is due. It takes a `Snapshot` of the run from `RunState` and gives it to `RunWriter`, which writes the file.

A state can be saved only between two rollouts. So `Checkpointing` keeps a copy of the state from before each rollout,
where one may be needed: a checkpoint that is due, or a stop, within a rollout saves that copy, and the resumed run
collects the rollout again, bit for bit. Such a state is the learner's `state_dict`, of the cars of all processes, and
the counts of log, metrics and checkpointing (`RunState`). Several processes agree on a stop between two rollouts.

The racer is our own simulator, in this process or remote, behind a bridge. Everything else is a Gymnasium environment.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotlap.errors import BridgeError, DivergedError, EnvironmentDivergedError, ProcessLostError, TrainingError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.returns import Returns
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.events import StepEvents
from hotlap.models.model_file import read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.run_lock import RunLock
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.checkpoint import Checkpoint, CheckpointManager
from hotlap.training.checkpointing import Checkpointing
from hotlap.training.device import find_cuda_problem
from hotlap.training.lap_source import has_time_for_laps
from hotlap.training.learners import Learner, build_learner, policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import FINAL_SEED, PolicyEvaluator
from hotlap.training.progress import OnProgress, ProgressReporter
from hotlap.training.results import ExperimentResults, FinishedRun, best_model, make_results
from hotlap.training.run_log import RunLog
from hotlap.training.run_state import RunState
from hotlap.training.run_writer import RunWriter, SilentRunWriter
from hotlap.training.start_model import load_start_model

# An off-policy algorithm's rollouts last a few steps: it logs when this many episodes have ended.
EPISODES_PER_LOG = 4


@dataclass(frozen=True)
class Outcome:
    """How training ended. There are no results where it was stopped or an observer ended it, or with a silent writer.

    `is_saved` says whether a stopped run can resume from the rollout it was stopped in, `num_unsaved` how many
    checkpoints and best models could not be written.
    """

    step: int
    results: ExperimentResults | None
    is_saved: bool = True
    num_unsaved: int = 0
    is_stopped: bool = False


class Observer:
    """Follows a run; a subclass overrides what it needs. It must not change the learner."""

    def on_rollout_start(self, learner: Learner) -> None:
        """Called before each rollout, when evaluations and checkpoints that were due are done."""

    def on_step(self, events: StepEvents) -> bool:
        """Called after each step of all environments; False ends the run at once: nothing is saved."""
        return True


class Trainer:
    """Trains one run. `stop()` may be called from a signal handler.

    The run then saves the state from before this rollout and ends after the current step, or, where a rollout cannot be
    stopped halfway, after it. `writer` writes the run's files; unless given, it is a `RunWriter` in the leader of the
    `processes` that train the run, with these `loggers`, and a silent one in the others. The leader alone evaluates and
    reports progress.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        on_progress: OnProgress | None = None,
        observers: Sequence[Observer] = (),
        writer: RunWriter | None = None,
        processes: Processes = ALONE,
        loggers: Sequence[str] = (),
    ) -> None:
        self.config = config
        self.folder = folder
        self.checkpoints = CheckpointManager(folder.path, config.checkpoint)
        # Held while training; a caller that prepares the folder may hold it already.
        self.lock = RunLock(folder.path)
        self.on_progress = on_progress
        self.observers = tuple(observers)
        self.processes = processes
        own_writer = RunWriter if processes.is_leader else SilentRunWriter
        self.writer = writer if writer is not None else own_writer(config, folder, loggers)
        self.optimal_lap_s: float | None = None  # known when `on_ready` is called
        self._checkpointing: Checkpointing | None = None
        self._is_stop_requested = False

    def stop(self) -> None:
        """Ask the run to save and end."""
        self._is_stop_requested = True
        if self._checkpointing is not None:
            self._checkpointing.is_stop_requested = True

    def run(self, checkpoint: Checkpoint | None = None, on_ready: Callable[[], object] | None = None) -> Outcome:
        """Train from the start, or from a checkpoint, to the end of the step budget or until stopped.

        `on_ready` is called when environments and learner are built and nothing has been written yet; where building
        fails, it is not. With several processes it waits for all of them, and only the leader calls it. The run's
        folder is locked until this returns.
        """
        self._prepare()
        next_road = checkpoint.snapshot.next_road if checkpoint is not None else None
        learner = build_learner(self.config, self.processes, next_road)
        try:
            session = _Session(self, learner, checkpoint)
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
            learner.close()
            self.lock.release()

    def _prepare(self) -> None:
        """Refuse what cannot run here, and set the threads."""
        config = self.config
        problem = find_cuda_problem() if config.device == "cuda" else None
        if problem:
            raise TrainingError(f"--device cuda: {problem}")
        if not self.processes.is_alone and (not config.is_racer or config.is_remote):
            raise TrainingError(
                f"{config.env}: several processes train only our cars, and not behind a bridge. Start it without "
                "torchrun."
            )
        if config.device == "cuda":
            self.processes.use_gpu()
        if config.is_racer:
            warm_up()  # numba sets the number of torch's threads too when it starts its own, so this comes first
        torch.set_num_threads(config.torch_threads)


class _Session:
    """One process's part of a run, from its start or from a checkpoint. Making one writes nothing."""

    def __init__(self, trainer: Trainer, learner: Learner, checkpoint: Checkpoint | None) -> None:
        self._trainer, self._config, self._writer = trainer, trainer.config, trainer.writer
        self._learner, self._checkpoint = learner, checkpoint
        config = self._config
        self._spaces = policy_spaces(config, learner)
        self.evaluator = PolicyEvaluator(config, make_card(config, self._spaces))
        self._log = RunLog(
            config.num_envs,
            # The optimal lap is that of the standard car, which evaluations have, too.
            optimal_lap_s=self.evaluator.optimal_lap_s if config.racer.domain.is_standard else None,
            first_lap_is_flying=config.racer.settings().episode.start != "line",
        )
        self._state = RunState(config, learner, self._log, self._writer)
        self.checkpointing = Checkpointing(
            learner,
            self._state,
            self._writer,
            self.evaluator,
            checkpoint_interval=config.checkpoint.interval,
            evaluation_interval=config.evaluation.interval,
            curve_interval=config.evaluation.curve_interval,
            # Where training episodes are too short for a lap, evaluations log the figures `racer/*` instead.
            logs_laps=config.is_racer and not has_time_for_laps(config.racer),
        )
        if checkpoint is not None:
            self._state.restore(checkpoint, self.checkpointing)
        else:
            load_start_model(config, learner)
        self._log.logs_laps = not self.checkpointing.logs_laps
        self._progress = ProgressReporter(
            trainer.on_progress,
            config.steps,
            lambda: self._log.mean_return,
            lambda: self._writer.collector.latest_racer,
        )

    # --- the loop ---

    def run(self) -> Outcome:
        """Learn, then evaluate the final model and write the results."""
        learner, checkpointing = self._learner, self.checkpointing
        self._trainer.processes.explain_loss = self._process_lost  # called where this one waits for it in vain
        try:
            self._writer.open(self._spaces, self._checkpoint)
            is_complete = self._learn()
        except ProcessLostError as error:
            raise self._process_lost(str(error)) from None
        except BridgeError as error:
            raise self._bridge_lost(str(error)) from None
        except DivergedError as error:
            # A step of the environments that failed is not counted yet.
            uncounted = learner.total_envs if isinstance(error, EnvironmentDivergedError) else 0
            raise self._diverged(str(error), uncounted) from None
        except (ValueError, RuntimeError):
            # Torch refuses a distribution with NaN parameters, and the cars refuse NaN actions.
            self._raise_if_weights_are_not_finite()
            raise
        finally:
            self._writer.close()  # the journal and the log; models and results are written at once
        num_unsaved = checkpointing.num_unsaved
        if is_complete:
            return Outcome(learner.num_timesteps, self._finish(), num_unsaved=num_unsaved)
        return Outcome(learner.num_timesteps, None, checkpointing.is_saved, num_unsaved, checkpointing.is_stopped)

    def _learn(self) -> bool:
        """Collect, update, log, evaluate and save, to the end of the step budget; False if it was stopped before."""
        learner, checkpointing, collector = self._learner, self.checkpointing, self._writer.collector
        checkpointing.begin_training()
        self._log.begin(learner.num_timesteps)
        self._progress.begin(learner.num_timesteps)
        while learner.num_timesteps < self._config.steps:
            checkpointing.begin_rollout()  # evaluates and saves where that is due
            for observer in self._trainer.observers:
                observer.on_rollout_start(learner)
            if not learner.collect(self._note_step):
                return False
            loss = self._log.add_update(learner.update())
            if loss is not None:  # none before an off-policy algorithm starts to learn
                collector.note_loss(loss)
            is_on_policy = not learner.replay_bytes
            if is_on_policy or self._log.num_new_episodes >= EPISODES_PER_LOG:
                self._log.dump(learner.num_timesteps, self._writer.log_outputs)
        checkpointing.end_training()
        collector.flush()
        self._progress.end(learner.num_timesteps)
        return True

    def _note_step(self, events: StepEvents) -> bool:
        """Give a step of the rollout to log, metrics, checkpointing, progress and observers; False ends the rollout."""
        collector = self._writer.collector
        self._log.add_step(events)
        for episode_return, length in events.episodes():
            collector.note_episode(episode_return, length)
        collector.note_step(events.num_timesteps)
        goes_on = self.checkpointing.note_step()
        self._progress.note(events.num_timesteps)
        # All of them are told, whatever the first says.
        return all([goes_on, *(observer.on_step(events) for observer in self._trainer.observers)])

    def _finish(self) -> ExperimentResults | None:
        """Save and evaluate the final model, and write the results. All processes capture; the leader goes on."""
        trained_s = self._state.trained_s  # without the evaluations below
        final = self._state.capture(self.checkpointing, with_replay=False)
        try:
            final.refuse_not_finite()
        except DivergedError as error:
            raise self._diverged(str(error)) from None
        if self._writer.is_silent:
            return None
        card = self._writer.save_final(final)
        folder, evaluator, episodes = self._trainer.folder, self.evaluator, self._config.evaluation.final_episodes
        # Over new episodes: those used for selection would flatter the model that was selected. The returns are those
        # of the final model, the laps those of the best one, or of the final one where there is no best.
        policy = evaluator.learned_policy(self._learner.policy())
        returns = evaluator.evaluate_returns(policy, episodes, FINAL_SEED)
        laps = evaluator.evaluate_file(folder.chosen, episodes) if self._config.is_racer else None
        best = self._evaluate_best(laps) if folder.best.exists() else None
        num_episodes = self._writer.collector.num_episodes
        run = FinishedRun(self._state.started_s, time.time(), trained_s, num_episodes, returns, laps, best)
        results = make_results(folder, self._config, card, run)
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

    # --- errors, with the checkpoint to resume from ---

    def _raise_if_weights_are_not_finite(self) -> None:
        for name, weights in self._learner.policy().weights.items():
            if not np.isfinite(weights).all():
                raise self._diverged(f"policy {name!r} holds NaN or infinity") from None

    def _process_lost(self, cause: str) -> ProcessLostError:
        """The error where another process is gone; the leader first saves the state from before this rollout."""
        if self._trainer.processes.is_leader:
            self.checkpointing.save_boundary()
        remedy = self._remedy("is intact:", "start again")
        return ProcessLostError(self._message(f"{cause}, so training stopped at step {self._step}. {remedy}."))

    def _bridge_lost(self, cause: str) -> TrainingError:
        """The error where the bridge is gone; the state from before this rollout is saved first."""
        self.checkpointing.save_boundary()
        remedy = self._remedy("is intact:", "start again", " --bridge-url URL")
        return TrainingError(self._message(f"{cause.rstrip('.')}, so training stopped at step {self._step}. {remedy}."))

    def _diverged(self, cause: str, uncounted: int = 0) -> DivergedError:
        remedy = self._remedy("is intact: mend the cause, then:", "mend the cause and start again")
        return DivergedError(self._message(f"{cause} at step {self._step + uncounted}, so training stopped. {remedy}."))

    @property
    def _step(self) -> int:
        return self._learner.num_timesteps

    def _message(self, text: str) -> str:
        return f"{self._trainer.folder.path}: {text}"

    def _remedy(self, what: str, otherwise: str, options: str = "") -> str:
        """`checkpoint_80.zip is intact: hotlap resume FOLDER`, or what to do without a checkpoint."""
        names = self._trainer.checkpoints.names()
        if not names:
            return f"There is no checkpoint yet: {otherwise}"
        command = f"{self._trainer.processes.resume_command} {self._trainer.folder.path}{options}"
        return f"{names[-1]} {what} {command}"

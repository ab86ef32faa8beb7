"""One training run from one configuration: built, trained, kept safe, evaluated and written down."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from hotlap.errors import ModelError, StateError, TrainingError
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import POLICY_GROUP, card_of, refuse_foreign
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.algorithms.learners import build_model
from hotlap.training.callbacks.checkpointing import CheckpointCallback
from hotlap.training.callbacks.progress import OnProgress, ProgressCallback
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback
from hotlap.training.callbacks.run_metrics import MetricsCallback
from hotlap.training.checkpoint import Checkpoint, CheckpointManager, save_snapshot
from hotlap.training.metrics_collector import MetricsCollector
from hotlap.training.policy_evaluation import PolicyEvaluator, PolicyScore, live_policy
from hotlap.training.results import ExperimentResults
from hotlap.training.run_config import RunConfig
from hotlap.training.run_files.run_folder import RunFolder
from hotlap.training.run_files.summary import Course, make_card, make_results
from hotlap.training.run_files.tensorboard_files import EventWriter, drop_events_after
from hotlap.training.state.snapshot import Snapshot, capture, restore, restore_generators, undisturbed
from hotlap.training.vec_envs.factory import TrainingEnvs, in_process

# Off-policy algorithms write their log after so many episodes; the others after each rollout.
EPISODES_A_LOG = 4


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with results, or stopped; `is_saved` says whether what was stopped can go on from there."""

    step: int
    results: ExperimentResults | None
    is_saved: bool = True


class Trainer:
    """Trains one run. `stop()` may be called from a signal handler: the run saves and ends.

    `callbacks` are called after the run's own.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        on_progress: OnProgress | None = None,
        callbacks: Sequence[BaseCallback] = (),
    ) -> None:
        self.config = config
        self.folder = folder
        self.checkpoints = CheckpointManager(folder.path, config.checkpoint)
        self.on_progress = on_progress
        self.callbacks = tuple(callbacks)
        self.optimal_lap_s: float | None = None  # known once the run has begun
        self._keeper: CheckpointCallback | None = None
        self._is_stop_asked = False

    def stop(self) -> None:
        """Ask the run to save and end."""
        self._is_stop_asked = True
        if self._keeper is not None:
            self._keeper.is_stop_asked = True

    def run(self, checkpoint: Checkpoint | None = None, on_ready: Callable[[], object] | None = None) -> Outcome:
        """Train from the beginning, or on from a checkpoint, to the end of the budget or until stopped.

        `on_ready` is called when worlds and learner stand and nothing has been written yet: what cannot be made is
        refused before.
        """
        if self.config.device == "cuda" and not torch.cuda.is_available():
            raise TrainingError("--device cuda: torch finds no CUDA here. Use --device cpu.")
        # Before anything random exists: a run is a function of its configuration.
        set_random_seed(self.config.seed, using_cuda=self.config.device == "cuda")
        worlds = TrainingEnvs(self.config)
        try:
            if in_process(self.config).is_racer:
                warm_up()  # as its threads start, numba sets the number of torch's too, so that comes after
            torch.set_num_threads(self.config.torch_threads)
            session = _Session(self, worlds, checkpoint)
            self._keeper = session.keeper
            self.optimal_lap_s = session.judge.optimal_lap_s
            session.keeper.is_stop_asked = self._is_stop_asked
            if on_ready is not None:
                on_ready()
            return session.run()
        finally:
            self._keeper = None
            worlds.close()


class _Session:
    """One go at a run, from its beginning or from a checkpoint; making one writes nothing."""

    def __init__(self, trainer: Trainer, worlds: TrainingEnvs, checkpoint: Checkpoint | None) -> None:
        self.trainer, self.config, self.folder = trainer, trainer.config, trainer.folder
        self.worlds = worlds
        self.checkpoint = checkpoint
        self.first_began_s = time.time()
        self.began_s = time.monotonic()
        self.spent_before_s = 0.0
        local = in_process(self.config)
        self.is_racer = local.is_racer
        self.model = build_model(self.config, worlds.env)
        self.logger = Logger(None, [])
        self.model.set_logger(self.logger)
        self.judge = PolicyEvaluator(self.config, make_card(self.config, worlds.env, 0, ""))
        self.racer = RacerMetricsCallback(
            optimal_lap_s=self.judge.optimal_lap_s,
            first_lap_is_flying=local.racer.settings().episode.start == "random",
        )
        self.keeper = CheckpointCallback(
            trainer.checkpoints,
            self._capture,
            self._write_checkpoint,
            self._judge_now,
            lambda: self._write_model(self.folder.best),
            self.config.evaluation.interval,
        )
        if checkpoint is not None:
            self._restore(checkpoint)

    # --- the course of a run ---

    def run(self) -> Outcome:
        """Learn, then write down what came of it."""
        self.collector = self._make_collector()
        try:
            self._clean_up_after_others()
            self.events = EventWriter(self.folder.tensorboard)
            self.logger.output_formats.append(self.events)
            is_resumed = self.checkpoint is not None
            self.model.learn(
                self.config.steps - self.model.num_timesteps,
                callback=self._callbacks(),
                log_interval=EPISODES_A_LOG if self.config.algo == "sac" else 1,
                reset_num_timesteps=not is_resumed,
            )
        finally:
            self.collector.close()
            self.logger.close()
        if self.keeper.is_stopped:
            return Outcome(self.model.num_timesteps, None, self.keeper.is_saved)
        return Outcome(self.model.num_timesteps, self._finish())

    def _make_collector(self) -> MetricsCollector:
        config, journal = self.config, self.folder.journal
        if self.checkpoint is not None:
            return MetricsCollector.resume(journal, self.checkpoint.snapshot.plain["books"]["metrics"])
        return MetricsCollector(
            config.experiment_id, config.algo, config.env, config.seed, config.recording_interval, journal
        )

    def _clean_up_after_others(self) -> None:
        """Remove what a run that was killed had logged past the checkpoint, and its half-written files."""
        drop_events_after(self.folder.tensorboard, self.checkpoint.snapshot.step if self.checkpoint else -1)
        for draft in self.folder.path.glob(".*.zip.*.partial"):
            draft.unlink(missing_ok=True)

    def _callbacks(self) -> CallbackList:
        found: list[BaseCallback] = [self.racer] if self.is_racer else []
        found += [MetricsCallback(self.collector), self.keeper]
        if self.trainer.on_progress is not None:
            found.append(ProgressCallback(self.trainer.on_progress, self.config.steps, self.judge.optimal_lap_s))
        return CallbackList([*found, *self.trainer.callbacks])

    def _finish(self) -> ExperimentResults:
        """Write the final model, the metrics and, last, the results, which are what makes a run finished."""
        trained_s = self._spent_s()
        digest = self._write_model(self.folder.model)
        self.collector.metrics().save(self.folder.metrics)
        episodes = self.config.evaluation.final_episodes
        policy = live_policy(self.model, make_card(self.config, self.worlds.env, self.model.num_timesteps, digest))
        returns = self.judge.evaluate_returns(policy, episodes)
        laps = self.judge.evaluate_file(self.folder.chosen, episodes) if self.is_racer else None
        course = Course(
            self.first_began_s,
            time.time(),
            trained_s,
            self.model.num_timesteps,
            self.collector.num_episodes,
            digest,
        )
        files = (self.folder.model, self.trainer.checkpoints.names())
        results = make_results(self.config, self.worlds.env, course, files, returns, laps)
        results.save(self.folder.results)
        return results

    def _spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.began_s

    def _judge_now(self) -> PolicyScore:
        policy = live_policy(self.model, make_card(self.config, self.worlds.env, self.model.num_timesteps, ""))
        with undisturbed(self.model):
            return self.judge.judge(policy, self.config.evaluation.episodes)

    # --- state ---

    def _capture(self, *, with_replay: bool = True) -> Snapshot:
        books = {
            # Not waiting for the disk: most boundaries are forgotten unsaved.
            "metrics": self.collector.get_state(flush=False),
            "racer": self.racer.get_state(),
            "keeper": self.keeper.get_state(),
            "spent_s": self._spent_s(),
            "first_began_s": self.first_began_s,
        }
        return capture(self.model, self.worlds.capture(), books, with_replay=with_replay)

    def _write_checkpoint(self, snapshot: Snapshot, step: int) -> None:
        # A checkpoint counts on the points and events before it: the resumed run does not make them again.
        self.collector.flush(to_disk=True)
        self.events.flush(to_disk=True)
        card = make_card(self.config, self.worlds.env, snapshot.step, tensors_digest(snapshot.groups[POLICY_GROUP]))
        self.trainer.checkpoints.save(snapshot, card.as_plain(), step)

    def _write_model(self, path: Path) -> str:
        """Save the policy as it is now, with all that belongs to it but the replay buffer; its weights' digest."""
        snapshot = self._capture(with_replay=False)
        digest = tensors_digest(snapshot.groups[POLICY_GROUP])
        card = make_card(self.config, self.worlds.env, snapshot.step, digest)
        save_snapshot(path, snapshot, card.as_plain(), snapshot.step)
        return digest

    def _restore(self, checkpoint: Checkpoint) -> None:
        refuse_foreign(card_of({"card": checkpoint.card}, checkpoint.path), checkpoint.path)
        if checkpoint.card["config_digest"] != self.config.digest():
            raise ModelError(
                f"{checkpoint.path}: was written under another configuration than {self.folder.config} has now. "
                "Put that file back as it was, or begin a new run."
            )
        try:
            worlds, books = restore(self.model, checkpoint.snapshot)
            self.keeper.set_state(books["keeper"])
            self.spent_before_s, self.first_began_s = float(books["spent_s"]), float(books["first_began_s"])
            if self.worlds.restore(worlds):
                self.racer.set_state(books["racer"])
            else:
                self._begin_episodes(checkpoint.snapshot.step)
            restore_generators(self.model, checkpoint.snapshot)
        except (StateError, KeyError) as error:
            raise StateError(f"{checkpoint.path}: cannot be gone on from: {error}") from None

    def _begin_episodes(self, step: int) -> None:
        """Start anew everywhere, with other seeds than those the run began with."""
        env: Any = self.model.env
        normalizer = self.model.get_vec_normalize_env()
        env.seed(self.config.seed + step)
        self.model._last_obs = env.reset()
        self.model._last_episode_starts = np.ones(env.num_envs, np.bool_)
        if normalizer is not None:
            self.model._last_original_obs = normalizer.get_original_obs()

"""One training run from one configuration: built, trained, kept safe, evaluated and written down."""

import logging
import platform
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import set_random_seed

from hotlap.archive import tensors_digest
from hotlap.config import as_plain
from hotlap.drivers.learned import policy_kind
from hotlap.drivers.model_files import POLICY_GROUP, ModelCard
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.errors import ModelError, TrainingError
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.algorithms import build_model
from hotlap.training.callbacks import MetricsCallback, RacerMetricsCallback
from hotlap.training.checkpoint import Checkpoint, CheckpointManager, save_snapshot
from hotlap.training.documents import utc_text
from hotlap.training.events import drop_events_after
from hotlap.training.judging import Judge, Judgement, live_policy
from hotlap.training.keeper import RunKeeper
from hotlap.training.metrics_collector import MetricsCollector
from hotlap.training.progress import OnProgress, ProgressCallback
from hotlap.training.results import (
    ExperimentResults,
    FinalMetrics,
    ModelSummary,
    RunMetadata,
    is_converged,
    provenance,
)
from hotlap.training.returns import reward_threshold
from hotlap.training.run_config import RunConfig
from hotlap.training.run_folder import RunFolder
from hotlap.training.snapshot import Snapshot, capture, restore
from hotlap.training.worlds import Worlds

# Off-policy algorithms write their log after so many episodes; the others after each rollout.
EPISODES_A_LOG = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with results, or stopped and saved."""

    step: int
    results: ExperimentResults | None


class Trainer:
    """Trains one run. `stop()` may be called from a signal handler: the run saves and ends."""

    def __init__(self, config: RunConfig, folder: RunFolder, on_progress: OnProgress | None = None) -> None:
        self.config = config
        self.folder = folder
        self.checkpoints = CheckpointManager(folder.path, config.checkpoint)
        self.on_progress = on_progress
        self.optimal_lap_s: float | None = None  # known once the run has begun
        self._keeper: RunKeeper | None = None
        self._is_stop_asked = False

    def stop(self) -> None:
        """Ask the run to save and end."""
        self._is_stop_asked = True
        if self._keeper is not None:
            self._keeper.is_stop_asked = True

    def run(self, checkpoint: Checkpoint | None = None) -> Outcome:
        """Train from the beginning, or on from a checkpoint, to the end of the budget or until stopped."""
        torch.set_num_threads(self.config.torch_threads)
        # Before anything random exists: a run is a function of its configuration.
        set_random_seed(self.config.seed, using_cuda=self.config.device == "cuda")
        worlds = Worlds(self.config)
        try:
            return _Session(self, worlds, checkpoint).run()
        finally:
            worlds.close()


class _Session:
    """One go at a run, from its beginning or from a checkpoint."""

    def __init__(self, trainer: Trainer, worlds: Worlds, checkpoint: Checkpoint | None) -> None:
        self.trainer, self.config, self.folder = trainer, trainer.config, trainer.folder
        self.worlds = worlds
        self.checkpoint = checkpoint
        self.began_s = time.time()
        self.first_began_s = self.began_s
        self.spent_before_s = 0.0
        if self.config.device == "cuda" and not torch.cuda.is_available():
            raise TrainingError("--device cuda: torch finds no CUDA here. Use --device cpu.")
        self.model: BaseAlgorithm = build_model(self.config, worlds.env)
        self.judge = Judge(self.config, self._card(0, ""))
        trainer.optimal_lap_s = self.judge.optimal_lap_s
        if checkpoint is not None:
            drop_events_after(self.folder.tensorboard, checkpoint.snapshot.step)
        self.model.set_logger(configure(str(self.folder.tensorboard), ["tensorboard"]))
        self.collector = self._make_collector()
        self.racer = RacerMetricsCallback(
            optimal_lap_s=self.judge.optimal_lap_s,
            first_lap_is_flying=self.config.world.settings().episode.start == "random",
        )
        self.keeper = RunKeeper(
            trainer.checkpoints,
            self._capture,
            self._write_checkpoint,
            self._judge_now if self.config.evaluation.interval else None,
            self._keep_best,
            self.config.evaluation.interval,
        )
        trainer._keeper = self.keeper
        self.keeper.is_stop_asked = trainer._is_stop_asked

    # --- the course of a run ---

    def run(self) -> Outcome:
        """Learn, then write down what came of it."""
        is_resumed = self.checkpoint is not None
        if self.checkpoint is not None:
            self._restore(self.checkpoint)
        try:
            self.model.learn(
                self.config.steps - (self.model.num_timesteps if is_resumed else 0),
                callback=self._callbacks(),
                log_interval=EPISODES_A_LOG if self.config.algo == "sac" else 1,
                reset_num_timesteps=not is_resumed,
            )
        finally:
            self.collector.close()
            self.model.logger.close()
        if self.keeper.is_stopped:
            return Outcome(self.model.num_timesteps, None)
        return Outcome(self.model.num_timesteps, self._finish())

    def _callbacks(self) -> CallbackList:
        found: list[BaseCallback] = [self.racer] if self.config.is_racer else []
        found += [MetricsCallback(self.collector), self.keeper]
        if self.trainer.on_progress is not None:
            found.append(ProgressCallback(self.trainer.on_progress, self.config.steps, self.judge.optimal_lap_s))
        return CallbackList(found)

    def _finish(self) -> ExperimentResults:
        spent_s = self._spent_s()
        snapshot = self._capture().without_replay()
        save_snapshot(self.folder.model, snapshot, self._card_of(snapshot), self.model.num_timesteps)
        self.collector.metrics().save(self.folder.metrics)
        results = self._results(snapshot, spent_s)
        results.save(self.folder.results)
        return results

    def _spent_s(self) -> float:
        return self.spent_before_s + time.time() - self.began_s

    # --- state ---

    def _capture(self) -> Snapshot:
        books = {
            "metrics": self.collector.get_state(),
            "racer": self.racer.get_state(),
            "keeper": self.keeper.get_state(),
            "spent_s": self._spent_s(),
            "first_began_s": self.first_began_s,
        }
        return capture(self.model, self.worlds.capture(), books)

    def _restore(self, checkpoint: Checkpoint) -> None:
        if checkpoint.card.get("config_digest") != self.config.digest():
            raise ModelError(
                f"{checkpoint.path}: was written under another configuration than {self.folder.config} has now. "
                "Put that file back as it was, or begin a new run."
            )
        worlds, books = restore(self.model, checkpoint.snapshot)
        self.racer.set_state(books["racer"])
        self.keeper.set_state(books["keeper"])
        self.spent_before_s = float(books["spent_s"])
        self.first_began_s = float(books["first_began_s"])
        if not self.worlds.restore(worlds):
            env = self.worlds.env
            self.model._last_obs = env.reset()  # type: ignore[assignment]
            self.model._last_episode_starts = np.ones(env.num_envs, np.bool_)

    def _make_collector(self) -> MetricsCollector:
        if self.checkpoint is not None:
            return MetricsCollector.resume(self.folder.journal, self.checkpoint.snapshot.plain["books"]["metrics"])
        config = self.config
        return MetricsCollector(
            config.experiment_id,
            config.algo,
            config.env,
            config.seed,
            config.recording_interval,
            self.folder.journal,
        )

    # --- what is written ---

    def _write_checkpoint(self, snapshot: Snapshot, step: int) -> None:
        self.trainer.checkpoints.save(snapshot, self._card_of(snapshot), step)

    def _keep_best(self, snapshot: Snapshot, judgement: Judgement) -> None:
        save_snapshot(self.folder.best, snapshot, self._card_of(snapshot), self.model.num_timesteps)

    def _judge_now(self) -> Judgement:
        policy = live_policy(self.model, self._card(self.model.num_timesteps, ""))
        return self.judge.judge(policy, self.config.evaluation.episodes)

    def _card_of(self, snapshot: Snapshot) -> dict[str, Any]:
        return self._card(snapshot.step, tensors_digest(snapshot.groups[POLICY_GROUP])).as_plain()

    def _card(self, step: int, weights_digest: str) -> ModelCard:
        config, env = self.config, self.worlds.env
        racer: dict[str, Any] = {}
        if config.is_racer:
            world = config.world
            racer = {"physics": PHYSICS_VERSION, "observation_layout": OBSERVATION_LAYOUT, "track": world.track}
            racer |= {"action_repeat": world.action_repeat, "stack": world.stack}
        return ModelCard(
            algorithm=config.algo,
            environment=config.env,
            seed=config.seed,
            step=step,
            config_digest=config.digest(),
            weights_digest=weights_digest,
            policy=replace(config.policy, kind=policy_kind(config.policy, env.observation_space)),
            observation_space=str(env.observation_space),
            action_space=str(env.action_space),
            env_args=dict(config.env_args),
            clip_obs=config.normalize.clip_obs if config.normalize.obs else None,
            trained_on=f"{platform.system()} {platform.machine()}, {config.device}",
            **racer,
        )

    def _results(self, snapshot: Snapshot, spent_s: float) -> ExperimentResults:
        """Evaluate the final model and put together what the run came to."""
        config = self.config
        policy = live_policy(self.model, self._card(self.model.num_timesteps, ""))
        episodes = config.evaluation.final_episodes
        returns = self.judge.evaluate_returns(policy, episodes)
        laps = self.judge.evaluate_laps(policy, episodes).as_dict() if config.is_racer else None
        weights_digest = tensors_digest(snapshot.groups[POLICY_GROUP])
        return ExperimentResults(
            RunMetadata(
                config.experiment_id,
                config.algo,
                config.env,
                config.seed,
                utc_text(self.first_began_s),
                utc_text(time.time()),
                self.model.num_timesteps,
            ),
            ModelSummary(
                policy_kind(config.policy, self.worlds.env.observation_space),
                self.folder.model.name,
                config.checkpoint.interval,
                tuple(self.trainer.checkpoints.names()),
            ),
            FinalMetrics(
                returns.mean,
                returns.std,
                returns.length_mean,
                self.collector.num_episodes,
                spent_s,
                is_converged(returns.mean, reward_threshold(config.env)),
            ),
            as_plain(config.hyperparameters),
            self._environment(),
            provenance(config.digest(), weights_digest),
            laps,
        )

    def _environment(self) -> dict[str, Any]:
        config, env = self.config, self.worlds.env
        found: dict[str, Any] = {"num_envs": config.num_envs, "observation_space": str(env.observation_space)}
        found |= {"action_space": str(env.action_space), "normalize": as_plain(config.normalize)}
        found |= (
            as_plain(config.world)
            if config.is_racer
            else {"env_args": dict(config.env_args), "backend": config.backend}
        )
        return found

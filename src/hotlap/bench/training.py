"""Measures decisions per second of training, and of stable-baselines3's own PPO over the same cars for comparison."""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv

from hotlap.config import as_plain
from hotlap.errors import ConfigError
from hotlap.hyperparameters import MAX_STEPS, PPOSettings
from hotlap.learning.events import StepEvents
from hotlap.models.policy import policy_arguments
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.training.learners import Learner
from hotlap.training.sb3.algorithms import HotlapPPO
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs
from hotlap.training.trainer import Observer, Trainer

MAX_ROLLOUTS = 10_000
RECIPE = "racer-ppo"


@dataclass(frozen=True)
class TrainingSpeed:
    """Decisions per second, learning included, of our learner and of stable-baselines3's, and the settings of both.

    `samples_per_sec` counts a decision once for each epoch. `peak_memory_mb` is the peak memory of this process; None
    on Windows.
    """

    decisions_per_sec: float
    stock_decisions_per_sec: float
    ratio: float
    samples_per_sec: float
    device: str
    peak_memory_mb: float | None
    learner: str
    num_envs: int
    rollouts: int
    track: str
    net_arch: tuple[int, ...]
    torch_threads: int
    ppo: dict[str, Any]


def measure_training(
    num_envs: int, rollouts: int, track_id: str, device: str = "cpu", ppo: PPOSettings | None = None
) -> TrainingSpeed:
    """Train with the recipe's settings, by turns one rollout with our learner and one with stable-baselines3's.

    Ours is a complete run with its log, metrics and checkpoints, but without evaluations; theirs is the bare
    algorithm. Each rate is that of the median rollout with its update, without the first one, which warms up.
    """
    if not 1 <= rollouts <= MAX_ROLLOUTS:
        raise ConfigError(f"rollouts must be from 1 to {MAX_ROLLOUTS}, got {rollouts}.")
    config = bench_config(num_envs, track_id, device, ppo)
    envs = TrainingEnvs(config)
    try:
        clock = AlternatingClock(rollouts, stock_learner(config, envs.env))
        with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as place:
            Trainer(config, RunFolder(Path(place), config.experiment_id), observers=[clock]).run()
    finally:
        envs.close()
    num_decisions = num_envs * config.ppo.n_steps
    ours, stock = (num_decisions / statistics.median(times_s) for times_s in (clock.our_s, clock.stock_s))
    return TrainingSpeed(
        decisions_per_sec=ours,
        stock_decisions_per_sec=stock,
        ratio=ours / stock,
        samples_per_sec=ours * config.ppo.n_epochs,
        device=config.device,
        peak_memory_mb=peak_memory_mb(),
        learner=clock.learner,
        num_envs=num_envs,
        rollouts=rollouts,
        track=track_id,
        net_arch=config.policy.net_arch or (),
        torch_threads=config.torch_threads,
        ppo=as_plain(config.ppo),
    )


def bench_config(num_envs: int, track_id: str, device: str, ppo: PPOSettings | None = None) -> RunConfig:
    """The recipe's run without an end and without evaluations; `ppo` replaces its hyperparameters."""
    asked: dict[str, Any] = {
        "steps": MAX_STEPS,
        "num_envs": num_envs,
        "device": device,
        "racer.track": track_id,
        "evaluation.interval": 0,
        "evaluation.final_episodes": 1,
        "ppo": None if ppo is None else as_plain(ppo),
    }
    return resolve_config(RECIPE, asked)


def stock_learner(config: RunConfig, env: VecEnv) -> PPO:
    """stable-baselines3's own PPO with a run's settings."""
    arguments = {name: value for name, value in as_plain(config.ppo).items() if name not in HotlapPPO.own_settings}
    learner = PPO(
        "MlpPolicy",
        env,
        policy_kwargs=policy_arguments(config.policy, "ppo"),
        device=config.device,
        seed=config.seed,
        **arguments,
    )
    learner.set_logger(Logger(None, []))
    return learner


class AlternatingClock(Observer):
    """Times the rollouts of a run with their updates, and one of `stock` after each, so that noise hits both.

    The first of both is not counted; the run ends after `rollouts` more.
    """

    def __init__(self, rollouts: int, stock: PPO) -> None:
        self._num_rollouts, self._stock = rollouts, stock
        self.our_s: list[float] = []
        self.stock_s: list[float] = []
        self._begin_s: float | None = None
        self._is_warm = False
        self.learner = ""  # the class of ours
        _, self._nothing = stock._setup_learn(MAX_STEPS)

    def on_rollout_start(self, learner: Learner) -> None:
        """Note the time, and let the other one take its turn."""
        now_s, self.learner = time.perf_counter(), type(learner).__name__
        if self._begin_s is not None:
            stock_s = self._stock_rollout_s()
            if self._is_warm:
                self.our_s.append(now_s - self._begin_s)
                self.stock_s.append(stock_s)
            self._is_warm = True
        self._begin_s = time.perf_counter()

    def on_step(self, events: StepEvents) -> bool:
        """Go on until there are enough rollouts."""
        return len(self.our_s) < self._num_rollouts

    def _stock_rollout_s(self) -> float:
        stock, begin_s = self._stock, time.perf_counter()
        stock.collect_rollouts(stock.env, self._nothing, stock.rollout_buffer, stock.n_steps)  # type: ignore[arg-type]
        stock.train()
        return time.perf_counter() - begin_s


def peak_memory_mb() -> float | None:
    """The peak memory of this process; None on Windows."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (1 << 20) if sys.platform == "darwin" else largest / (1 << 10)

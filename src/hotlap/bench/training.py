"""Measures decisions per second of a whole training run, and of stock PPO on one environment for comparison."""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from hotlap.config import as_plain
from hotlap.envs.racer import RacerEnv
from hotlap.errors import ConfigError
from hotlap.models.model_file import PolicySettings
from hotlap.training.checkpoint import CheckpointConfig
from hotlap.training.hyperparameters import MAX_STEPS, PPOSettings
from hotlap.training.run_config import EvaluationSettings, NormalizeSettings, RacerOptions, RunConfig
from hotlap.training.run_files.run_folder import RunFolder
from hotlap.training.trainer import Trainer

MAX_ROLLOUTS = 10_000
BATCHED = PPOSettings(n_steps=64, batch_size=4096, n_epochs=4)
# The defaults of stable-baselines3.
SINGLE = PPOSettings(n_steps=2048, batch_size=64, n_epochs=10)
NET_ARCH = (64, 64)
CHECKPOINT_INTERVAL = 500_000


@dataclass(frozen=True)
class TrainingSpeed:
    """Decisions per second, learning included, of many cars and of one, and the settings of both.

    `peak_memory_mb` is the peak memory of this process; None on Windows.
    """

    decisions_per_sec: float
    single_decisions_per_sec: float
    ratio: float
    peak_memory_mb: float | None
    num_envs: int
    rollouts: int
    single_rollouts: int
    track: str
    net_arch: tuple[int, ...]
    torch_threads: int
    ppo: dict[str, Any]
    single_ppo: dict[str, Any]


def measure_training(
    num_envs: int,
    rollouts: int,
    single_rollouts: int,
    track_id: str,
    batched: PPOSettings = BATCHED,
    single: PPOSettings = SINGLE,
) -> TrainingSpeed:
    """Train with `num_envs` cars in a complete run (normalizer, callbacks, metrics), then with one car and stock PPO.

    Each rate is that of the median rollout with its update, without the first one, which warms up.
    """
    for name, value in (("rollouts", rollouts), ("single_rollouts", single_rollouts)):
        if not 1 <= value <= MAX_ROLLOUTS:
            raise ConfigError(f"{name} must be from 1 to {MAX_ROLLOUTS}, got {value}.")
    config = RunConfig(
        steps=MAX_STEPS,
        num_envs=num_envs,
        racer=RacerOptions(track=track_id, config={"episode": {"start": "random"}}),
        policy=PolicySettings(net_arch=NET_ARCH),
        normalize=NormalizeSettings(obs=True, reward=True),
        ppo=batched,
        checkpoint=CheckpointConfig(interval=CHECKPOINT_INTERVAL),
        evaluation=EvaluationSettings(interval=0, final_episodes=1),
    )
    many = num_envs * batched.n_steps / _batched_rollout_s(config, rollouts)
    memory_mb = peak_memory_mb()
    one = single.n_steps / _single_rollout_s(track_id, single, single_rollouts)
    return TrainingSpeed(
        decisions_per_sec=many,
        single_decisions_per_sec=one,
        ratio=many / one,
        peak_memory_mb=memory_mb,
        num_envs=num_envs,
        rollouts=rollouts,
        single_rollouts=single_rollouts,
        track=track_id,
        net_arch=NET_ARCH,
        torch_threads=config.torch_threads,
        ppo=as_plain(batched),
        single_ppo=as_plain(single),
    )


class RolloutClock(BaseCallback):
    """Times rollouts from the start of one to the start of the next, and stops training after `rollouts` + 1."""

    def __init__(self, rollouts: int) -> None:
        super().__init__()
        self._num_rollouts = rollouts + 1
        self._starts_s: list[float] = []

    def _on_rollout_start(self) -> None:
        self._starts_s.append(time.perf_counter())

    def _on_step(self) -> bool:
        return len(self._starts_s) <= self._num_rollouts

    @property
    def rollout_s(self) -> float:
        """Seconds of the median rollout with its update, without the first."""
        pairs = zip(self._starts_s[1:], self._starts_s[2:], strict=False)
        return statistics.median(after_s - before_s for before_s, after_s in pairs)


def peak_memory_mb() -> float | None:
    """The peak memory of this process; None on Windows."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (1 << 20) if sys.platform == "darwin" else largest / (1 << 10)


def _batched_rollout_s(config: RunConfig, rollouts: int) -> float:
    clock = RolloutClock(rollouts)
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as place:
        Trainer(config, RunFolder(Path(place), config.experiment_id), callbacks=[clock]).run()
    return clock.rollout_s


def _single_rollout_s(track_id: str, settings: PPOSettings, rollouts: int) -> float:
    """Seconds per rollout of stock PPO on one monitored `RacerEnv`."""
    torch.set_num_threads(RunConfig.torch_threads)
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([lambda: Monitor(RacerEnv(track_id))]),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        device="cpu",
        seed=0,
    )
    model.set_logger(Logger(None, []))
    clock = RolloutClock(rollouts)
    model.learn(MAX_STEPS, callback=clock)
    return clock.rollout_s

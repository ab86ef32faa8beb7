"""Callbacks for stable-baselines3: metrics, checkpoints and progress."""

from hotlap.envs.infos import REWARD_KEYS
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback

__all__ = ["REWARD_KEYS", "TICKS_PER_SECOND", "RacerMetricsCallback"]

"""Callbacks of stable-baselines3: metrics, checkpoints and progress."""

from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.training.callbacks.racer_metrics import REWARD_KEYS, RacerMetricsCallback

__all__ = ["REWARD_KEYS", "TICKS_PER_SECOND", "RacerMetricsCallback"]

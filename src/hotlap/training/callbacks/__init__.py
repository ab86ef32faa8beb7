"""Callbacks for users of stable-baselines3's own algorithms."""

from hotlap.envs.infos import REWARD_KEYS
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback

__all__ = ["REWARD_KEYS", "TICKS_PER_SECOND", "RacerMetricsCallback"]

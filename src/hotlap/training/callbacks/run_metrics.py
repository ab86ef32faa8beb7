"""Passes finished episodes, steps and losses to a run's metrics."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from hotlap.errors import DivergedError
from hotlap.training.algorithms.rollout_events import SparseInfos
from hotlap.training.metrics_collector import MetricsCollector


class MetricsCallback(BaseCallback):
    """Passes finished episodes, steps, and the loss of the last update to a `MetricsCollector`.

    The loss is `train/loss` where the algorithm logs one (PPO), else the sum of `train/policy_loss` and
    `train/value_loss` (A2C), else of `train/actor_loss` and `train/critic_loss` (SAC). One that is not finite raises
    DivergedError.
    """

    def __init__(self, collector: MetricsCollector, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.collector = collector

    def _on_rollout_start(self) -> None:
        self._note_loss()

    def _note_loss(self) -> None:
        # The logger holds an update's losses until its next dump; a rollout starts in between.
        values = getattr(self.logger, "name_to_value", None)
        loss = find_loss(values) if isinstance(values, Mapping) else None
        if loss is not None:
            if not math.isfinite(loss):
                raise DivergedError(f"the loss of the last update is {loss}")
            self.collector.note_loss(loss)

    def _on_step(self) -> bool:
        infos = self.locals.get("infos", ())
        if isinstance(infos, SparseInfos):
            for episode_return, length in infos.events.episodes():
                self.collector.note_episode(episode_return, length)
        else:
            for index in np.asarray(self.locals.get("dones", ())).nonzero()[0].tolist():
                episode = infos[index].get("episode")
                if episode is not None:
                    self.collector.note_episode(float(episode["r"]), int(episode["l"]))
        self.collector.note_step(self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        self._note_loss()
        self.collector.flush()


_LOSSES = (("train/loss",), ("train/policy_loss", "train/value_loss"), ("train/actor_loss", "train/critic_loss"))


def find_loss(values: Mapping[str, Any]) -> float | None:
    """The loss among an algorithm's logged values, as `MetricsCallback` defines it; None where there is none."""
    for names in _LOSSES:
        if all(name in values for name in names):
            return float(sum(values[name] for name in names))
    return None

"""Averages what happens between two logged points of a run and writes it to TensorBoard and the metrics."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hotlap.errors import DivergedError
from hotlap.learning.events import StepEvents
from hotlap.runs.json_documents import build_record
from hotlap.training.racer_metrics import LapTotals

MIN_WINDOW = 100  # episodes behind `rollout/ep_rew_mean`, as in stable-baselines3
# The loss among the figures of an algorithm: PPO's, A2C's, SAC's.
_LOSSES = (("train/loss",), ("train/policy_loss", "train/value_loss"), ("train/actor_loss", "train/critic_loss"))

LogOutput = Callable[[Mapping[str, float], int], object]  # takes the figures of a step


class RunLog:
    """Collects steps, laps and the figures of updates, and writes them at every `dump`.

    `optimal_lap_s` is the track's optimal flying lap; without it there is no `gap_to_optimal`. Set
    `first_lap_is_flying` where episodes start anywhere on the track: the clock starts when the car crosses the line.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        optimal_lap_s: float | None = None,
        first_lap_is_flying: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        window = max(MIN_WINDOW, num_envs)
        self._optimal_lap_s, self._first_lap_is_flying = optimal_lap_s, first_lap_is_flying
        self.logs_laps = True  # False: evaluations log the laps, since episodes are too short for one
        self._episodes: deque[tuple[float, int]] = deque(maxlen=window)
        self._successes: deque[bool] = deque(maxlen=window)
        self._terms: dict[str, tuple[float, int]] = {}  # sum and count of each reward term
        self._laps = LapTotals()
        self._figures: dict[str, float] = {}  # of updates since the last dump; the newest of each name
        self.num_new_episodes = 0  # since the last dump
        self._clock = clock
        self._begin: tuple[float, int] | None = None  # time and step at which this process began

    @property
    def mean_return(self) -> float | None:
        """The mean return of the last episodes; None before the first."""
        return sum(each for each, _ in self._episodes) / len(self._episodes) if self._episodes else None

    def begin(self, step: int) -> None:
        """Start to measure the speed."""
        self._begin = self._clock(), step

    def add_step(self, events: StepEvents) -> None:
        """Add what happened in a step."""
        for name, value in events.reward_terms.items():
            total, count = self._terms.get(name, (0.0, 0))
            self._terms[name] = total + value, count + 1
        if len(events.envs):
            episodes = list(events.episodes())
            self._episodes.extend(episodes)
            self._successes.extend(events.successes)
            self.num_new_episodes += len(episodes)
            self._laps.add(events, first_lap_is_flying=self._first_lap_is_flying)

    def add_update(self, figures: Mapping[str, float]) -> float | None:
        """Add the figures of an update; returns its loss. One that is not finite raises DivergedError."""
        self._figures |= figures
        loss = find_loss(figures)
        if loss is not None and not math.isfinite(loss):
            raise DivergedError(f"the loss of the last update is {loss}")
        return loss

    def dump(self, step: int, outputs: Sequence[LogOutput]) -> None:
        """Write the figures since the last dump."""
        figures = {f"reward/{name}": total / count for name, (total, count) in self._terms.items()}
        if self._episodes:
            figures["rollout/ep_rew_mean"] = self.mean_return or 0.0
            figures["rollout/ep_len_mean"] = sum(length for _, length in self._episodes) / len(self._episodes)
        if self._successes:
            figures["rollout/success_rate"] = sum(self._successes) / len(self._successes)
        if self.logs_laps:
            figures |= self._laps.figures(self._optimal_lap_s)
        if self._begin is not None:
            elapsed_s = max(self._clock() - self._begin[0], 1e-9)
            figures["time/fps"] = int((step - self._begin[1]) / elapsed_s)
        for output in outputs:
            output(figures | self._figures, step)
        self._terms, self._laps, self._figures, self.num_new_episodes = {}, LapTotals(), {}, 0

    def get_state(self) -> dict[str, Any]:
        """The last episodes, and what is not written yet, as plain JSON data."""
        return {
            "episodes": [list(episode) for episode in self._episodes],
            "successes": list(self._successes),
            "terms": {name: list(pair) for name, pair in self._terms.items()},
            "laps": msgspec.to_builtins(self._laps),
            "figures": dict(self._figures),
            "num_new": self.num_new_episodes,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        window = self._episodes.maxlen
        self._episodes = deque(((float(value), int(length)) for value, length in state["episodes"]), maxlen=window)
        self._successes = deque(map(bool, state["successes"]), maxlen=window)
        self._terms = {name: (float(total), int(count)) for name, (total, count) in state["terms"].items()}
        self._laps = build_record(LapTotals, state["laps"], "laps of the log")
        self._figures, self.num_new_episodes = dict(state["figures"]), int(state["num_new"])


def find_loss(figures: Mapping[str, float]) -> float | None:
    """The loss among the figures of an update; None where there is none."""
    for names in _LOSSES:
        if all(name in figures for name in names):
            return float(sum(figures[name] for name in names))
    return None

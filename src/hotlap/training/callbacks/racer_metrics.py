"""Logs the racer's reward terms, laps and episodes while stable-baselines3 learns."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnvWrapper

from hotlap.errors import ConfigError
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.training.run_files.json_documents import build_record

REWARD_KEYS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")

_LOGGED_TERMS = tuple((key, f"reward/{key}") for key in REWARD_KEYS)
_FIRST_LAP = 1


@dataclass
class _Tally:
    """Laps and episodes that ended, summed up."""

    num_laps: int = 0
    total_s: float = 0.0
    best_s: float | None = None
    flying_s: list[float] = field(default_factory=list)  # clean flying laps
    num_episodes: int = 0
    num_completed: int = 0  # episodes with a lap in them

    @property
    def is_empty(self) -> bool:
        return not self.num_laps and not self.num_episodes

    def add_lap(self, time_s: float, count: int = 1) -> None:
        self.num_laps += count
        self.total_s += count * time_s
        self.best_s = time_s if self.best_s is None else min(self.best_s, time_s)

    def plus(self, other: "_Tally") -> "_Tally":
        best_s = [time_s for time_s in (self.best_s, other.best_s) if time_s is not None]
        return _Tally(
            self.num_laps + other.num_laps,
            self.total_s + other.total_s,
            min(best_s, default=None),
            self.flying_s + other.flying_s,
            self.num_episodes + other.num_episodes,
            self.num_completed + other.num_completed,
        )

    def figures(self, optimal_lap_s: float | None) -> dict[str, float]:
        """What TensorBoard is told; nothing about what did not happen."""
        figures: dict[str, float] = {}
        if self.best_s is not None:
            figures["racer/mean_lap_time_sec"] = self.total_s / self.num_laps
            figures["racer/best_lap_time_sec"] = self.best_s
        if self.num_episodes:
            figures["racer/completion_rate"] = self.num_completed / self.num_episodes
            figures["racer/episodes_this_rollout"] = self.num_episodes
        if self.flying_s and optimal_lap_s is not None:
            figures["racer/gap_to_optimal"] = float(np.median(self.flying_s)) / optimal_lap_s - 1.0
        return figures


class RacerMetricsCallback(BaseCallback):
    """Logs the racer's reward terms, laps and episodes, over any number of cars.

    An on-policy algorithm's figures are of one rollout. An off-policy algorithm's rollouts are a step or a few long and
    its logger is dumped every few episodes, so there they are of everything since the last dump.

    `optimal_lap_s` is the track's optimal flying lap; without it there is no `gap_to_optimal`. `first_lap_is_flying` is
    for episodes that start anywhere on the track, where the clock starts as the car first crosses the line.
    """

    TICKS_PER_SECOND: ClassVar[int] = TICKS_PER_SECOND
    REWARD_KEYS: ClassVar[tuple[str, ...]] = REWARD_KEYS

    def __init__(
        self, verbose: int = 0, *, optimal_lap_s: float | None = None, first_lap_is_flying: bool = False
    ) -> None:
        super().__init__(verbose)
        if optimal_lap_s is not None and not 0.0 < optimal_lap_s < math.inf:
            raise ConfigError(f"optimal_lap_s must be a positive time in seconds or None, got {optimal_lap_s!r:.40}.")
        self.optimal_lap_s = optimal_lap_s
        self.first_lap_is_flying = first_lap_is_flying
        # For each car: the lap it is on, and the tick of its episode at which that lap began.
        self._laps: list[int] = []
        self._lap_ticks: list[int] = []
        self._fresh = _Tally()  # not yet given to the logger
        self._given = _Tally()  # what the logger was last given

    def _on_training_start(self) -> None:
        if self.num_timesteps == 0:  # the environments were reset, whatever was learned with them before
            self._laps, self._lap_ticks = [], []

    def _on_step(self) -> bool:
        infos = self.locals.get("infos", ())
        dones = np.asarray(self.locals.get("dones", ()), np.bool_)
        self._make_room(max(len(infos), len(dones)))
        means = self._batch_means()
        if means is not None:
            self._record_terms(means)
        for car, info in enumerate(infos):
            if info:
                if means is None:
                    self._record_terms(info)
                self._note_info(car, info)
        for car in dones.nonzero()[0].tolist():
            self._note_end(car)
        # Such a logger may be dumped before the rollout's end, because of the very episode that just ended.
        if not self._fresh.is_empty and self._off_policy_values() is not None:
            self._give_to_logger()
        return True

    def _on_rollout_end(self) -> None:
        self._give_to_logger()

    def _make_room(self, num_cars: int) -> None:
        missing = num_cars - len(self._laps)
        if missing > 0:
            self._laps += [_FIRST_LAP] * missing
            self._lap_ticks += [0] * missing

    def _batch_means(self) -> Mapping[str, float] | None:
        """The reward terms' means over all cars of this step, if the environment under all wrappers has them."""
        env = self.locals.get("env")
        while isinstance(env, VecEnvWrapper):  # ten times faster than the wrappers' own way of passing attributes on
            env = env.venv
        means = getattr(env, "reward_term_means", None)
        return means if isinstance(means, Mapping) else None

    def _record_terms(self, terms: Mapping[str, Any]) -> None:
        record_mean = self.logger.record_mean
        for key, name in _LOGGED_TERMS:
            if key in terms:
                record_mean(name, float(terms[key]))

    def _note_info(self, car: int, info: Mapping[str, Any]) -> None:
        """Count the laps a car has finished.

        Without `lapTime` they are timed by ticks. Laps that went by unseen between two infos share their time evenly:
        their number and mean are then right, and the best is no better than the truth.
        """
        lap_s, tick = info.get("lapTime"), info.get("stepCount")
        before = self._laps[car]
        lap = info.get("lap", before if lap_s is None else before + 1)
        if lap < before:  # a new episode whose beginning nobody told us
            before = self._laps[car] = _FIRST_LAP
            self._lap_ticks[car] = 0
        if lap_s is not None:
            self._fresh.add_lap(float(lap_s))
            if info.get("lapClean") and (self.first_lap_is_flying or lap - 1 > _FIRST_LAP):
                self._fresh.flying_s.append(float(lap_s))
        elif lap > before and tick is not None:
            count = int(lap - before)
            self._fresh.add_lap((tick - self._lap_ticks[car]) / TICKS_PER_SECOND / count, count)
        if lap_s is not None or lap > before:
            self._laps[car] = int(lap)
            self._lap_ticks[car] = int(tick or 0)

    def _note_end(self, car: int) -> None:
        self._fresh.num_episodes += 1
        self._fresh.num_completed += self._laps[car] > _FIRST_LAP
        self._laps[car], self._lap_ticks[car] = _FIRST_LAP, 0

    def _off_policy_values(self) -> Mapping[str, Any] | None:
        """What an off-policy algorithm's logger holds until its next dump; None where rollouts stand for themselves."""
        values = getattr(self.logger, "name_to_value", None)
        is_told = isinstance(self.model, OffPolicyAlgorithm) and isinstance(values, Mapping)
        return values if is_told else None

    def _undumped(self) -> _Tally:
        """What the logger was given and has not yet written."""
        held = self._off_policy_values()
        is_held = held is not None and any(name in held for name in self._given.figures(None))
        return self._given if is_held else _Tally()

    def _give_to_logger(self) -> None:
        if self._fresh.is_empty:
            return
        self._given, self._fresh = self._undumped().plus(self._fresh), _Tally()
        for name, figure in self._given.figures(self.optimal_lap_s).items():
            self.logger.record(name, figure)

    def get_state(self) -> dict[str, Any]:
        """Where every car stands and what no dump has written yet, as plain JSON."""
        waiting = self._undumped().plus(self._fresh) if hasattr(self, "model") else self._fresh
        return {"laps": list(self._laps), "lap_ticks": list(self._lap_ticks), "tally": asdict(waiting)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `get_state`'s answer; what was waiting for a dump is given to the logger again."""
        saved = build_record(_SavedCallback, state, "racer metrics state")
        self._laps, self._lap_ticks = list(saved.laps), list(saved.lap_ticks)
        tally = asdict(saved.tally)
        self._fresh, self._given = _Tally(**{**tally, "flying_s": list(tally["flying_s"])}), _Tally()


@dataclass(frozen=True)
class _SavedTally:
    num_laps: int
    total_s: float
    best_s: float | None
    flying_s: tuple[float, ...]
    num_episodes: int
    num_completed: int


@dataclass(frozen=True)
class _SavedCallback:
    laps: tuple[int, ...]
    lap_ticks: tuple[int, ...]
    tally: _SavedTally

"""Logs the racer's reward terms, laps and episodes while stable-baselines3 learns."""

import logging
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnvWrapper

from hotlap.envs.infos import REWARD_KEYS
from hotlap.errors import ConfigError
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.training.racer_metrics import FIRST_LAP, LapTotals

_LOGGED_TERMS = tuple((key, f"reward/{key}") for key in REWARD_KEYS)
_EPISODE_START = FIRST_LAP, 0
_log = logging.getLogger(__name__)


class RacerMetricsCallback(BaseCallback):
    """Logs the racer's reward terms, laps and episodes, over any number of cars.

    With an on-policy algorithm the figures are those of one rollout. An off-policy algorithm's rollouts last a few
    steps and its logger is dumped every few episodes, so there the figures cover everything since the last dump.

    With `verbose=1` it prints the laps of each rollout. `optimal_lap_s` is the track's optimal flying lap; without it
    there is no `gap_to_optimal`. Set `first_lap_is_flying` where episodes start anywhere on the track: the clock starts
    when the car crosses the line.
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
        # Of cars with a lap behind them in this episode: the lap they are on, and the tick at which it began.
        self._lap_starts: dict[int, tuple[int, int]] = {}
        self._new = LapTotals()  # not yet passed to the logger
        self._logged = LapTotals()  # last passed to the logger

    def _on_training_start(self) -> None:
        if self.num_timesteps == 0:  # then the environments were reset
            self._lap_starts.clear()

    def _on_step(self) -> bool:
        infos = self.locals.get("infos", ())
        dones = np.asarray(self.locals.get("dones", ()), np.bool_)
        means = self._batch_means()
        if means is not None:
            self._record_terms(means)
        for car, info in enumerate(infos):
            if info:
                if means is None:
                    self._record_terms(info)
                self._add_laps(car, info)
        for car in dones.nonzero()[0].tolist():
            lap, _ = self._lap_starts.pop(car, _EPISODE_START)
            self._new.num_episodes += 1
            self._new.num_completed += lap > FIRST_LAP
        # An off-policy logger is dumped within the rollout, right after the episode that just ended.
        if not self._new.is_empty and self._off_policy_values() is not None:
            self._log_totals()
        return True

    def _on_rollout_end(self) -> None:
        self._log_totals()

    def _batch_means(self) -> Mapping[str, float] | None:
        """The means of the reward terms over all cars at this step, if the cars give them."""
        env = self.locals.get("env")
        while isinstance(env, VecEnvWrapper):  # ten times faster than `get_attr`
            env = env.venv
        means = getattr(env, "reward_term_means", None)
        return means if isinstance(means, Mapping) else None

    def _record_terms(self, terms: Mapping[str, Any]) -> None:
        record_mean = self.logger.record_mean
        for key, name in _LOGGED_TERMS:
            if key in terms:
                record_mean(name, float(terms[key]))

    def _add_laps(self, car: int, info: Mapping[str, Any]) -> None:
        """Add the laps a car has finished.

        Without `lapTime` they are timed by ticks. Several laps between two infos get equal parts of the time: their
        number and mean are exact, and the best is never better than the true one.
        """
        lap_s, tick = info.get("lapTime"), info.get("stepCount")
        before, began_at = self._lap_starts.get(car, _EPISODE_START)
        lap = info.get("lap", before if lap_s is None else before + 1)
        if lap < before:  # a new episode without `done` before it
            before, began_at = self._lap_starts[car] = _EPISODE_START
        if lap_s is not None:
            self._new.add_lap(float(lap_s))
            if info.get("lapClean") and (self.first_lap_is_flying or lap - 1 > FIRST_LAP):
                self._new.flying_s.append(float(lap_s))
        elif lap > before and tick is not None:
            count = int(lap - before)
            self._new.add_lap((tick - began_at) / TICKS_PER_SECOND / count, count)
        if lap_s is not None or lap > before:
            self._lap_starts[car] = int(lap), int(tick or 0)

    def _off_policy_values(self) -> Mapping[str, Any] | None:
        """What an off-policy algorithm's logger holds until its next dump; None for an on-policy algorithm."""
        values = getattr(self.logger, "name_to_value", None)
        has_values = isinstance(self.model, OffPolicyAlgorithm) and isinstance(values, Mapping)
        return values if has_values else None

    def _log_totals(self) -> None:
        if self._new.is_empty:
            return
        self._report(self._new)
        held = self._off_policy_values()
        is_held = held is not None and any(name in held for name in self._logged.figures(None))
        self._logged, self._new = self._logged.plus(self._new) if is_held else self._new, LapTotals()
        for name, figure in self._logged.figures(self.optimal_lap_s).items():
            self.logger.record(name, figure)

    def _report(self, new: LapTotals) -> None:
        """Log what is new, and print the laps as a callback of stable-baselines3 does when it is verbose."""
        if _log.isEnabledFor(logging.DEBUG):
            figures = (f"{name} {value:g}" for name, value in new.figures(self.optimal_lap_s).items())
            _log.debug("step %d: %s", self.num_timesteps, ", ".join(figures))
        if self.verbose >= 1 and new.best_s is not None:
            mean_s = new.total_s / new.num_laps
            laps = (
                f"{new.num_laps} {'lap' if new.num_laps == 1 else 'laps'}, mean {mean_s:.3f} s, best {new.best_s:.3f} s"
            )
            print(f"step {self.num_timesteps}: {laps}")  # noqa: T201

"""The figures that a sweep optimizes: where a run's results and evaluations have them, and their median over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import msgspec

from hotlap.errors import ConfigError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.reports.curves import read_events
from hotlap.training.results import ExperimentResults, FinalMetrics

Direction = Literal["minimize", "maximize"]

_NO_FIGURES = {"driver", "track", "start", "seed", "lap_times_s"}  # of an evaluation
_METRICS = tuple(msgspec.structs.fields(FinalMetrics)[i].name for i in range(len(msgspec.structs.fields(FinalMetrics))))
_LAPS = tuple(field.name for field in fields(Evaluation) if field.name not in _NO_FIGURES)
_BEST_RETURNS = ("final_reward_mean", "final_reward_std", "episode_length_mean")
_BEST = "best."
# Figures that the periodic evaluations log too, and the keys they have there.
_PERIODIC = {
    "gap_to_optimal": "eval/gap_to_optimal",
    "completion_rate": "eval/completion_rate",
    "clean_lap_rate": "eval/clean_lap_rate",
    "median_lap_time_sec": "eval/median_lap_time_sec",
    "mean_reward": "eval/mean_reward",
    "final_reward_mean": "eval/mean_reward",
    "episode_length_mean": "eval/mean_ep_length",
}
_ALWAYS_LOGGED = "eval/mean_reward"


@dataclass(frozen=True)
class Objective:
    """A figure of a run's results, and whether less or more of it is better."""

    name: str
    direction: Direction

    @property
    def worst(self) -> float:
        """What a run counts as that has no such figure, e.g. the gap of a car that completes no lap."""
        return math.inf if self.direction == "minimize" else -math.inf

    @property
    def periodic_key(self) -> str | None:
        """The key under which the periodic evaluations log it; None where they do not."""
        return _PERIODIC.get(self.name.removeprefix(_BEST))

    def check(self, is_racer: bool) -> None:
        """Refuse a name that the results of such runs do not have."""
        known = [*_METRICS, *(_LAPS if is_racer else ())]
        known += [_BEST + name for name in (_LAPS if is_racer else _BEST_RETURNS)]
        if self.name not in known:
            raise ConfigError(f"objective {self.name!r:.60} is not a figure of these runs. Use {', '.join(known)}.")

    def of_results(self, results: ExperimentResults) -> float | None:
        """The figure of a finished run; None where it does not exist or is not finite."""
        if self.name.startswith(_BEST):
            value = (results.best or {}).get(self.name.removeprefix(_BEST))
        elif self.name in _METRICS:
            value = getattr(results.metrics, self.name)
        else:
            value = (results.evaluation or {}).get(self.name)
        return float(value) if value is not None and math.isfinite(value) else None

    def at_rung(self, tensorboard: Path, rung: int) -> tuple[int, float | None] | None:
        """Step and figure of the first periodic evaluation at or after `rung` steps; None if there was none yet.

        Always read from the event files: a run that was killed and resumed gives the same bits as one that was not.
        """
        curves = read_events(tensorboard)
        steps = curves[_ALWAYS_LOGGED].step.tolist() if _ALWAYS_LOGGED in curves else []
        step = next((step for step in steps if step >= rung), None)
        if step is None or self.periodic_key is None:
            return None
        curve = curves.get(self.periodic_key)
        return int(step), None if curve is None else curve.at(step)

    def median(self, values: Sequence[float | None]) -> float:
        """The median over seeds; a run without the figure counts as the worst."""
        ordered = sorted(self.worst if value is None else value for value in values)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return ordered[middle]
        return 0.5 * (ordered[middle - 1] + ordered[middle])  # opposite infinities never meet: all missing are `worst`

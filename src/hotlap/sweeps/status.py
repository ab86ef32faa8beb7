"""Where a sweep stands, read from its journal and its run folders while it runs or after it; and its best trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotlap.errors import HotlapError, TrainingError
from hotlap.reports.curves import Curve, read_events
from hotlap.reports.statistics import Spread, compute_spread
from hotlap.runs.metrics_journal import read_journal
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.sweeps.objectives import Objective
from hotlap.sweeps.study import SweepStudy, TrialRecord
from hotlap.sweeps.sweep_file import Sweep
from hotlap.sweeps.sweep_folder import SweepFolder

_DEFAULT_KEY = "eval/mean_reward"


@dataclass(frozen=True)
class SweepStatus:
    """A sweep and its trials at one moment."""

    folder: SweepFolder
    sweep: Sweep
    trials: Sequence[TrialRecord]
    importances: dict[str, float]

    @property
    def is_finished(self) -> bool:
        """Whether every trial has ended."""
        return len(self.trials) >= self.sweep.trials and not any(trial.is_open for trial in self.trials)

    @property
    def best(self) -> list[TrialRecord]:
        """The complete trials that no other beats in every objective, best first in the first one; ties by number."""
        complete = [trial for trial in self.trials if _costs(self.sweep.objectives, trial) is not None]
        costs = {trial.number: _costs(self.sweep.objectives, trial) or () for trial in complete}
        if len(self.sweep.objectives) == 1:
            return sorted(complete, key=lambda trial: (costs[trial.number], trial.number))[:1]
        front = [
            trial
            for trial in complete
            if not any(_dominates(costs[other.number], costs[trial.number]) for other in complete)
        ]
        return sorted(front, key=lambda trial: (costs[trial.number], trial.number))

    def ranked(self) -> list[TrialRecord]:
        """The complete trials from the best to the worst in the first objective."""
        objective = self.sweep.objectives[0]
        complete = [trial for trial in self.trials if trial.values is not None]
        sign = 1.0 if objective.direction == "minimize" else -1.0
        return sorted(complete, key=lambda trial: (sign * (trial.values or (objective.worst,))[0], trial.number))

    def run_folders(self, trial: TrialRecord) -> list[RunFolder]:
        """The run folders of a trial, one per seed."""
        found = []
        for seed in self.sweep.seeds:
            path = self.folder.run_path(trial.number, seed)
            try:
                found.append(RunFolder(path, self.sweep.config_of(trial.params, seed).experiment_id))
            except HotlapError:  # settings that cannot run
                found.append(RunFolder(path, ""))
        return found

    def steps_of(self, trial: TrialRecord) -> list[int]:
        """The step that each seed's run has reached."""
        return [_step_of(folder, self.sweep, trial, seed) for seed, folder in self._seeds_and_folders(trial)]

    def curve_of(self, trial: TrialRecord) -> Spread | None:
        """Median and quartiles over seeds of the periodic evaluations; None while they have no step in common."""
        key = self.sweep.objectives[0].periodic_key or _DEFAULT_KEY
        return compute_spread([read_events(run.tensorboard).get(key, Curve()) for run in self.run_folders(trial)])

    def _seeds_and_folders(self, trial: TrialRecord) -> list[tuple[int, RunFolder]]:
        return list(zip(self.sweep.seeds, self.run_folders(trial), strict=True))

    def best_config(self, number: int | None = None) -> tuple[TrialRecord, RunConfig]:
        """The best trial, or the given one, and its configuration with the first seed."""
        if number is not None:
            if not 0 <= number < len(self.trials):
                raise TrainingError(
                    f"trial {number}: {self.folder.name} has trials 0 to {len(self.trials) - 1} so far."
                )
            trial = self.trials[number]
        elif self.best:
            trial = self.best[0]
        else:
            names = ", ".join(objective.name for objective in self.sweep.objectives)
            raise TrainingError(f"{self.folder.path}: no trial is complete with a figure for {names} yet.")
        return trial, self.sweep.config_of(trial.params, self.sweep.seeds[0])

    def as_dict(self) -> dict[str, Any]:
        """The document of `hotlap sweep status --json`."""
        best = [self._brief(trial) for trial in self.best]
        single = len(self.sweep.objectives) == 1
        return {
            "name": self.folder.name,
            "finished": self.is_finished,
            "objective": [objective.name for objective in self.sweep.objectives],
            "direction": [objective.direction for objective in self.sweep.objectives],
            "requested_trials": self.sweep.trials,
            "trials": [self._describe(trial) for trial in self.trials],
            "best": (best[0] if best else None) if single else best,
        }

    def _brief(self, trial: TrialRecord) -> dict[str, Any]:
        return {"number": trial.number, "params": dict(trial.params), "value": self._value(trial)}

    def _describe(self, trial: TrialRecord) -> dict[str, Any]:
        return {
            "number": trial.number,
            "state": trial.state,
            "params": dict(trial.params),
            "seeds": list(self.sweep.seeds),
            "value": self._value(trial),
            "runs": [str(folder.path) for folder in self.run_folders(trial)],
            "seed_values": [list(trial.seed_values.get(seed, ())) or None for seed in self.sweep.seeds],
            "error": trial.reason,
        }

    def _value(self, trial: TrialRecord) -> Any:
        """One number, or a list where there are several objectives; None where it does not exist."""
        if trial.values is None:
            return None
        values = [value if math.isfinite(value) else None for value in trial.values]
        return values[0] if len(values) == 1 else values


def read_status(name_or_folder: SweepFolder) -> SweepStatus:
    """The sweep as it is now; nothing is written."""
    sweep = name_or_folder.read_sweep()
    study = SweepStudy(name_or_folder.journal, name_or_folder.name, sweep, is_writer=False)
    return SweepStatus(name_or_folder, sweep, study.trials, study.importances())


def _costs(objectives: Sequence[Objective], trial: TrialRecord) -> tuple[float, ...] | None:
    """A complete trial's objectives, smaller being better; None where it lacks one."""
    if trial.values is None or not all(math.isfinite(value) for value in trial.values):
        return None
    pairs = zip(objectives, trial.values, strict=True)
    return tuple(value if objective.direction == "minimize" else -value for objective, value in pairs)


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def _step_of(folder: RunFolder, sweep: Sweep, trial: TrialRecord, seed: int) -> int:
    if seed in trial.seed_values:
        return sweep.config_of(trial.params, seed).steps
    try:
        points = read_journal(folder.journal).points
    except HotlapError:  # it is being written
        return 0
    return points[-1].timestep if points else 0

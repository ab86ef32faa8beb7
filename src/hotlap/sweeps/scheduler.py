"""Decides what a sweep does next: which run starts or resumes, which trial goes on at a rung, and when it has ended.

Every decision is a function of the journal, never of the order in which processes happened to finish. A trial is
compared at a rung only with the trials of lower numbers, and waits for them; meanwhile other trials run.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from hotlap.errors import HotlapError
from hotlap.sweeps.objectives import Objective
from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.study import SweepStudy, TrialRecord
from hotlap.sweeps.sweep_file import Sweep
from hotlap.sweeps.sweep_folder import SweepFolder
from hotlap.training.checkpoint import CheckpointManager

MAX_RETRIES = 2  # of a run that fails
# A run whose process dies this often in a row without a new checkpoint counts as failed: it may be what kills it.
MAX_LOSSES = 5
_log = logging.getLogger(__name__)

OnEvent = Callable[[str], object]  # gets one line of text


class Scheduler:
    """The state of a sweep in progress. `on_event` is told what happens, one line each."""

    def __init__(
        self,
        sweep: Sweep,
        study: SweepStudy,
        folder: SweepFolder,
        allow_import: Sequence[str] = (),
        on_event: OnEvent = lambda _: None,
    ) -> None:
        self._sweep, self._study, self._folder = sweep, study, folder
        self._allow_import, self._on_event = tuple(allow_import), on_event
        self._running: set[tuple[int, int]] = set()  # (trial, seed)
        self._losses: Counter[tuple[int, int]] = Counter()
        self._progress: dict[tuple[int, int], int] = {}  # step of the newest checkpoint at the last loss
        self._open = [trial.number for trial in study.trials if trial.is_open]
        self._settle()

    @property
    def is_finished(self) -> bool:
        """Whether every trial has ended."""
        return not self._open and len(self._study.trials) >= self._sweep.trials

    def next_task(self) -> RunTask | None:
        """The next run to start, which counts as running from now on; None if all that is left waits for others."""
        while True:
            for number in list(self._open):
                task = self._next_of(self._study.trials[number])
                if task is not None:
                    return task
            if len(self._study.trials) >= self._sweep.trials:
                return None
            self._open.append(self._study.add_trial().number)

    def note(self, task: RunTask, report: RunReport) -> None:
        """Record how a task ended."""
        place = (task.trial, task.seed)
        self._running.discard(place)
        if not self._study.trials[task.trial].is_open:  # another of its seeds failed meanwhile
            return
        if report.kind == "finished":
            if task.rung is not None:
                self._study.note_rung(task.trial, task.seed, task.rung, report.rung_value)
            self._study.note_values(task.trial, task.seed, report.values)
            self._on_event(f"trial {task.trial}, seed {task.seed}: finished, {self._show(report.values)}")
        elif report.kind == "paused" and task.rung is not None:
            self._study.note_rung(task.trial, task.seed, task.rung, report.rung_value)
        elif report.kind == "failed":
            self._note_failure(task, report.error)
        elif report.kind == "lost":
            self._note_loss(task, report.error)
        self._settle()

    # --- runs ---

    def _next_of(self, trial: TrialRecord) -> RunTask | None:
        rung = self._rung_of(trial)
        for seed in self._sweep.seeds:
            place = (trial.number, seed)
            is_done = seed in trial.seed_values or (rung is not None and seed in trial.rung_values.get(rung, {}))
            if place in self._running or is_done:
                continue
            try:
                config = self._sweep.config_of(trial.params, seed)
            except HotlapError as error:  # two settings, each valid alone, that do not fit together
                self._end_failed(trial.number, f"its settings cannot run: {error}")
                return None
            self._running.add(place)
            return RunTask(
                trial=trial.number,
                seed=seed,
                folder=str(self._folder.run_path(trial.number, seed)),
                config=config.as_plain(),
                objectives=tuple((objective.name, objective.direction) for objective in self._sweep.objectives),
                rung=rung,
                allow_import=self._allow_import,
            )
        return None

    def _note_failure(self, task: RunTask, error: str) -> None:
        trial = self._study.note_failure(task.trial, task.seed, error)
        count = len(trial.failures[task.seed])
        what = f"trial {task.trial}, seed {task.seed}: failed: {error}"
        if count <= MAX_RETRIES:
            self._on_event(f"{what} It is tried again ({count} of {MAX_RETRIES}).")
        else:
            self._on_event(f"{what} The trial counts as failed.")
            self._end_failed(task.trial, f"seed {task.seed}: {error}")

    def _note_loss(self, task: RunTask, error: str) -> None:
        place = (task.trial, task.seed)
        steps = CheckpointManager(self._folder.run_path(*place)).steps()
        step = steps[-1] if steps else 0
        if step > self._progress.get(place, 0):
            self._losses[place] = 0
        self._progress[place] = step
        self._losses[place] += 1
        if self._losses[place] >= MAX_LOSSES:
            reason = f"{error}, {MAX_LOSSES} times in a row without a new checkpoint. Is there enough memory?"
            self._study.note_failure(task.trial, task.seed, reason)
            self._on_event(f"trial {task.trial}, seed {task.seed}: {reason} The trial counts as failed.")
            self._end_failed(task.trial, f"seed {task.seed}: {reason}")
        else:
            self._on_event(f"trial {task.trial}, seed {task.seed}: {error}. It resumes from step {step}.")

    def _end_failed(self, number: int, reason: str) -> None:
        self._study.fail(number, reason)
        self._open.remove(number)

    # --- rungs and ends ---

    def _settle(self) -> None:
        """End the trials that can end, and decide at the rungs what can be decided; one decision may allow others."""
        changed = True
        while changed:
            changed = False
            for number in list(self._open):
                trial = self._study.trials[number]
                if all(seed in trial.seed_values for seed in self._sweep.seeds):
                    self._complete(trial)
                    changed = True
                elif (rung := self._rung_of(trial)) is not None:
                    changed |= self._decide(trial, rung)

    def _decide(self, trial: TrialRecord, rung: int) -> bool:
        """Prune a trial that has reached its rung and is not among the best there; whether it was decided."""
        if self._median_at(trial, rung) is None or not self._is_decidable(trial.number, rung):
            return False
        if self._is_promoted(trial.number, rung):
            return False  # `_rung_of` counts it as passed from now on
        self._study.note_median_at_rung(trial.number, rung, self._median_or_worst(trial, rung))
        self._study.prune(trial.number)
        self._open.remove(trial.number)
        self._on_event(f"trial {trial.number}: stopped after {rung} steps, not among the best there")
        return True

    def _complete(self, trial: TrialRecord) -> None:
        for rung in self._sweep.rungs:
            self._study.note_median_at_rung(trial.number, rung, self._median_or_worst(trial, rung))
        medians = []
        for index, objective in enumerate(self._sweep.objectives):
            medians.append(objective.median([trial.seed_values[seed][index] for seed in self._sweep.seeds]))
        self._study.complete(trial.number, medians)
        self._open.remove(trial.number)
        self._on_event(f"trial {trial.number}: complete, {self._show(medians)}")

    def _rung_of(self, trial: TrialRecord) -> int | None:
        """The rung that the trial has to reach next; None: it may run to the end."""
        for rung in self._sweep.rungs:
            is_there = self._median_at(trial, rung) is not None
            if not (is_there and self._is_decidable(trial.number, rung) and self._is_promoted(trial.number, rung)):
                return rung
        return None

    def _is_decidable(self, number: int, rung: int) -> bool:
        """Whether all trials before it have reached this rung or have ended."""
        return all(
            not self._study.trials[other].is_open or self._median_at(self._study.trials[other], rung) is not None
            for other in self._open
            if other < number
        )

    def _is_promoted(self, number: int, rung: int) -> bool:
        """Whether a trial is among the best 1/factor (at least one) of the trials up to its number at this rung."""
        objective = self._sweep.objectives[0]
        sign = 1.0 if objective.direction == "minimize" else -1.0
        own = sign * self._median_or_worst(self._study.trials[number], rung)
        others = [self._median_at(trial, rung) for trial in self._study.trials[:number]]
        values = sorted([own, *(sign * value for value in others if value is not None)])
        return own <= values[max(1, len(values) // self._sweep.factor) - 1]

    def _median_at(self, trial: TrialRecord, rung: int) -> float | None:
        """The median of a trial's seeds at a rung; None while one of them has not reached it."""
        reached = trial.rung_values.get(rung, {})
        if any(seed not in reached for seed in self._sweep.seeds):
            return None
        return self._sweep.objectives[0].median([reached[seed] for seed in self._sweep.seeds])

    def _median_or_worst(self, trial: TrialRecord, rung: int) -> float:
        median = self._median_at(trial, rung)
        return self._sweep.objectives[0].worst if median is None else median

    def _show(self, values: Sequence[float | None]) -> str:
        return show_values(self._sweep.objectives, values)


def show_values(objectives: Sequence[Objective], values: Sequence[float | None]) -> str:
    """Objectives and their values in words: `gap_to_optimal 0.083`."""
    shown = []
    for objective, value in zip(objectives, values, strict=True):
        has_value = value is not None and value not in (float("inf"), float("-inf"))
        shown.append(f"{objective.name} {value:.6g}" if has_value else f"no {objective.name}")
    return ", ".join(shown)

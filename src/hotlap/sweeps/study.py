"""A sweep's study: Optuna's journal file, which holds every trial, its settings, its seeds' figures and its state.

The journal is the only record of a sweep's progress. Each change is one line, so a sweep that is killed anywhere
continues from the last complete line. The settings of trial n are a function of the sampler's seed, n and the trials
that ended before, not of a sampler's memory: a resumed sweep draws what an uninterrupted one would have drawn.
"""

import itertools
import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hotlap.atomic_files import open_plain
from hotlap.errors import ConfigError, ModelError, OutputFileError, one_line
from hotlap.sweeps.search_space import ChoiceParameter, Parameter, grid_points
from hotlap.sweeps.sweep_file import Sweep

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

TrialStateName = Literal["running", "complete", "pruned", "failed"]
# Optuna's default, written out because the trials before it are drawn at random.
_STARTUP_TRIALS = 10
_VALUES, _RUNG, _FAILURES, _REASON = "values", "rung", "failures", "reason"
_CHUNK = 1 << 16


@dataclass(frozen=True)
class TrialRecord:
    """A trial as the journal has it; figures that do not exist are None."""

    number: int
    state: TrialStateName
    params: Mapping[str, Any]
    values: tuple[float, ...] | None  # medians over the seeds, infinite where they do not exist; None until complete
    seed_values: Mapping[int, tuple[float | None, ...]]  # of the finished seeds
    rung_values: Mapping[int, Mapping[int, float | None]]  # rung to seed to figure
    failures: Mapping[int, tuple[str, ...]]  # of a seed's runs
    reason: str | None  # why it failed

    @property
    def is_open(self) -> bool:
        """Whether it has runs left to do."""
        return self.state == "running"


def import_optuna() -> Any:
    """Optuna, quiet; a ConfigError says how to install it."""
    try:
        import optuna
    except ImportError:
        raise ConfigError("sweeps need the package optuna. Install it: pip install 'hotlap[sweeps]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class SweepStudy:
    """The trials of one sweep. Only one process may open it for writing: the one that holds the sweep's lock."""

    def __init__(self, path: Path, name: str, sweep: Sweep, *, is_writer: bool) -> None:
        self._optuna = import_optuna()
        self._sweep, self._path = sweep, path
        self._distributions = {parameter.key: _distribution(self._optuna, parameter) for parameter in sweep.space}
        self._study: optuna.Study | None = None
        self.trials: list[TrialRecord] = []
        _refuse_linked(path)
        if is_writer:
            _drop_partial_line(path)
        elif not path.is_file():
            return
        try:
            self._open_study(name, is_writer)
        # A journal is replayed by Optuna; one that is damaged or of another sweep can break it in many ways.
        except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
            raise ModelError(
                f"{path}: is not a readable journal of this sweep ({type(error).__name__}: {one_line(error)}). "
                "Restore it from a copy."
            ) from None
        except OSError as error:
            raise OutputFileError(f"{path}: cannot be opened ({error.strerror}). Check the folder.") from None

    def _open_study(self, name: str, is_writer: bool) -> None:
        backend = self._optuna.storages.journal.JournalFileBackend(str(self._path), lock_obj=_NoLock())
        storage = self._optuna.storages.JournalStorage(backend)
        studies = storage.get_all_studies()
        quiet = self._optuna.samplers.RandomSampler(seed=0)  # unused: `_draw` makes one for each trial
        if studies:
            self._study = self._optuna.load_study(study_name=studies[0].study_name, storage=storage, sampler=quiet)
            self.trials = [self._record(trial) for trial in self._study.get_trials(deepcopy=False)]
        elif is_writer:
            directions = [objective.direction for objective in self._sweep.objectives]
            self._study = self._optuna.create_study(
                storage=storage, study_name=name, directions=directions, sampler=quiet
            )

    # --- changes, each one line of the journal ---

    def add_trial(self) -> TrialRecord:
        """Draw the settings of the next trial and note it as running."""
        number = len(self.trials)
        trial = self._optuna.trial.create_trial(
            state=self._optuna.trial.TrialState.RUNNING, params=self._draw(number), distributions=self._distributions
        )
        self._open.add_trial(trial)
        return self._refresh(number)

    def note_values(self, number: int, seed: int, values: Sequence[float | None]) -> TrialRecord:
        """Note the objectives of a finished run."""
        return self._set(number, f"{_VALUES}:{seed}", list(values))

    def note_rung(self, number: int, seed: int, rung: int, value: float | None) -> TrialRecord:
        """Note the figure of a run at a rung."""
        return self._set(number, f"{_RUNG}:{seed}:{rung}", value)

    def note_failure(self, number: int, seed: int, error: str) -> TrialRecord:
        """Note that a run failed."""
        failures = [*self.trials[number].failures.get(seed, ()), error]
        return self._set(number, f"{_FAILURES}:{seed}", failures)

    def note_median_at_rung(self, number: int, rung: int, value: float) -> None:
        """Report the median over seeds at a rung, which Optuna's dashboard draws and its sampler uses."""
        self._open._storage.set_trial_intermediate_value(self._trial_id(number), rung, value)

    def complete(self, number: int, values: Sequence[float]) -> TrialRecord:
        """End a trial whose runs have all finished."""
        self._open.tell(number, list(values), state=self._optuna.trial.TrialState.COMPLETE)
        return self._refresh(number)

    def prune(self, number: int) -> TrialRecord:
        """End a trial that was not among the best at a rung."""
        self._open.tell(number, state=self._optuna.trial.TrialState.PRUNED)
        return self._refresh(number)

    def fail(self, number: int, reason: str) -> TrialRecord:
        """End a trial one of whose runs failed too often."""
        self._set(number, _REASON, reason)
        self._open.tell(number, state=self._optuna.trial.TrialState.FAIL)
        return self._refresh(number)

    # --- readings ---

    def importances(self) -> dict[str, float]:
        """How much of the first objective each parameter explains, summing to 1; empty with too little data."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        varied = [key for key in self._distributions if len({repr(trial.params[key]) for trial in complete}) > 1]
        if len(complete) < 4 or not varied:
            return {}
        sign = 1.0 if self._sweep.objectives[0].direction == "minimize" else -1.0  # it explains low values
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it repeats that it explains low values
                found = self._optuna.importance.get_param_importances(
                    self._open,
                    evaluator=self._optuna.importance.PedAnovaImportanceEvaluator(),
                    params=varied,
                    target=lambda trial: sign * trial.values[0],
                )
        except (ValueError, RuntimeError):  # e.g. all trials have the same value
            return {}
        return {key: float(value) for key, value in found.items() if np.isfinite(value)}

    # --- parts ---

    @property
    def _open(self) -> "optuna.Study":
        if self._study is None:
            raise ModelError(f"{self._path}: has no study yet.")
        return self._study

    def _trial_id(self, number: int) -> int:
        return self._open._storage.get_trial_id_from_study_id_trial_number(self._open._study_id, number)

    def _set(self, number: int, key: str, value: Any) -> TrialRecord:
        self._open._storage.set_trial_user_attr(self._trial_id(number), key, value)
        return self._refresh(number)

    def _refresh(self, number: int) -> TrialRecord:
        record = self._record(self._open._storage.get_trial(self._trial_id(number)))
        if number == len(self.trials):
            self.trials.append(record)
        else:
            self.trials[number] = record
        return record

    def _draw(self, number: int) -> dict[str, Any]:
        """The settings of a trial, as Optuna stores them."""
        sweep, samplers = self._sweep, self._optuna.samplers
        if sweep.sampler == "grid":
            point = next(itertools.islice(grid_points(sweep.space), number, None))
            return {parameter.key: _to_stored(parameter, point[parameter.key]) for parameter in sweep.space}
        seed = int(np.random.SeedSequence([sweep.sampler_seed, number]).generate_state(1)[0])
        if sweep.sampler == "random":
            sampler = samplers.RandomSampler(seed=seed)
        else:
            sampler = samplers.TPESampler(
                seed=seed, n_startup_trials=_STARTUP_TRIALS, multivariate=False, constant_liar=True
            )
        # Drawn before the trial is noted, so that the journal has it with all its settings or not at all.
        draft = self._optuna.trial.create_trial(state=self._optuna.trial.TrialState.RUNNING)
        return {
            key: sampler.sample_independent(self._open, draft, key, distribution)
            for key, distribution in self._distributions.items()
        }

    def _record(self, trial: "FrozenTrial") -> TrialRecord:
        attrs = trial.user_attrs
        rungs: dict[int, dict[int, float | None]] = {}
        found: dict[str, dict[int, tuple[Any, ...]]] = {_VALUES: {}, _FAILURES: {}}
        for key, value in attrs.items():
            kind, *numbers = key.split(":")
            if kind in found:
                found[kind][int(numbers[0])] = tuple(value)
            elif kind == _RUNG:
                rungs.setdefault(int(numbers[1]), {})[int(numbers[0])] = value
        return TrialRecord(
            number=trial.number,
            state=_STATES[trial.state.name],
            params={p.key: _from_stored(p, trial.params[p.key]) for p in self._sweep.space},
            values=tuple(trial.values) if trial.state.name == "COMPLETE" and trial.values is not None else None,
            seed_values=found[_VALUES],
            rung_values=rungs,
            failures=found[_FAILURES],
            reason=attrs.get(_REASON),
        )


_STATES: dict[str, TrialStateName] = {
    "RUNNING": "running",
    "WAITING": "running",
    "COMPLETE": "complete",
    "PRUNED": "pruned",
    "FAIL": "failed",
}


class _NoLock:
    """Optuna's own lock is a file that a killed process leaves behind; the sweep's lock does its work."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _refuse_linked(path: Path) -> None:
    """Refuse a journal that is a link, or another name of some other file: Optuna would write to that."""
    try:
        os.close(open_plain(path, os.O_RDONLY))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputFileError(f"{path}: cannot be used ({error.strerror or error}). Check the folder.") from None


def _drop_partial_line(path: Path) -> None:
    """Remove the end of a line that a killed process was writing, so that the next line does not join it."""
    try:
        with path.open("r+b") as file:
            end = file.seek(0, 2)
            place = end
            while place > 0:
                start = max(0, place - _CHUNK)
                file.seek(start)
                found = file.read(place - start).rfind(b"\n")
                if found >= 0:
                    place = start + found + 1
                    break
                place = start
            if place < end:
                logging.getLogger(__name__).info("%s: dropped an incomplete last line.", path)
                file.truncate(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputFileError(f"{path}: cannot be opened ({error.strerror or error}). Check the folder.") from None


def _distribution(optuna: Any, parameter: Parameter) -> Any:
    """The parameter as one of Optuna's distributions."""
    kinds = optuna.distributions
    if isinstance(parameter, ChoiceParameter):
        return kinds.CategoricalDistribution(tuple(_to_stored(parameter, choice) for choice in parameter.choices))
    if parameter.is_whole:
        return kinds.IntDistribution(
            int(parameter.low), int(parameter.high), log=parameter.log, step=int(parameter.step or 1)
        )
    return kinds.FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def _to_stored(parameter: Parameter, value: Any) -> Any:
    """A choice as Optuna stores it: lists as JSON text."""
    if isinstance(parameter, ChoiceParameter) and not isinstance(value, str | int | float):
        return json.dumps(value)
    return value


def _from_stored(parameter: Parameter, value: Any) -> Any:
    if isinstance(parameter, ChoiceParameter):
        for choice in parameter.choices:
            stored = _to_stored(parameter, choice)
            if stored == value and type(stored) is type(value):
                return choice
    return value

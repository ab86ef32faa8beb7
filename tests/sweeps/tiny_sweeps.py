"""Sweeps of runs that take a fraction of a second, and pools that answer without training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.scheduler import Scheduler
from hotlap.sweeps.study import SweepStudy, TrialRecord
from hotlap.sweeps.sweep_file import Sweep, load_sweep
from hotlap.sweeps.sweep_folder import SweepFolder, create_folder
from hotlap.sweeps.sweep_runner import run_sweep

TINY: dict[str, Any] = {
    "algo": "ppo",
    "env": "CartPole-v1",
    "steps": 256,
    "seeds": [1, 2],
    "objective": "final_reward_mean",
    "direction": "maximize",
    "sampler": "grid",
    "recording_interval": 32,
    "ppo": {"n_steps": 32, "batch_size": 32, "n_epochs": 2},
    "policy": {"net_arch": [8]},
    "checkpoint": {"interval": 64},
    "evaluation": {"interval": 64, "episodes": 1, "final_episodes": 2},
    "space": {"ppo.learning_rate": {"choices": [1e-3, 3e-3]}},
}


def write_file(path: Path, **changes: Any) -> Path:
    """A sweep file; a change to None removes a key."""
    data = {key: value for key, value in {**TINY, **changes}.items() if value is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


def make_sweep(tmp_path: Path, name: str = "tiny", **changes: Any) -> tuple[Sweep, SweepFolder]:
    """A new sweep with its folder."""
    file = write_file(tmp_path / f"{name}.toml", **changes)
    sweep = load_sweep(file)
    return sweep, create_folder(file, f"{tmp_path / name}/", sweep)


class AnsweringPool:
    """A pool of one or more slots whose runs end at once, oldest first, with the report that `answer` gives."""

    def __init__(self, answer: Callable[[RunTask], RunReport], num_slots: int = 1, is_lifo: bool = False) -> None:
        self.num_slots, self._answer, self._is_lifo = num_slots, answer, is_lifo
        self._tasks: list[RunTask] = []
        self.started: list[RunTask] = []

    @property
    def num_running(self) -> int:
        return len(self._tasks)

    def start(self, task: RunTask) -> None:
        self._tasks.append(task)
        self.started.append(task)

    def wait(self, timeout_s: float) -> list[tuple[RunTask, RunReport]]:
        task = self._tasks.pop(-1 if self._is_lifo else 0)
        return [(task, self._answer(task))]

    def stop(self) -> None:
        self._tasks.clear()


def open_scheduler(sweep: Sweep, folder: SweepFolder, events: list[str] | None = None) -> tuple[Scheduler, SweepStudy]:
    """A scheduler over the sweep's journal as it is now."""
    study = SweepStudy(folder.journal, folder.name, sweep, is_writer=True)
    on_event = (lambda _: None) if events is None else events.append
    return Scheduler(sweep, study, folder, on_event=on_event), study


def outcome(trials: list[TrialRecord]) -> list[tuple[Any, ...]]:
    """What must be equal in an interrupted and an uninterrupted sweep."""
    return [(t.number, t.state, dict(t.params), t.values, dict(t.seed_values), dict(t.rung_values)) for t in trials]


def run_all(
    tmp_path: Path, answer: Callable[[RunTask], RunReport], **changes: Any
) -> tuple[Sweep, SweepFolder, SweepStudy]:
    """A sweep whose runs give known reports, run to its end."""
    sweep, folder = make_sweep(tmp_path, **changes)
    scheduler, study = open_scheduler(sweep, folder)
    assert run_sweep(scheduler, AnsweringPool(answer))
    return sweep, folder, study

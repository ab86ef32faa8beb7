"""Starts, stops and resumes training runs: each is `hotlap train` in a process of its own that outlives the server."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hotlap.atomic_files import DEVICE_FAULT, is_device_name
from hotlap.errors import ConfigError, OutputFileError, TrainingError, explain_missing
from hotlap.python_processes import python_command
from hotlap.runs.recipe import recipe_names, resolve_config
from hotlap.runs.run_folder import EXPERIMENTS
from hotlap.runs.run_lock import find_holder, is_locked
from hotlap.tracks.registry import find_entries
from hotlap.web.runs import RunView, find_run_folder, is_run_id, run_folders, unknown_run, view_run

MAX_RUNNING = 2
MIN_STEPS, MAX_STEPS = 1_000, 1_000_000_000
CHECKPOINTS_PER_RUN = 50
MIN_CHECKPOINT_INTERVAL = 10_000
DEFAULT_RECIPE = "racer-ppo"
LOG_NAME = "train.log"
_MAX_LOG_TAIL = 2_000
_FINE_EXITS = (0, 130)  # finished; stopped and saved


@dataclass(frozen=True)
class RunRequest:
    """What a person asks for; None means the recipe's own value."""

    track: str
    recipe: str = DEFAULT_RECIPE
    steps: int | None = None
    seed: int | None = None
    name: str | None = None


class TooManyRunsError(TrainingError):
    """As many runs as may train at once are training."""


class RunStateError(TrainingError):
    """A run is not in the state that was asked for."""


@lru_cache(maxsize=1)
def racer_recipes() -> list[str]:
    """The shipped recipes of the racer for one track; others are not started from the page."""
    names = [name for name in recipe_names() if name.startswith("racer-")]
    return [name for name in names if not resolve_config(name, {}).racer.tracks]


def refuse_without_libraries() -> None:
    """Raise what says how to install them where training has not all its libraries: the run would end at once."""
    for library in ("torch", "stable_baselines3", "tensorboard"):
        if find_spec(library) is None:
            raise explain_missing(ModuleNotFoundError(name=library))


class RunProcesses:
    """The runs of the results folder, and the processes of those that this server started."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, RunView] = {}  # until their folder can be read
        self._resuming: set[str] = set()  # until their process has the lock
        self._stopped: dict[str, int] = {}  # the process that was told to stop: a second signal would kill it

    def list(self) -> list[RunView]:
        """Every run, newest first."""
        views = {run_id: self._complete(view_run(run_id, path), run_id) for run_id, path in run_folders().items()}
        starting = [self._complete(None, run_id) for run_id in self._begun if run_id not in views]
        return [view for view in (*starting, *views.values()) if view is not None]

    def view(self, run_id: str) -> RunView:
        """One run; a TrainingError where there is no such run."""
        folder = run_folders().get(run_id)
        view = self._complete(view_run(run_id, folder) if folder else None, run_id)
        if view is None:
            raise unknown_run(run_id)
        return view

    def start(self, request: RunRequest) -> RunView:
        """Start a new run."""
        find_entries([request.track])
        if request.recipe not in racer_recipes():
            raise ConfigError(f"recipe {request.recipe!r:.80} is not known. Use one of {', '.join(racer_recipes())}.")
        if request.steps is not None and not MIN_STEPS <= request.steps <= MAX_STEPS:
            raise ConfigError(f"steps must be from {MIN_STEPS} to {MAX_STEPS}, got {request.steps}.")
        asked = {"racer.track": request.track, "steps": request.steps, "seed": request.seed}
        config = resolve_config(request.recipe, asked)
        refuse_without_libraries()
        self._refuse_too_many()
        run_id, folder = _reserve_folder(request.name, request.track)
        interval = max(config.steps // CHECKPOINTS_PER_RUN, MIN_CHECKPOINT_INTERVAL)
        options = {
            "--recipe": request.recipe,
            "--track": request.track,
            "--steps": str(config.steps),
            "--seed": str(config.seed),
            "--run-name": run_id,
            "--checkpoint-interval": str(interval),
            "--keep": "0",
        }
        self._begun[run_id] = RunView(
            run_id, config.algo, request.track, config.seed, config.steps, 0, "starting", None
        )
        self._spawn(run_id, folder, ["train", *(text for pair in options.items() for text in pair)])
        return self.view(run_id)

    def stop(self, run_id: str) -> RunView:
        """Tell a run's process to save and stop. It takes seconds; telling it twice changes nothing."""
        view = self.view(run_id)
        process = self._processes.get(run_id)
        folder = run_folders().get(run_id)
        if process is not None and process.poll() is None:
            pid = process.pid
        else:
            holder = find_holder(folder) if folder else None
            if holder is None or folder is None or not is_locked(folder):
                raise RunStateError(f"run {run_id}: it is not training, so it cannot be stopped.")
            if not holder.is_here:
                raise RunStateError(f"run {run_id}: it trains on another machine ({holder.host}). Stop it there.")
            pid = holder.pid
        if self._stopped.get(run_id) != pid:
            self._stopped[run_id] = pid
            _tell_to_stop(pid)
        return view

    def resume(self, run_id: str, steps: int | None = None) -> RunView:
        """Continue a run that was stopped, or extend a finished one to `steps`."""
        folder, view = find_run_folder(run_id), self.view(run_id)
        if view.state in ("running", "starting"):
            raise RunStateError(f"run {run_id}: it is training already.")
        if view.state == "finished" and (steps is None or steps <= view.steps):
            raise RunStateError(f"run {run_id}: it is finished ({view.steps} steps). Give more steps to extend it.")
        if steps is not None and not MIN_STEPS <= steps <= MAX_STEPS:
            raise ConfigError(f"steps must be from {MIN_STEPS} to {MAX_STEPS}, got {steps}.")
        refuse_without_libraries()
        self._refuse_too_many()
        extra = [] if steps is None else ["--steps", str(steps)]
        self._spawn(run_id, folder, ["resume", str(folder), *extra])
        self._resuming.add(run_id)
        return self.view(run_id)

    def _refuse_too_many(self) -> None:
        running = [view.run_id for view in self.list() if view.state in ("running", "starting")]
        if len(running) >= MAX_RUNNING:
            raise TooManyRunsError(
                f"{len(running)} runs are training ({', '.join(running)}); at most {MAX_RUNNING} may. Stop one first."
            )

    def _spawn(self, run_id: str, folder: Path, arguments: Sequence[str]) -> None:
        """Start a process that has no terminal, no parent to die with, and its output in the run's folder."""
        detached = (
            {"start_new_session": True}
            if os.name == "posix"
            else {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        )
        try:
            with (folder / LOG_NAME).open("ab") as log:
                self._processes[run_id] = subprocess.Popen(  # noqa: S603 (our own interpreter, checked arguments)
                    python_command("hotlap", *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    **detached,
                )
        except OSError as error:
            raise OutputFileError(f"{folder}: the run cannot be started ({error.strerror}).") from None

    def _complete(self, view: RunView | None, run_id: str) -> RunView | None:
        """The view with what only the server knows: whether its process starts, runs or has failed."""
        process = self._processes.get(run_id)
        if view is None:
            view = self._begun.get(run_id)
        else:
            self._begun.pop(run_id, None)
        if view is None or process is None:
            return view
        exit_code = process.poll()  # also lets the system forget a process that has ended
        if exit_code is not None or view.state == "running":
            self._resuming.discard(run_id)
        if view.state == "running":
            return view
        if exit_code is None:
            is_starting = view.state == "stopped" or run_id in self._resuming
            return replace(view, state="starting") if is_starting else view
        if view.state == "finished":
            return view
        if exit_code in _FINE_EXITS:
            return replace(view, state="stopped")
        return replace(view, state="failed", error=_last_line(EXPERIMENTS / run_id / LOG_NAME))


def _reserve_folder(name: str | None, track: str) -> tuple[str, Path]:
    """The new, empty folder of a run, and its id."""
    if name is not None and not is_run_id(name):
        raise ConfigError(
            f"name {name!r:.80}: use 1 to 128 letters, digits, '.', '-' and '_', first a letter or digit."
        )
    if name is not None and is_device_name(name):
        raise ConfigError(f"name {name!r:.80} {DEVICE_FAULT}. Choose another.")
    number = 1
    while True:
        run_id = name or f"page-{track}-{number}"
        try:
            EXPERIMENTS.mkdir(parents=True, exist_ok=True)
            (EXPERIMENTS / run_id).mkdir()
        except FileExistsError:
            if name is not None:
                raise RunStateError(f"run {name}: there is one of this name. Choose another.") from None
            number += 1
        except OSError as error:
            raise OutputFileError(f"{EXPERIMENTS}: cannot hold a run ({error.strerror}).") from None
        else:
            return run_id, EXPERIMENTS / run_id


def _tell_to_stop(pid: int) -> None:
    """What Ctrl-C does to `hotlap train`: it saves and stops."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal.SIGTERM)


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_LOG_TAIL))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return "it ended early."
    text = next((line.strip() for line in reversed(lines) if line.strip()), "it ended early.")
    return "".join(c if c.isprintable() else " " for c in text)[:400]

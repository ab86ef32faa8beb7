"""Solves optimal laps for the page: one at a time, in processes, with progress."""

import json
import math
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hotlap.errors import HotlapError, OptimalError
from hotlap.optimal.reference import find_reference
from hotlap.python_processes import python_command
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, load_track

MAX_WAITING = 4
MAX_SOLVING_S = 600.0
# About a minute for every two kilometres on one core; only for the estimate of the progress within a stage.
SECONDS_PER_KM = 30.0

OnSolved = Callable[[str, bytes], None]  # track id, the optimal driver's replay


class SolverBusyError(OptimalError):
    """As many laps as may wait are waiting."""


@dataclass
class SolverJob:
    """One lap to solve."""

    track_id: str
    length_m: float
    state: str = "waiting"  # waiting, solving, solved, failed
    stage: tuple[float, float] = (0.0, 0.0)
    stage_began_s: float = 0.0
    message: str = "waiting for the lap before it"

    def progress(self, now_s: float) -> float:
        """The fraction that is done; within a stage, an estimate by time."""
        begins, ends = self.stage
        usual_s = max(1.0, SECONDS_PER_KM * self.length_m / 1000.0 * (ends - begins))
        return begins + (ends - begins) * (1.0 - math.exp(-(now_s - self.stage_began_s) / usual_s))


class OptimumJobs:
    """The laps being solved. A failed one can be asked for again."""

    def __init__(self, on_solved: OnSolved, command: tuple[str, ...] | None = None) -> None:
        self._on_solved = on_solved
        self._command = command or tuple(python_command("hotlap.web.optimum_process"))
        self._jobs: dict[tuple[str, str], SolverJob] = {}
        self._queue: deque[SolverJob] = deque()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="optimum", daemon=True)
        self._thread.start()

    def start(self, track: Track) -> None:
        """Solve a track's lap, unless that is under way."""
        key = (track.track_id, track_digest(track.nodes))
        with self._changed:
            known = self._jobs.get(key)
            if known is not None and known.state in ("waiting", "solving"):
                return
            if len(self._queue) >= MAX_WAITING:
                raise SolverBusyError(f"{len(self._queue)} laps are waiting to be solved already. Try again later.")
            job = SolverJob(track.track_id, track.nodes.length_m)
            self._jobs[key] = job
            self._queue.append(job)
            self._changed.notify_all()

    def describe(self, track: Track, replay_url: str | None) -> dict[str, Any]:
        """The state of a track's optimal lap, as the API gives it."""
        reference = find_reference(track)
        job = self._jobs.get((track.track_id, track_digest(track.nodes)))
        is_pending = job is not None and job.state in ("waiting", "solving")
        state = "none" if job is None else job.state
        if reference is not None and not is_pending:
            state = "solved"
        answer: dict[str, Any] = {
            "state": state,
            "progress": 1.0 if state == "solved" else job.progress(time.monotonic()) if job else 0.0,
            "message": job.message if job and state != "solved" else "",
            "lap_time_sec": reference.lap_time_s if reference else None,
            "standing_lap_time_sec": reference.standing_lap_time_s if reference else None,
            "line": None,
            "replay": replay_url,
        }
        if reference:
            line = reference.raceline
            columns = (("x_m", line.x_m), ("y_m", line.y_m), ("speed_mps", line.vx_mps))
            answer["line"] = {name: [round(float(value), 3) for value in values] for name, values in columns}
        return answer

    def close(self) -> None:
        """Stop solving."""
        with self._changed:
            self._is_closing = True
            self._queue.clear()
            if self._process is not None:
                self._process.kill()
            self._changed.notify_all()
        self._thread.join(10.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or bool(self._queue))
                if self._is_closing:
                    return
                job = self._queue.popleft()
                job.state, job.stage_began_s = "solving", time.monotonic()
            try:
                self._solve(job)
            except (OSError, ValueError, HotlapError) as error:
                job.state, job.message = "failed", " ".join(str(error).split())[:400]
            else:
                job.state, job.stage = "solved", (1.0, 1.0)

    def _solve(self, job: SolverJob) -> None:
        with TemporaryDirectory(prefix="hotlap-") as folder:
            replay_path, log_path = Path(folder) / "replay", Path(folder) / "log"
            with log_path.open("wb") as log, self._changed:
                if self._is_closing:
                    return
                self._process = subprocess.Popen(  # noqa: S603 (our own interpreter, an id from the registry)
                    [*self._command, job.track_id, str(replay_path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            process = self._process
            timer = threading.Timer(MAX_SOLVING_S, process.kill)
            timer.start()
            try:
                for text in process.stdout or ():
                    _read_stage(job, text)
                exit_code = process.wait()
            finally:
                timer.cancel()
                self._process = None
            if exit_code != 0 or not replay_path.is_file():
                lines = log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise OptimalError(lines[-1] if lines else f"the solver ended after {MAX_SOLVING_S:g} s at the latest.")
            self._on_solved(job.track_id, replay_path.read_bytes())


def _read_stage(job: SolverJob, text: str) -> None:
    """Take over what the process says; other output, as of the solver itself, is ignored."""
    try:
        stage = json.loads(text)
        job.stage, job.message = (float(stage["from"]), float(stage["to"])), str(stage["message"])
        job.stage_began_s = time.monotonic()
    except (ValueError, KeyError, TypeError):
        return


def has_solver() -> bool:
    """Whether CasADi is installed."""
    from importlib.util import find_spec

    return find_spec("casadi") is not None


def reference_times(track_id: str) -> tuple[float | None, float | None]:
    """Flying and standing optimal lap time (s) of a track; None where it was not solved."""
    reference = find_reference(load_track(track_id))
    return (reference.lap_time_s, reference.standing_lap_time_s) if reference else (None, None)

"""Real sweeps in processes of their own, killed at random, and comparisons between two of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from hotlap.sweeps.status import SweepStatus, read_status
from hotlap.sweeps.sweep_folder import SweepFolder
from sweeps.tiny_sweeps import outcome
from tiny_runs import assert_same_run


def start(*arguments: object, cwd: Path) -> "subprocess.Popen[bytes]":
    """`hotlap sweep` in the background."""
    command = [sys.executable, "-m", "hotlap", "sweep", *map(str, arguments), "-q"]
    with (cwd / "sweep.log").open("ab") as log:
        return subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log)


def children(pid: int) -> list[int]:
    """The child processes of a process (Linux)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    """SIGKILL, unless it has just ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_until(condition, timeout_s: float = 60.0) -> None:
    """Wait for a condition."""
    ends_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends_s, "waited too long"
        time.sleep(0.02)


def assert_same_sweep(one: Path, other: Path) -> SweepStatus:
    """Assert that two sweeps have equal trials, and bit-identical runs in those that are complete."""
    first, second = read_status(SweepFolder(one)), read_status(SweepFolder(other))
    assert first.is_finished
    assert second.is_finished
    assert outcome(list(first.trials)) == outcome(list(second.trials))
    for trial in first.trials:
        if trial.state == "complete":
            for seed in first.sweep.seeds:
                config = first.sweep.config_of(trial.params, seed)
                paths = (status.folder.run_path(trial.number, seed) for status in (first, second))
                assert_same_run(*paths, config)
    return first

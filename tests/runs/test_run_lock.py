"""The lock of a run's folder: taken over from the dead, refused by the living, held by one at a time."""

import errno
import json
import os
import socket
import subprocess
import sys

import pytest

from attacks.run_folders.attacked_runs import needs_posix
from forked_python import Popen
from hotlap.errors import TrainingError
from hotlap.runs import run_lock
from hotlap.runs.run_lock import LOCK_NAME, RunLock


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"pid": "x"}', b"\xff" * 5000, b"\0" * 100])
def test_a_damaged_lock_of_nobody_is_taken_over(tmp_path, text):
    (tmp_path / LOCK_NAME).write_bytes(text)
    with RunLock(tmp_path) as lock:
        assert lock.is_held
    assert list(tmp_path.iterdir()) == []


@needs_posix
def test_where_the_file_system_has_no_locks_the_text_decides(tmp_path, monkeypatch):
    def no_locks(descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_lock, "_lock_file", no_locks)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = socket.gethostname()
    for pid, host, words in (
        (os.getppid(), mine, f"PID {os.getppid()} on {mine}.*--run-name"),
        (dead.pid, "elsewhere", f"PID {dead.pid} on elsewhere.*delete .*{LOCK_NAME}"),
    ):
        (tmp_path / LOCK_NAME).write_text(json.dumps({"pid": pid, "host": host}))
        with pytest.raises(TrainingError, match=words):
            RunLock(tmp_path).acquire()
    (tmp_path / LOCK_NAME).write_text(json.dumps({"pid": dead.pid, "host": mine}))
    with RunLock(tmp_path) as lock:
        assert lock.is_held


def test_of_many_processes_exactly_one_at_a_time_has_the_lock(tmp_path):
    code = """if True:
        import sys, time
        from pathlib import Path
        from hotlap.errors import TrainingError
        from hotlap.runs.run_lock import RunLock
        folder, taken = Path(sys.argv[1]), 0
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            try:
                with RunLock(folder):
                    (folder / "inside").open("x").close()
                    taken += 1
                    (folder / "inside").unlink()
            except TrainingError:
                pass
        print(taken)
    """
    processes = [
        Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    taken = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert sum(map(int, taken)) > 0
    assert list(tmp_path.iterdir()) == []

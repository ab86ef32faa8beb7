"""Several processes on one run folder: one at a time owns it, and a killed one does not block it."""

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from attacks.run_folders.attacked_runs import (
    RUN,
    assert_as_in_peace,
    content,
    needs_posix,
    write_recipe,
)
from forked_python import Popen
from hotlap import errors as hotlap_errors
from hotlap.runs import run_lock
from hotlap.runs.run_lock import LOCK_NAME, RunLock
from tiny_runs import assert_same_run, tiny_config

HOLD = """if True:
    import sys
    from pathlib import Path
    from hotlap.runs.run_lock import RunLock
    RunLock(Path(sys.argv[1])).acquire()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(stopped):
    """Another process that holds the run's lock."""
    process = Popen(
        [sys.executable, "-c", HOLD, str(stopped)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("command", ["resume", "checkpoint", "overwrite", "continue"])
def test_a_second_process_is_refused_with_pid_and_host(holder, hotlap, command):
    arguments = {
        "resume": ["resume", RUN],
        "checkpoint": ["resume", RUN / "checkpoint_40.zip"],
        "overwrite": ["train", "--recipe", write_recipe(), "--overwrite"],
        "continue": ["train", "--recipe", write_recipe(), "--continue"],
    }[command]
    before = content(RUN)
    code, lines = hotlap(*arguments)
    assert code == 2
    assert f"in use by another process (PID {holder.pid} on {socket.gethostname()})" in lines[-1]
    assert content(RUN) == before


def test_the_lock_of_a_killed_process_is_taken_over_with_a_word(holder, hotlap):
    holder.kill()
    holder.wait()
    assert (RUN / LOCK_NAME).exists()
    code, lines = hotlap("resume", RUN)
    assert code == 0
    assert any(f"left by a process that ended early (PID {holder.pid} on " in line for line in lines)
    assert not (RUN / LOCK_NAME).exists()
    assert_as_in_peace(hotlap)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"pid": "x"}', b"\xff" * 5000, b"\0" * 100])
def test_a_damaged_lock_of_nobody_is_taken_over(stopped, hotlap, text):
    (stopped / LOCK_NAME).write_bytes(text)
    assert hotlap("resume", stopped)[0] == 0


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
        with pytest.raises(hotlap_errors.TrainingError, match=words):
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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_two_commands_on_one_folder_one_trains_and_the_other_is_refused(here):
    Path("tiny.toml").write_text(tiny_config(env="CartPole-v1", steps=20_000).to_toml())
    command = [sys.executable, "-m", "hotlap", "train", "--recipe", "tiny.toml", "--run-name", "./run"]
    for more in ([], ["--overwrite"], ["--continue"]):
        processes = [subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True) for _ in range(2)]
        errors = [process.communicate()[1] for process in processes]
        codes = [process.returncode for process in processes]
        assert sorted(codes) == [0, 2], errors
        assert errors[codes.index(2)].count("hotlap: ") == 1
        assert "Traceback" not in "".join(errors)
    subprocess.run([*command[:-1], "./whole", "-q"], check=True)
    assert_same_run(Path("run"), Path("whole"), tiny_config(env="CartPole-v1", steps=20_000))

"""Several processes on one run folder: one at a time owns it, and a killed one does not block it."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from attacks.run_folders.attacked_runs import RUN, assert_as_in_peace, content, write_recipe
from forked_python import Popen
from hotlap.runs.run_lock import LOCK_NAME
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

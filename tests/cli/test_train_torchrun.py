"""`hotlap train` as two processes over loopback: the same bits each time, killed and resumed, one line on errors."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forked_python
from process_pairs import HOTLAP, TIMEOUT_S, ProcessPair, run_pair
from tiny_runs import assert_same_run, tensors, tiny_config

# Several processes that import torch take seconds each, and much longer on a busy machine.
pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
    pytest.mark.timeout(240),
]

# Thirty rollouts, with three checkpoints and one evaluation.
CONFIG = tiny_config(
    num_envs=4,
    steps=30 * 32 * 4,
    ppo={"batch_size": 64},
    checkpoint={"interval": 1000},
    evaluation={"interval": 2000, "episodes": 1},
)
PROCESSES = ["--standalone", "--nproc-per-node", "2"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", *PROCESSES]
FORKED_TORCHRUN = [sys.executable, str(Path(__file__).with_name("forked_torchrun.py")), *PROCESSES]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "recipe.toml"
    path.write_text(CONFIG.to_toml())
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory, recipe):
    """A run of two processes, never interrupted."""
    path = tmp_path_factory.mktemp("whole") / "run"
    (code, out, err), (other_code, *other_printed) = run_pair(
        [*HOTLAP, "train", "--recipe", recipe, "--run-name", path]
    )
    assert (code, other_code, other_printed) == (0, 0, ["", ""]), err
    assert "3,840 steps" in out
    assert "3840/3840 steps" in err
    return path


def error_lines(ends):
    return [line for _, _, err in ends for line in err.splitlines() if line.startswith("hotlap: ")]


def resume(run):
    ends = run_pair([*HOTLAP, "resume", run, "-q"])
    assert ends == [(0, "", "")] * 2


def test_torchrun_gives_the_same_bits_again(tmp_path, recipe, whole):
    arguments = [*FORKED_TORCHRUN, *HOTLAP, "train", "--recipe", str(recipe), "--run-name", str(tmp_path / "run")]
    forked_python.run(arguments, check=True, capture_output=True, timeout=TIMEOUT_S)
    assert_same_run(whole, tmp_path / "run", CONFIG)


def test_a_killed_process_ends_the_run_with_one_line_and_a_checkpoint(tmp_path, recipe, whole):
    run = tmp_path / "run"
    pair = ProcessPair([*HOTLAP, "train", "--recipe", recipe, "--run-name", run, "-q"])
    pair.send(1, signal.SIGKILL, run / "checkpoint_1000.zip")
    ends = pair.end()
    assert [code for code, _, _ in ends] == [2, -signal.SIGKILL]
    [line] = error_lines(ends)
    command = re.escape(f"torchrun --nproc-per-node 2 -m hotlap resume {run}")
    found = re.search(rf"another process .* stopped at step (\d+). (checkpoint_\d+.zip) is intact: {command}", line)
    assert found, line
    assert "Traceback" not in ends[0][2]
    assert 1000 <= int(found[1]) < CONFIG.steps
    assert (run / found[2]).is_file()
    assert found[2] != "checkpoint_1000.zip"  # the state before the rollout in which it was killed
    resume(run)
    assert_same_run(whole, run, CONFIG)


STUCK = Path(__file__).with_name("stuck_training.py")


@pytest.mark.parametrize("dying_rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_process_that_waits_for_ever_for_a_dead_one_ends_with_one_line(tmp_path, recipe, whole, dying_rank):
    run = tmp_path / "run"
    ends = run_pair([STUCK, "train", "--recipe", recipe, "--run-name", run, "-q", dying_rank])
    assert [end[0] for end in ends] == ([-signal.SIGKILL, 2] if dying_rank == 0 else [2, -signal.SIGKILL]), ends
    [line] = error_lines(ends)
    assert re.search(r"another process of this run has ended, so training stopped at step \d+. checkpoint_\d+", line)
    assert line.endswith(f"is intact: torchrun --nproc-per-node 2 -m hotlap resume {run}.")
    resume(run)
    assert_same_run(whole, run, CONFIG)


@pytest.mark.slow
def test_a_watched_run_ends_as_any_other(tmp_path, recipe, whole):
    run = tmp_path / "run"
    assert run_pair([STUCK, "train", "--recipe", recipe, "--run-name", run, "-q", "none"]) == [(0, "", "")] * 2
    assert_same_run(whole, run, CONFIG)


@pytest.mark.slow
def test_a_signal_to_any_process_saves_and_stops_all(tmp_path, recipe, whole):
    run = tmp_path / "run"
    pair = ProcessPair([*HOTLAP, "train", "--recipe", recipe, "--run-name", run])
    pair.send(1, signal.SIGTERM, run / "checkpoint_1000.zip")
    (code, _, err), other = pair.end()
    assert (code, other) == (130, (130, "", ""))
    assert re.search(r"stopped and saved at step \d+. Continue with: torchrun --nproc-per-node 2 -m hotlap resume", err)
    resume(run)
    assert_same_run(whole, run, CONFIG)


@pytest.mark.slow
def test_without_its_leader_the_other_process_says_what_happened(tmp_path, recipe, whole):
    run = tmp_path / "run"
    pair = ProcessPair([*HOTLAP, "train", "--recipe", recipe, "--run-name", run, "-q"])
    pair.send(0, signal.SIGKILL, run / "checkpoint_1000.zip")
    ends = pair.end()
    assert [code for code, _, _ in ends] == [-signal.SIGKILL, 2]
    [line] = error_lines(ends)
    assert "is intact: torchrun --nproc-per-node 2 -m hotlap resume" in line
    resume(run)
    assert_same_run(whole, run, CONFIG)


@pytest.mark.slow
def test_under_torchrun_a_killed_process_ends_all(tmp_path, recipe, whole):
    run = tmp_path / "run"
    arguments = [*TORCHRUN, *HOTLAP, "train", "--recipe", recipe, "--run-name", run, "-q"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (run / "checkpoint_1000.zip").exists():
        assert process.poll() is None
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], check=True, capture_output=True, text=True
    ).stdout.split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    assert [line for line in err.splitlines() if line.startswith("hotlap: ")] != []
    resume(run)
    assert_same_run(whole, run, CONFIG)


@pytest.mark.slow
def test_one_process_can_resume_what_two_began(tmp_path, recipe):
    run = tmp_path / "run"
    pair = ProcessPair([*HOTLAP, "train", "--recipe", recipe, "--run-name", run, "-q"])
    pair.send(1, signal.SIGKILL, run / "checkpoint_1000.zip")
    pair.end()
    command = [sys.executable, *HOTLAP, "resume", str(run)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert "written by 2 processes; with 1, the resumed run will not be bit-identical" in done.stderr
    assert tensors(run / f"{CONFIG.experiment_id}_model.zip")


def test_what_cannot_be_divided_is_refused_in_one_line(tmp_path, recipe):
    ends = run_pair([*HOTLAP, "train", "--recipe", recipe, "--num-envs", 5, "--run-name", tmp_path / "run"])
    assert [code for code, _, _ in ends] == [2, 2]
    assert [out + err for _, out, err in ends if out + err] == [
        "hotlap: num_envs must be a multiple of the number of processes, 2, got 5.\n"
    ]
    assert not (tmp_path / "run").exists()

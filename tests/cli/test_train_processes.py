"""Real processes and signals: a run killed at any moment, even inside a save, and resumed is bit-identical."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from forked_python import Popen
from forked_python import run as run_python
from tiny_runs import LUNAR, RACER, assert_same_run, read_events, tiny_config

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

COMMAND = [sys.executable, "-m", "hotlap"]
DYING = [sys.executable, str(Path(__file__).with_name("dying_hotlap.py"))]
TIMEOUT_S = 120.0  # for one process on a busy machine
NUM_KILLS = 30


class Process:
    """A `hotlap` process whose stderr is read while it runs."""

    def __init__(self, arguments, command=COMMAND, **options):
        self.process = Popen(
            [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def wait_for(self, words):
        """Read stderr up to a line that contains `words`; False if it ended before."""
        return any(words in line for line in self.process.stderr)

    def end(self):
        """Exit code and the rest of stdout and stderr."""
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, err


def write_recipe(path, config):
    path.write_text(config.to_toml())
    return path


# A few seconds of learning each, saved several times a second.
LONG = [
    tiny_config("ppo", RACER, 8, 40_000, checkpoint={"interval": 1000, "keep": 3}, ppo={"batch_size": 256}),
    tiny_config("sac", RACER, 2, 3_000, checkpoint={"interval": 100, "keep": 3}, sac={"buffer_size": 2000}),
    tiny_config("a2c", LUNAR, 4, 24_000, checkpoint={"interval": 700, "keep": 3}),
    tiny_config("ppo", LUNAR, 4, 24_000, checkpoint={"interval": 700, "keep": 3}, ppo={"batch_size": 128}),
    tiny_config("a2c", RACER, 8, 40_000, checkpoint={"interval": 1000, "keep": 3}),
    tiny_config("sac", LUNAR, 1, 2_000, checkpoint={"interval": 100, "keep": 3}, sac={"buffer_size": 2000}),
]


@pytest.mark.timeout(TIMEOUT_S)
def test_a_reader_that_goes_away_does_not_end_the_training(tmp_path):
    recipe, run = write_recipe(tmp_path / "recipe.toml", tiny_config("ppo", RACER, 2, 64)), tmp_path / "run"
    reader, writer = os.pipe()
    os.close(reader)  # as `hotlap train … 2>&1 | head` does after a line
    arguments = ["train", "--recipe", recipe, "--run-name", run]
    done = run_python([*COMMAND, *map(str, arguments)], stdout=writer, stderr=writer, timeout=TIMEOUT_S)
    os.close(writer)
    assert done.returncode == 0
    assert (run / "ppo_seed42_results.json").is_file()


@pytest.mark.timeout(TIMEOUT_S)
def test_after_its_reader_went_away_ctrl_c_still_saves(tmp_path):
    recipe, run = write_recipe(tmp_path / "recipe.toml", tiny_config("ppo", RACER, 2, 10**6)), tmp_path / "run"
    process = Process(["train", "--recipe", recipe, "--run-name", run])
    assert process.wait_for("0/1000000 steps")
    process.process.stderr.close()
    process.process.send_signal(signal.SIGINT)
    assert process.process.wait(TIMEOUT_S) == 130
    assert len(list(run.glob("checkpoint_*.zip"))) == 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("algo", ["ppo", "sac", "a2c"])
def test_thirty_kills_at_random_moments_leave_the_run_bit_identical(tmp_path, algo):
    rng, kills = random.Random(1), Counter()
    for number, config in enumerate(cycle(config for config in LONG if config.algo == algo)):
        if kills.total() >= NUM_KILLS:
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        recipe = write_recipe(folder / "recipe.toml", config)
        subprocess.run([*COMMAND, "train", "--recipe", recipe, "--run-name", folder / "whole", "-q"], check=True)
        run = folder / "killed"
        arguments = ["train", "--recipe", recipe, "--run-name", run]
        while not list(run.glob("*_results.json")):
            kills.update(kill_once(arguments, rng))
            arguments = ["resume", run]
            if kills.total() >= NUM_KILLS:
                subprocess.run([*COMMAND, "resume", run, "-q"], check=True)
        assert_same_run(folder / "whole", run, config)
        assert read_events(folder / "whole") == read_events(run)
        assert list(run.rglob(".*.partial")) == []
    assert min(kills["timed"], kills["before"], kills["after"]) >= NUM_KILLS // 10


def kill_once(arguments, rng):
    """Start a process and kill it, in a save or at a random moment; returns how, or nothing if it finished first."""
    manner = rng.choice(["timed", "timed", "before", "after"])
    if manner == "timed":
        process = Process(arguments)
        process.wait_for("run: ")
        time.sleep(rng.uniform(0.0, 2.5))
        process.process.kill()
    else:
        process = Process(arguments, [*DYING, manner, str(rng.randint(2, 8))])
    code, _, err = process.end()
    assert code in (0, -signal.SIGKILL), err
    return [manner] if code else []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_stopped_by_a_signal_is_saved_and_can_be_resumed(tmp_path, number):
    config = LONG[0]
    recipe = write_recipe(tmp_path / "recipe.toml", config)
    process = Process(["train", "--recipe", recipe, "--run-name", "./run"], cwd=tmp_path)
    assert process.wait_for("0/40000 steps")
    time.sleep(1.0)
    process.process.send_signal(number)
    code, out, err = process.end()
    assert (code, out) == (130, "")
    assert "Stopping: saving first" in err
    [step] = re.findall(r"stopped and saved at step (\d+). Continue with: hotlap resume run", err)
    assert (tmp_path / "run" / f"checkpoint_{step}.zip").is_file()
    for arguments in (["resume", "run"], ["train", "--recipe", recipe, "--run-name", "./whole"]):
        subprocess.run([*COMMAND, *arguments, "-q"], check=True, cwd=tmp_path)
    assert_same_run(tmp_path / "whole", tmp_path / "run", config)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("second", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_second_signal_stops_immediately(tmp_path, second, code):
    """The first signal comes in a SAC rollout that never ends, so that it cannot save."""
    config = tiny_config("sac", RACER, 1, 10**6, sac={"train_freq": 10**6, "learning_starts": 10**6})
    recipe = write_recipe(tmp_path / "recipe.toml", config)
    process = Process(["train", "--recipe", recipe, "--run-name", tmp_path / "run"])
    assert process.wait_for("0/1000000 steps")
    process.process.send_signal(signal.SIGINT)
    assert process.wait_for("again to stop immediately")
    process.process.send_signal(second)
    found, _, err = process.end()
    assert found == code
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_on_a_terminal_there_is_a_bar(tmp_path):
    import pty

    recipe = write_recipe(tmp_path / "recipe.toml", tiny_config(env="CartPole-v1", steps=2000))
    master, slave = pty.openpty()
    arguments = [*COMMAND, "train", "--recipe", recipe, "--run-name", tmp_path / "run"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=slave, text=True, env={
        **os.environ, "TERM": "xterm", "COLUMNS": "100"
    })  # fmt: skip
    os.close(slave)
    seen = b""
    with suppress(OSError):  # raised when the process has closed its end
        while part := os.read(master, 4096):
            seen += part
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert b"100%" in seen
    assert b"\x1b[" in seen
    assert out.startswith("ppo_seed42: 2,000 steps")
    assert "\x1b" not in out


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_json_is_the_only_line_on_stdout_of_a_real_process(tmp_path):
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_config(env="CartPole-v1"))
    command = [*COMMAND, "train", "--recipe", recipe, "--run-name", tmp_path / "run", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    [line] = answer.stdout.splitlines()
    assert line.startswith('{"run": ')
    assert "\x1b" not in answer.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_torch_has_its_configured_threads_although_the_simulator_starts_its_own(tmp_path):
    """In a new process: numba sets the number of threads of both, once, when its own start."""
    config = tiny_config(num_envs=512, steps=1024, ppo={"n_steps": 2, "batch_size": 1024})
    write_recipe(tmp_path / "recipe.toml", config)
    code = """if True:
        import sys
        from pathlib import Path
        from hotlap.runs.run_config import load_config
        from hotlap.runs.run_folder import create_run
        from hotlap.training.trainer import Trainer
        import torch
        config = load_config(Path(sys.argv[1]) / "recipe.toml")
        Trainer(config, create_run(config, sys.argv[1] + "/run", False)).run()
        print(torch.get_num_threads())
    """
    answer = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1"]

"""Twenty random SIGKILLs on real sweeps and their workers: the finished sweep equals an uninterrupted one."""

import random
import sys
import time

import pytest

from sweeps.killed_sweeps import assert_same_sweep, children, kill, start
from sweeps.tiny_sweeps import write_file

SEED = 20
NUM_KILLS = 20
SWEEPS = {
    "grid": {"space": {"ppo.learning_rate": {"choices": [1e-3, 3e-3]}}},
    "random": {
        "sampler": "random",
        "trials": 6,
        "seeds": [1],
        "space": {"ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}},
        "halving": {"first_steps": 1024, "factor": 2},
    },
    "tpe": {
        "sampler": "tpe",
        "trials": 14,
        "seeds": [1],
        "steps": 2048,
        "space": {"ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}, "ppo.n_epochs": {"low": 1, "high": 4}},
    },
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the worker processes in /proc")
@pytest.mark.parametrize(("kind", "workers"), [("grid", 2), ("random", 2), ("tpe", 1)])
def test_a_sweep_killed_twenty_times_equals_one_that_never_was(tmp_path, kind, workers):
    settings = {"steps": 8192, "checkpoint": {"interval": 512}, "evaluation": {"interval": 512, "episodes": 1}}
    file = write_file(tmp_path / "tiny.toml", **(settings | SWEEPS[kind]))
    whole = start(file, "--name", "whole", "--workers", workers, cwd=tmp_path)
    assert whole.wait(900) == 0
    rng = random.Random(SEED)
    process = start(file, "--name", "killed", "--workers", workers, cwd=tmp_path)
    folder = tmp_path / "results" / "sweeps" / "killed"
    kills, parent_kills = 0, 0
    while kills < NUM_KILLS and process.poll() is None:
        # Kills count once the sweep has its folder; then at any moment, importing and starting included.
        time.sleep(rng.uniform(0.2, 6.0))
        if not (folder / "sweep.toml").exists():
            continue
        workers_now = children(process.pid)
        kills += 1
        if workers_now and rng.random() < 0.5:
            kill(rng.choice(workers_now))
        else:
            parent_kills += 1
            kill(process.pid)
            process.wait()
            process = start("resume", "killed", "--workers", workers, cwd=tmp_path)
    assert process.wait(900) == 0
    assert kills >= NUM_KILLS // 2
    assert parent_kills >= 3
    status = assert_same_sweep(tmp_path / "results" / "sweeps" / "whole", folder)
    assert all(trial.failures == {} for trial in status.trials)
    print(f"{kind}: {kills} kills, {parent_kills} of the sweep's own process")

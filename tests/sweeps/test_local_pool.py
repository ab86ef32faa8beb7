"""The local pool: runs are ordinary runs, processes that die are replaced, and none outlives its sweep."""

import os
import signal
import subprocess
import sys
import time

import pytest

from forked_python import Popen
from hotlap.errors import TrainingError
from hotlap.sweeps.local_pool import LocalPool
from hotlap.sweeps.status import read_status
from hotlap.sweeps.sweep_runner import run_sweep
from hotlap.training.trainer import Trainer
from sweeps.killed_sweeps import assert_same_sweep, is_alive, kill, wait_until
from sweeps.tiny_sweeps import make_sweep, open_scheduler
from tiny_runs import assert_same_run, folder_at

LONGER = {"steps": 800, "seeds": [1, 2], "space": None, "evaluation": {"interval": 0, "final_episodes": 1}}


@pytest.fixture
def forked(monkeypatch):
    """Workers are forked, which makes them start sooner."""
    monkeypatch.setattr(subprocess, "Popen", Popen)


@pytest.fixture(scope="module")
def module_pool(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Popen)
        pool = LocalPool(1, tmp_path_factory.mktemp("workers"))
    yield pool
    pool.close()


@pytest.fixture
def pool(module_pool, forked):
    """One pool for several tests, whose workers are forked, also those that replace others."""
    return module_pool


def has_resumed(run):
    """Whether a later process kept what an earlier one had logged, which one that starts again drops."""
    first, *later = sorted((run / "tensorboard").iterdir())
    return bool(later) and first.stat().st_size > 0


def run_on(pool, sweep, folder, events=None):
    scheduler, study = open_scheduler(sweep, folder, events)
    assert run_sweep(scheduler, pool)
    return study


@pytest.mark.timeout(180)
def test_the_runs_of_a_sweep_are_those_that_hotlap_train_makes(pool, tmp_path):
    sweep, folder = make_sweep(tmp_path)
    study = run_on(pool, sweep, folder)
    assert [trial.state for trial in study.trials] == ["complete", "complete"]
    for trial in study.trials:
        config = sweep.config_of(trial.params, 2)
        alone = tmp_path / f"alone{trial.number}"
        results = Trainer(config, folder_at(alone, config)).run().results
        assert_same_run(alone, folder.run_path(trial.number, 2), config)
        assert trial.seed_values[2] == (results.metrics.final_reward_mean,)


@pytest.mark.timeout(180)
def test_halving_pauses_runs_at_their_rung_and_resumes_the_best_ones_bit_for_bit(pool, tmp_path):
    space = {"ppo.learning_rate": {"choices": [1e-3, 1e-8, 3e-3]}}
    sweep, folder = make_sweep(tmp_path, space=space, seeds=[3], steps=320, halving={"first_steps": 100, "factor": 2})
    assert sweep.rungs == (100, 200)
    study = run_on(pool, sweep, folder)
    states = [trial.state for trial in study.trials]
    assert states[0] == "complete"
    # The first evaluation after 100 steps is the one at 128, and the pause is before the next rollout.
    assert all(set(trial.rung_values) >= {100} for trial in study.trials)
    for trial in study.trials:
        if trial.state == "complete":
            config = sweep.config_of(trial.params, 3)
            alone = tmp_path / f"alone{trial.number}"
            Trainer(config, folder_at(alone, config)).run()
            assert_same_run(alone, folder.run_path(trial.number, 3), config)
            assert has_resumed(folder.run_path(trial.number, 3))
        else:
            assert not (folder.run_path(trial.number, 3) / "ppo_seed3_results.json").exists()


@pytest.mark.timeout(180)
def test_a_run_that_cannot_work_says_why_and_the_pool_goes_on(pool, tmp_path):
    sweep, folder = make_sweep(tmp_path, seeds=[1], space={"ppo.learning_rate": {"choices": [1e-3, 1e38]}})
    events: list[str] = []
    study = run_on(pool, sweep, folder, events)
    assert [trial.state for trial in study.trials] == ["complete", "failed"]
    assert study.trials[1].reason.startswith("seed 1: RuntimeError: value cannot be converted")
    assert len([line for line in events if "tried again" in line]) == 2


@pytest.mark.timeout(300)
def test_three_kills_of_processes_and_sweep_leave_the_same_sweep(pool, tmp_path):
    sweep, whole = make_sweep(tmp_path, "whole", **LONGER)
    run_on(pool, sweep, whole)
    sweep, folder = make_sweep(tmp_path, "killed", **LONGER)

    def num_checkpoints(seed):
        return len(list(folder.run_path(0, seed).glob("checkpoint_*.zip")))

    # A worker is killed twice while the sweep lives on, then everything at once, then it resumes.
    scheduler, _ = open_scheduler(sweep, folder)
    victim = LocalPool(1, folder.logs)
    kills = iter([(1, 2), (1, 6), (2, 4)])
    seed, count = next(kills)
    killed = 0
    while killed < 3:
        if not victim.num_running:
            victim.start(scheduler.next_task())
        for task, report in victim.wait(0.01):
            scheduler.note(task, report)
        if num_checkpoints(seed) >= count:
            killed += 1
            for pid in victim.process_ids:
                kill(pid)
            seed, count = next(kills, (0, 0))
    victim.close()
    study = run_on(pool, sweep, folder)
    assert study.trials[0].failures == {}
    assert has_resumed(folder.run_path(0, 1))
    assert has_resumed(folder.run_path(0, 2))
    assert_same_sweep(whole.path, folder.path)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_ends_when_its_sweep_does_even_in_the_middle_of_a_run(tmp_path):
    sweep, folder = make_sweep(tmp_path, **(LONGER | {"steps": 10_000_000}))
    scheduler, _ = open_scheduler(sweep, folder)
    pool = LocalPool(1, folder.logs)
    pool.start(scheduler.next_task())
    [pid] = pool.process_ids
    wait_until(lambda: any(folder.run_path(0, 1).glob("checkpoint_*.zip")))
    began_s = time.monotonic()
    pool._workers[0].close_stdin()
    wait_until(lambda: not is_alive(pid))
    assert time.monotonic() - began_s < 20.0
    pool.close()


@pytest.mark.timeout(120)
def test_a_stop_saves_the_runs(forked, tmp_path):
    sweep, folder = make_sweep(tmp_path, **(LONGER | {"steps": 10_000_000, "checkpoint": {"interval": 0}}))
    scheduler, study = open_scheduler(sweep, folder)
    pool = LocalPool(1, folder.logs)
    stops = []
    try:
        journal = folder.run_path(0, 1) / "ppo_seed1_metrics.jsonl"
        is_training = lambda: bool(journal.is_file() and journal.stat().st_size)  # noqa: E731
        assert not run_sweep(scheduler, pool, lambda: is_training() or bool(stops))
    finally:
        pool.close()
    assert len(list(folder.run_path(0, 1).glob("checkpoint_*.zip"))) == 1
    assert study.trials[0].state == "running"
    assert not read_status(folder).is_finished


def test_processes_that_never_start_are_reported_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    pool = LocalPool(1, tmp_path / "workers")
    try:
        with pytest.raises(TrainingError, match=r"do not start \(exited with code 1\)\. Their output is in .*\.log"):
            wait_until(lambda: pool.wait(1.0))
    finally:
        pool.close()


def test_ctrl_c_does_not_reach_the_workers(tmp_path):
    pool = LocalPool(1, tmp_path / "workers")
    [pid] = pool.process_ids
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGKILL)
    pool.close()

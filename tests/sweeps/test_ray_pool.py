"""Sweeps on a real local Ray cluster of three nodes, one of which is removed while its run trains."""

import threading
import time

import pytest

from hotlap.errors import ConfigError, TrainingError
from hotlap.sweeps import ray_pool
from hotlap.sweeps.local_pool import LocalPool
from hotlap.sweeps.ray_pool import RayPool
from hotlap.sweeps.sweep_runner import run_sweep
from sweeps.killed_sweeps import assert_same_sweep, wait_until
from sweeps.local_cluster import refuse_other_interfaces, three_nodes
from sweeps.tiny_sweeps import make_sweep, open_scheduler

RUNS = {"steps": 4096, "seeds": [1, 2, 3], "checkpoint": {"interval": 256}, "evaluation": {"interval": 0}}


@pytest.fixture
def cluster():
    pytest.importorskip("ray")
    with three_nodes() as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_carried", [False, True])
def test_a_node_removed_in_the_middle_of_a_sweep_leaves_the_same_sweep(cluster, tmp_path, is_carried):
    three, workers = cluster
    sweep, whole = make_sweep(tmp_path, "whole", **RUNS)
    local = LocalPool(1, whole.logs)
    scheduler, _ = open_scheduler(sweep, whole)
    assert run_sweep(scheduler, local)

    sweep, folder = make_sweep(tmp_path, "remote", **RUNS)
    scheduler, _ = open_scheduler(sweep, folder)
    local.start(scheduler.next_task())  # the sweep begins on the local pool and is resumed on the cluster
    while local.num_running:
        for task, report in local.wait(1.0):
            scheduler.note(task, report)
    local.close()
    events: list[str] = []
    scheduler, study = open_scheduler(sweep, folder, events)
    pool = RayPool(three.address, folder, is_carried=is_carried)
    refuse_other_interfaces()
    began_s = time.monotonic()

    def remove_node():
        if is_carried:  # nothing appears here until a run ends: both nodes are in the middle of the next ones then
            wait_until(lambda: len(list(folder.trials.glob("*/*_results.json"))) > 1, 300)
            time.sleep(1.0)
        else:
            wait_until(lambda: any(folder.trials.glob("*-seed2/checkpoint_1*.zip")), 300)
        three.remove_node(workers[0], allow_graceful=False)

    remover = threading.Thread(target=remove_node)
    remover.start()
    try:
        assert run_sweep(scheduler, pool)
    finally:
        remover.join()
        pool.close()
    print(f"carried: {is_carried}, {time.monotonic() - began_s:.0f} s", [line for line in events if "lost" in line])
    assert any("its machine or process was lost" in line for line in events)
    assert {trial.state for trial in study.trials} == {"complete"}
    assert all(trial.failures == {} for trial in study.trials)
    assert_same_sweep(whole.path, folder.path)
    assert not list(folder.path.glob(".cluster-marker"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stop_reaches_the_runs_on_all_machines_and_they_save(cluster, tmp_path):
    three, _ = cluster
    sweep, folder = make_sweep(tmp_path, **(RUNS | {"steps": 10_000_000, "checkpoint": {"interval": 0}}))
    scheduler, _ = open_scheduler(sweep, folder)
    pool = RayPool(three.address, folder)
    try:
        assert not run_sweep(scheduler, pool, lambda: len(list(folder.trials.glob("*/tensorboard/*"))) == 2)
    finally:
        pool.close()
    assert len(list(folder.trials.glob("*/checkpoint_*.zip"))) == 2


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere", "127.0.0.1:port"])
def test_a_cluster_that_is_not_there_is_one_line(tmp_path, address):
    pytest.importorskip("ray")
    _, folder = make_sweep(tmp_path)
    with pytest.raises(TrainingError, match=rf"--ray {address}: .*ray start --head"):
        RayPool(address, folder)


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'hotlap\[sweeps\]'"):
        ray_pool.import_ray()

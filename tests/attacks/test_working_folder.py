"""Python files in the current folder that are named like our libraries: no process of ours imports them."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from hotlap.sweeps.local_pool import LocalPool
from hotlap.sweeps.sweep_folder import SweepFolder
from hotlap.tracks.registry import load_track
from hotlap.web.optimum import OptimumJobs
from hotlap.web.run_processes import RunProcesses, RunRequest

DECOYS = ("numba", "typer", "msgspec", "gymnasium", "numpy", "torch", "casadi", "hotlap", "json", "queue", "signal")
STARTING_S = 50.0


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Lists the decoys that were imported. The current folder has one for each library."""
    folder, marks = tmp_path / "downloads", tmp_path / "executed"
    folder.mkdir()
    marks.mkdir()
    for name in DECOYS:
        code = f"open({str(marks / name)!r}, 'w').close()\nraise SystemExit('the decoy {name} was imported')\n"
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(folder)
    return lambda: sorted(path.name for path in marks.iterdir())


def wait_until(is_reached):
    deadline_s = time.monotonic() + STARTING_S
    while not is_reached():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_worker_of_a_sweep_does_not_import_them(executed, tmp_path):
    pool = LocalPool(1, tmp_path / "logs")
    try:
        [worker] = pool._workers
        wait_until(lambda: pool.wait(0.1) or worker.is_ready or worker.process.poll() is not None)
        assert executed() == []
        assert worker.is_ready
    finally:
        pool.close()


def test_a_run_started_on_the_page_does_not_import_them(executed):
    runs = RunProcesses()
    view = runs.start(RunRequest("track-01", steps=1_000_000_000))
    process = runs._processes[view.run_id]
    folder = Path("results/experiments") / view.run_id
    try:
        wait_until(lambda: (folder / "config.toml").exists() or process.poll() is not None)
        assert executed() == []
        assert (folder / "config.toml").exists()
    finally:
        process.kill()
        process.wait()


def test_a_run_resumed_on_the_page_does_not_import_them(executed):
    runs = RunProcesses()
    folder = Path("results/experiments/stopped")
    folder.mkdir(parents=True)
    runs._spawn("stopped", folder, ["resume", str(folder)])
    assert runs._processes["stopped"].wait(STARTING_S) == 2  # there is no run in it
    assert executed() == []
    assert "no run" in (folder / "train.log").read_text(encoding="utf-8")


def test_the_solver_of_the_page_does_not_import_them(executed):
    jobs = OptimumJobs(lambda track_id, replay: None)
    track = load_track("track-01")
    try:
        jobs.start(track)
        [job] = jobs._jobs.values()
        wait_until(lambda: job.message.startswith("solving") or job.state == "failed")
        assert executed() == []
        assert job.state == "solving"
    finally:
        jobs.close()


def test_the_command_as_a_module_does_not_import_them(executed):
    """Python itself imports its `runpy` and our package before any line of ours runs; all else is our affair."""
    (Path.cwd() / "hotlap.py").unlink()
    answer = subprocess.run(
        [sys.executable, "-m", "hotlap", "tracks", "list"], capture_output=True, text=True, timeout=STARTING_S
    )
    assert executed() == []
    assert "track-01" in answer.stdout


def test_machines_of_a_ray_cluster_are_not_told_to_import_them(executed, tmp_path, monkeypatch):
    """Ray puts the folder in which `ray.init` is called first on the path of every worker of the cluster."""
    from hotlap.sweeps import ray_pool

    home = Path.cwd()
    called_in: list[Path] = []
    strategies = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None
    ray = ModuleType("ray")
    ray.init = lambda **_: called_in.append(Path.cwd())
    ray.shutdown = lambda: None
    ray.get_runtime_context = lambda: SimpleNamespace(get_node_id=lambda: "here")
    ray.remote = lambda *_, **__: lambda kind: SimpleNamespace(remote=lambda *_: None)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    folder = SweepFolder(tmp_path / "sweep")
    folder.path.mkdir()
    pool = ray_pool.RayPool("auto", folder)
    [place] = called_in
    # Nobody else may write there while the cluster looks into it.
    assert not place.is_relative_to(home)
    assert list(place.iterdir()) == []
    assert os.name != "posix" or place.stat().st_mode & 0o077 == 0
    assert Path.cwd() == home
    pool.close()
    assert not place.exists()

    def fail(**_):
        called_in.append(Path.cwd())
        raise RuntimeError("no cluster")

    ray.init = fail
    with pytest.raises(ray_pool.TrainingError, match="no cluster"):
        ray_pool.RayPool("auto", folder)
    assert Path.cwd() == home
    assert not called_in[-1].exists()


def test_a_program_named_like_the_drivers_tool_is_not_run_by_doctor(executed, monkeypatch):
    """Windows looks for programs in the current folder first."""
    from hotlap.cli import doctor

    tool = Path.cwd() / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho OWNED\n", encoding="utf-8")
    tool.chmod(0o755)
    for found in ("nvidia-smi", "./nvidia-smi", str(tool)):
        monkeypatch.setattr(shutil, "which", lambda name, found=found: found)
        assert doctor._gpu() is None


def test_a_library_of_the_users_path_is_still_found(tmp_path, monkeypatch, executed):
    """PYTHONPATH is the user's own choice, even where it is the current folder."""
    from hotlap.python_processes import python_command

    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "my_library.py").write_text("WORD = 'found'\n", encoding="utf-8")
    (mine / "my_program.py").write_text(
        "import sys, my_library\nprint(my_library.WORD, __name__, sys.argv[1:])\n", encoding="utf-8"
    )
    command, environ = python_command("my_program", "--one", "two three"), {**os.environ, "PYTHONPATH": str(mine)}
    for folder in (Path.cwd(), mine):
        answer = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=STARTING_S)
        assert answer.stdout == "found __main__ ['--one', 'two three']\n"
    assert executed() == []

"""A task on a machine of a cluster: in the sweep's folder where it is shared, else in one that travels."""

from pathlib import Path

import msgspec
import pytest

from hotlap.sweeps import run_task
from hotlap.sweeps.ray_task import execute_remotely, is_shared
from hotlap.sweeps.run_archive import pack_run, unpack_run
from hotlap.sweeps.run_messages import RunReport, RunTask

REPORT = RunReport("finished", values=(1.5,), step=7)


@pytest.fixture
def executed(monkeypatch):
    """The folders of the tasks; each leaves a file there and reads what it finds."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")  # else the task sets it
    seen = []

    def execute(task, watch):
        folder = Path(task.folder)
        folder.mkdir(parents=True, exist_ok=True)
        seen.append((folder, sorted(path.name for path in folder.iterdir())))
        (folder / "config.json").write_text("new")
        return REPORT

    monkeypatch.setattr(run_task, "execute", execute)
    return seen


def run(folder, marker_file, marker, packed=None):
    task = RunTask(trial=0, seed=1, folder=str(folder), config={}, objectives=())
    content, returned = execute_remotely(
        msgspec.json.encode(task), str(marker_file), marker, lambda: packed, lambda: False
    )
    assert msgspec.json.decode(content, type=RunReport) == REPORT
    return returned


def test_a_folder_is_shared_where_its_marker_is_found(tmp_path):
    (tmp_path / "marker").write_text("this sweep")
    assert is_shared(str(tmp_path / "marker"), "this sweep")
    assert not is_shared(str(tmp_path / "marker"), "another")
    assert not is_shared(str(tmp_path / "absent"), "this sweep")


def test_a_shared_folder_is_trained_in_and_nothing_travels(tmp_path, executed):
    (tmp_path / "marker").write_text("here")
    assert run(tmp_path / "run", tmp_path / "marker", "here") is None
    assert executed == [(tmp_path / "run", [])]


def test_elsewhere_the_run_travels_there_and_back(tmp_path, executed):
    before = tmp_path / "before"
    before.mkdir()
    (before / "journal.jsonl").write_text("so far")
    returned = run(tmp_path / "run", tmp_path / "absent", "here", pack_run(before))
    [(folder, found)] = executed
    assert folder.name == "run"
    assert not folder.exists()
    assert found == ["journal.jsonl"]
    unpack_run(returned, tmp_path / "after")
    assert (tmp_path / "after" / "config.json").read_text() == "new"
    assert not (tmp_path / "run").exists()

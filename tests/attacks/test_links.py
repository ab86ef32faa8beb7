"""Links in folders of somebody else that commands write to or read from: refused in one line, never followed."""

import os
import shutil
from pathlib import Path

import pytest

from hotlap.sweeps.run_messages import RunReport
from hotlap.sweeps.sweep_runner import run_sweep
from hotlap.web.site import write_site
from sweeps.tiny_sweeps import AnsweringPool, make_sweep, open_scheduler

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder that no command is told of."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_bytes(b"not of hotlap")
    return folder


# --- hotlap site ---


@pytest.fixture(scope="module")
def written_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "site"
    write_site(folder)
    return folder


@pytest.mark.parametrize("name", ["js", "data", "api", "index.html", "js/app.js", "data/tracks.json", "sim.json"])
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_page_is_not_written_through_a_link(refused, outside, tmp_path, written_site, name, is_dangling):
    site = tmp_path / "site"
    shutil.copytree(written_site, site)
    place = site / name
    target = outside / "new" if is_dangling else outside / "moved"
    if is_dangling and place.is_file():
        place.unlink()
    else:
        place.rename(outside / "moved")
    place.symlink_to(target)
    before = content(outside), content(site)
    line = refused("site", site)
    if name == "sim.json" and is_dangling:
        assert "holds no page of hotlap" in line
    else:
        assert f"{name}: is a link" in line
    assert (content(outside), content(site)) == before
    assert place.is_symlink()


def test_a_page_is_written_where_the_named_folder_itself_is_a_link(hotlap, outside, tmp_path):
    """It is the user who named it."""
    (tmp_path / "public").symlink_to(tmp_path / "www")
    (tmp_path / "www").mkdir()
    assert hotlap("site", tmp_path / "public").code == 0
    assert (tmp_path / "www" / "js" / "app.js").is_file()


# --- sweeps ---


@pytest.fixture
def sweep(tmp_path):
    """The folder of a sweep whose first run has ended."""
    made, folder = make_sweep(tmp_path)
    scheduler, _ = open_scheduler(made, folder)
    pool = AnsweringPool(lambda task: RunReport("finished", values=(1.0,)))
    run_sweep(scheduler, pool, lambda: len(pool.started) == 1)
    folder.logs.mkdir(exist_ok=True)
    folder.report.mkdir(exist_ok=True)
    return folder


COMMANDS = (("status",), ("best",), ("report",), ("resume", "--workers", "1"))
PLACES = (
    "study.journal", "sweep.toml", "recipes", "recipes/0.toml", "trials", "trials/0000-seed1", "workers",
    "workers/worker-0.log", "report", "report/report.html", "best.toml", ".run.lock", ".cluster-marker",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", PLACES)
def test_a_sweep_is_not_read_or_written_through_a_link(refused, outside, sweep, command, name):
    place = sweep.path / name
    if place.exists():
        place.rename(outside / "moved")
    else:
        (outside / "moved").write_bytes(b"")
    place.symlink_to(outside / "moved")
    before = content(outside)
    line = refused("sweep", command[0], sweep.path, *command[1:])
    assert f"{name}: " in line
    assert "a link" in line
    assert content(outside) == before


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_journal_that_is_also_another_file_is_refused(refused, outside, sweep, command):
    sweep.journal.rename(outside / "moved")
    os.link(outside / "moved", sweep.journal)
    before = content(outside)
    assert "a hard link" in refused("sweep", command[0], sweep.path, *command[1:])
    assert content(outside) == before

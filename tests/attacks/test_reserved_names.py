"""Names of devices on Windows (`con`, `nul.txt`): refused everywhere and on every system, since folders are shared."""

from pathlib import Path

import pytest

from hotlap.errors import ConfigError, TrainingError
from hotlap.runs import run_folder
from hotlap.sweeps import sweep_folder
from hotlap.tracks.registry import check_id
from hotlap.web import run_processes
from hotlap.web.run_processes import RunProcesses, RunRequest
from sweeps.tiny_sweeps import write_file

CENTRELINE = Path(__file__).resolve().parents[2] / "src/hotlap/tracks/data/track-02.csv"
DEVICES = ["con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10))]
NAMES = [
    *DEVICES,
    "CON",
    "Nul",
    "con.txt",
    "AUX.tar.gz",
    "lpt1.",
    "com1.x",
    "COM\N{SUPERSCRIPT ONE}",
    "conin$",
    "CONOUT$",
    "nul .x",
]
# Names that only begin like a device's.
FREE = ["console", "nullpunkt", "com10", "com", "lpt0x", "aux-2", "my.con"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_commands_refuse_them_in_one_line(refused, folder):
    run = ("train", "--env", "CartPole-v1", "--steps", 10, "--run-name")
    sweep = ("sweep", write_file(folder / "sweep.toml"), "--name")
    for command in (run, sweep):
        assert "'con' is the name of a device of Windows" in refused(*command, "con")
    assert no_file_was_made(folder)


def no_file_was_made(folder: Path) -> bool:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".toml"] == []


@pytest.mark.parametrize("name", DEVICES)
def test_no_track_has_such_an_id(refused, folder, name):
    assert "a device of Windows" in refused("tracks", "import", CENTRELINE, "--id", name)
    assert "a device of Windows" in refused("tracks", "generate", "--seed", 1, "--id", name)
    assert no_file_was_made(folder)


@pytest.mark.parametrize("name", NAMES)
def test_no_run_has_such_a_name(name):
    for given in (name, f"somewhere/{name}"):
        with pytest.raises(TrainingError, match="a device of Windows"):
            run_folder.folder_of(given)


@pytest.mark.parametrize("name", [name for name in NAMES if name.isascii() and not set(name) & set("$ ")])
def test_no_run_of_the_page_has_such_a_name(folder, monkeypatch, name):
    monkeypatch.setattr(run_processes.subprocess, "Popen", None)  # nothing is started, even where it is not refused
    with pytest.raises(ConfigError, match="a device of Windows"):
        RunProcesses().start(RunRequest("track-01", name=name))
    assert no_file_was_made(folder)


@pytest.mark.parametrize("name", NAMES)
def test_no_sweep_has_such_a_name(name):
    with pytest.raises(ConfigError, match=r"a device of Windows|is not a name for a sweep"):
        sweep_folder.folder_of(name)
    with pytest.raises(ConfigError, match="a device of Windows"):
        sweep_folder.folder_of(f"somewhere/{name}")


@pytest.mark.parametrize("name", NAMES)
def test_no_driver_has_such_a_name(refused, name):
    """Windows would read a model `con` from the keyboard."""
    for command in ("drive", "evaluate", "report"):
        assert "a device of Windows" in refused(command, name)
    assert "a device of Windows" in refused("export", name, "--format", "onnx", "--out", "x.onnx")


@pytest.mark.parametrize("name", ["con.png", "out/NUL.png", "aux"])
def test_no_file_is_written_under_such_a_name(refused, folder, name):
    assert "a device of Windows" in refused("tracks", "show", "track-01", "--png", name)
    assert no_file_was_made(folder)


@pytest.mark.parametrize("name", FREE)
def test_names_that_only_begin_alike_are_free(name):
    if name.replace("-", "").isalnum():
        assert check_id(name) == name
    assert run_folder.folder_of(name).name == name
    assert sweep_folder.folder_of(name).name == name

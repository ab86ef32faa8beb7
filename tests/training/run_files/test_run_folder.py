"""A run's folder: found by name or path, never taken from another run, emptied of a run's own files only."""

import errno
import os
import re
from pathlib import Path

import pytest

from hotlap.errors import ConfigError, HotlapError, InputFileError, OutputFileError, TrainingError
from hotlap.training.run_config import RunConfig, load_config
from hotlap.training.run_files.run_folder import RunFolder, create_run, folder_of, open_run

CONFIG = RunConfig(algo="a2c", env="CartPole-v1", seed=7, steps=100, env_args={"a": 1})
EXPERIMENTS = Path("results/experiments")
OWN = [
    "config.toml",
    "a2c_seed7_model.zip",
    "a2c_seed7_best.zip",
    "a2c_seed7_results.json",
    "a2c_seed7_metrics.json",
    "a2c_seed7_metrics.jsonl",
    "checkpoint_100.zip",
    "checkpoint_99.zip",
    "tensorboard/events.out.tfevents.1.host",
    ".checkpoint_120.zip.12-34.partial",
    "a2c_seed7_results.json.12.partial",
    "config.toml.12.partial",
]
FOREIGN = [
    "notes.txt",
    "my_model.zip",
    "checkpoint_best.zip",
    "checkpoint_007.zip",
    "other.toml",
    "download.partial",
    "tensorboard/notes.txt",
    "plots/ppo_seed1_model.zip",
]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fill(folder: Path, names: list[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# --- names ---


def test_files_are_called_what_others_rely_on():
    folder = RunFolder(Path("x"), "ppo_seed42")
    names = {name: getattr(folder, name).as_posix() for name in ("config", "model", "best", "results", "metrics")}
    assert names == {
        "config": "x/config.toml",
        "model": "x/ppo_seed42_model.zip",
        "best": "x/ppo_seed42_best.zip",
        "results": "x/ppo_seed42_results.json",
        "metrics": "x/ppo_seed42_metrics.json",
    }
    assert folder.tensorboard == Path("x/tensorboard")


def test_a_run_lies_under_experiments_by_its_name_and_elsewhere_by_its_path(tmp_path):
    assert folder_of("mine") == EXPERIMENTS / "mine"
    assert folder_of("./mine") == Path("mine")
    assert folder_of(str(tmp_path / "x")) == tmp_path / "x"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(TrainingError, match="is no name for a run"):
        folder_of(name)


# --- making one ---


@pytest.mark.parametrize(
    ("name", "path"), [(None, EXPERIMENTS / "a2c_seed7"), ("mine", EXPERIMENTS / "mine"), ("a/b/c", Path("a/b/c"))]
)
def test_a_new_run_begins_with_its_configuration_and_nothing_else(name, path):
    folder = create_run(CONFIG, name, overwrite=False)
    assert folder == RunFolder(path, "a2c_seed7")
    assert files(path) == ["config.toml"]
    assert load_config(folder.config) == CONFIG
    assert not folder.is_finished


def test_a_folder_with_other_things_in_it_is_used_and_they_stay():
    fill(Path("x"), FOREIGN)
    create_run(CONFIG, "./x", overwrite=False)
    assert files(Path("x")) == sorted([*FOREIGN, "config.toml"])


@pytest.mark.parametrize("name", OWN)
def test_a_folder_that_holds_anything_of_a_run_is_refused_and_left_alone(name):
    fill(Path("x"), [name])
    with pytest.raises(TrainingError, match=r"^x: holds a run already.*hotlap resume x.*--run-name.*--overwrite"):
        create_run(CONFIG, "./x", overwrite=False)
    assert files(Path("x")) == [name]
    assert (Path("x") / name).read_text() == name


def test_overwriting_takes_away_a_runs_own_files_and_nothing_else():
    fill(Path("x"), OWN + FOREIGN)
    folder = create_run(CONFIG, "./x", overwrite=True)
    assert files(Path("x")) == sorted([*FOREIGN, "config.toml"])
    assert load_config(folder.config) == CONFIG
    for name in FOREIGN:
        assert (Path("x") / name).read_text() == name


def test_overwriting_what_is_not_there_is_fine():
    create_run(CONFIG, None, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("./file", "file: is a file; a run needs a folder"),
        ("./file/x", r"file/x: cannot hold a run \(Not a directory\)"),
        ("x" * 300, r"cannot hold a run \(File name too long\)"),
        ("..", "'..' is no name for a run"),
    ],
)
def test_a_place_where_no_folder_can_be_is_refused(name, words, overwrite):
    Path("file").write_text("x")
    with pytest.raises(HotlapError, match=words) as caught:
        create_run(CONFIG, name, overwrite)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert files(Path()) == ["file"]


def test_a_file_that_cannot_be_removed_is_said_in_one_line(monkeypatch):
    fill(Path("x"), OWN)

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OutputFileError, match=r"^x: cannot hold a run \(Permission denied\)"):
        create_run(CONFIG, "./x", overwrite=True)


def test_the_configuration_is_written_whole_or_not_at_all():
    folder = create_run(CONFIG, None, overwrite=False)

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OutputFileError, match=r"config\.toml: cannot be written \(No space left on device\)"):
            folder.write_config(RunConfig())
    assert load_config(folder.config) == CONFIG
    assert files(folder.path) == ["config.toml"]


# --- finding one again ---


@pytest.mark.parametrize("run", ["mine", "results/experiments/mine", "./results/experiments/mine/"])
def test_a_run_is_found_by_its_name_and_by_its_path(run):
    made = create_run(CONFIG, "mine", overwrite=False)
    assert open_run(run) == (made, CONFIG)


def test_a_run_is_found_from_inside_its_folder(monkeypatch):
    made = create_run(CONFIG, "mine", overwrite=False)
    monkeypatch.chdir(made.path)
    assert open_run(".") == (RunFolder(Path(), "a2c_seed7"), CONFIG)


def test_a_finished_run_is_one_with_results():
    folder = create_run(CONFIG, None, overwrite=False)
    folder.results.write_text("{}")
    assert folder.is_finished


@pytest.mark.parametrize("run", ["none", "no/where", "x" * 300, "/" + "x" * 5000])
def test_a_run_that_is_not_there_is_refused(run):
    with pytest.raises(InputFileError, match=r"no run there \(no config\.toml\)") as caught:
        open_run(run)
    assert len(str(caught.value)) < 400


def test_a_run_with_a_broken_configuration_is_refused_by_its_file():
    folder = create_run(CONFIG, None, overwrite=False)
    folder.config.write_text("sed = 1")
    with pytest.raises(ConfigError, match=re.escape(f"{folder.config}: unknown key 'sed'")):
        open_run("a2c_seed7")

"""A run's folder: found by name or path, protected from other runs, and only a run's own files are deleted."""

import errno
import os
import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from hotlap.errors import ConfigError, HotlapError, InputFileError, OutputFileError, TrainingError
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import RunFolder, create_run, folder_of, is_there, open_run

CONFIG = RunConfig(algo="a2c", env="CartPole-v1", seed=7, steps=100, env_args={"a": 1})
EXPERIMENTS = Path("results/experiments")
OWN = [f"a2c_seed7_{name}" for name in ("model.zip", "best.zip", "results.json", "metrics.json", "metrics.jsonl")]
OWN += ["config.toml", "checkpoint_100.zip", "checkpoint_99.zip", "tensorboard/events.out.tfevents.1.host"]
OWN += [".checkpoint_120.zip.12-34.partial", "a2c_seed7_results.json.12.partial", "config.toml.12.partial"]
FOREIGN = ["notes.txt", "my_model.zip", "checkpoint_best.zip", "checkpoint_007.zip", "other.toml", "download.partial"]
FOREIGN += ["tensorboard/notes.txt", "plots/ppo_seed1_model.zip"]


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


def test_files_have_the_agreed_names():
    folder = RunFolder(Path("x"), "ppo_seed42")
    names = ("model.zip", "best.zip", "results.json", "metrics.json")
    assert [folder.model, folder.best, folder.results, folder.metrics] == [
        Path(f"x/ppo_seed42_{name}") for name in names
    ]
    assert (folder.config, folder.tensorboard) == (Path("x/config.toml"), Path("x/tensorboard"))


def test_a_name_is_a_folder_under_experiments_and_a_path_is_itself(tmp_path):
    assert folder_of("mine") == EXPERIMENTS / "mine"
    assert folder_of("./mine") == Path("mine")
    assert folder_of(str(tmp_path / "x")) == tmp_path / "x"


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a\nb", "./a\nb", "a\0b"])
def test_an_invalid_name_is_refused(name):
    with pytest.raises(TrainingError, match="is not a valid name for a run"):
        folder_of(name)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "path"), [(None, EXPERIMENTS / "a2c_seed7"), ("mine", EXPERIMENTS / "mine"), ("a/b/c", Path("a/b/c"))]
)
def test_a_new_run_has_its_configuration_and_the_other_files_in_its_folder(name, path, overwrite):
    fill(path, FOREIGN)
    folder = create_run(CONFIG, name, overwrite)
    assert folder == RunFolder(path, "a2c_seed7")
    assert files(path) == sorted([*FOREIGN, "config.toml"])
    assert load_config(folder.config) == CONFIG
    assert not folder.is_finished
    folder.results.write_text("{}")
    assert folder.is_finished


@pytest.mark.parametrize("name", OWN)
def test_a_folder_with_any_file_of_a_run_is_refused_and_unchanged(name):
    fill(Path("x"), [name])
    with pytest.raises(TrainingError, match=r"^x: holds a run already.*hotlap resume x.*--run-name.*--overwrite"):
        create_run(CONFIG, "./x", overwrite=False)
    assert files(Path("x")) == [name]
    assert (Path("x") / name).read_text() == name


def test_overwriting_deletes_a_runs_own_files_only():
    fill(Path("x"), OWN + FOREIGN)
    folder = create_run(CONFIG, "./x", overwrite=True)
    assert files(Path("x")) == sorted([*FOREIGN, "config.toml"])
    assert load_config(folder.config) == CONFIG
    for name in FOREIGN:
        assert (Path("x") / name).read_text() == name


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("./file", "file: is a file; a run needs a folder"),
        ("./file/x", r"file/x: cannot hold a run \(Not a directory\)"),
        ("x" * 300, r"cannot hold a run \(File name too long\)"),
        ("..", "'..' is not a valid name for a run"),
    ],
)
def test_a_path_that_cannot_be_a_folder_is_refused(name, words, overwrite):
    Path("file").write_text("x")
    with pytest.raises(HotlapError, match=words) as caught:
        create_run(CONFIG, name, overwrite)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert files(Path()) == ["file"]


def test_a_file_that_cannot_be_deleted_is_reported_in_one_line(monkeypatch):
    fill(Path("x"), OWN)
    monkeypatch.setattr(Path, "unlink", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(OutputFileError, match=r"^x: cannot hold a run \(Permission denied\)"):
        create_run(CONFIG, "./x", overwrite=True)


def test_the_configuration_is_written_whole_or_not_at_all(monkeypatch):
    folder = create_run(CONFIG, None, overwrite=False)
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OutputFileError, match=r"config\.toml: cannot be written \(No space left on device\)"):
        folder.write_config(RunConfig())
    assert load_config(folder.config) == CONFIG
    assert files(folder.path) == ["config.toml"]


def test_a_run_is_found_by_its_name_by_its_path_and_from_inside_its_folder(monkeypatch):
    made = create_run(CONFIG, "mine", overwrite=False)
    for run in ("mine", "results/experiments/mine", "./results/experiments/mine/"):
        assert open_run(run) == (made, CONFIG)
    monkeypatch.chdir(made.path)
    assert open_run(".") == (RunFolder(Path(), "a2c_seed7"), CONFIG)


@pytest.mark.parametrize("run", ["none", "no/where", "x" * 300, "/" + "x" * 5000])
def test_a_missing_run_is_refused(run):
    with pytest.raises(InputFileError, match=r"no run there \(no config\.toml\)") as caught:
        open_run(run)
    assert len(str(caught.value)) < 400


def test_a_broken_configuration_is_refused_with_its_file_name():
    folder = create_run(CONFIG, None, overwrite=False)
    folder.config.write_text("sed = 1")
    with pytest.raises(ConfigError, match=re.escape(f"{folder.config}: unknown key 'sed'")):
        open_run("a2c_seed7")


def test_a_name_too_long_for_the_file_system_does_not_exist(tmp_path):
    assert is_there(tmp_path)
    assert not is_there(tmp_path / "none")
    assert not is_there(tmp_path / ("x" * 300))

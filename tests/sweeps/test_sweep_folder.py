"""A sweep's folder: its name, its files, and what is refused."""

import pytest

from hotlap.errors import ConfigError, InputFileError, OutputFileError, TrainingError
from hotlap.sweeps.sweep_folder import SWEEPS, create_folder, default_name, folder_of, lock_folder, open_folder
from sweeps.tiny_sweeps import make_sweep


def test_a_name_is_a_folder_below_results_and_a_path_is_itself(tmp_path):
    assert folder_of("rates") == SWEEPS / "rates"
    assert folder_of("a/rates").as_posix() == "a/rates"
    assert [default_name(tmp_path / name) for name in ("lr.toml", "lr.sweep.toml", "lr")] == ["lr", "lr", "lr"]


@pytest.mark.parametrize("name", ["", "a b", "-x", "é", "x" * 101, "con"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ConfigError, match="sweep"):
        folder_of(name)


def test_a_sweep_is_opened_with_the_settings_it_started_with(tmp_path):
    sweep, folder = make_sweep(tmp_path)
    found = open_folder(str(folder.path))
    assert found.read_sweep() == sweep
    assert found.run_path(3, 12).name == "0003-seed12"
    (tmp_path / "tiny.toml").write_text("changed later")
    assert found.read_sweep() == sweep


def test_an_existing_folder_is_not_taken_and_a_missing_one_not_opened(tmp_path):
    sweep, folder = make_sweep(tmp_path)
    with pytest.raises(TrainingError, match=r"exists already\. Continue it with `hotlap sweep resume"):
        create_folder(tmp_path / "tiny.toml", str(folder.path), sweep)
    with pytest.raises(InputFileError, match="no sweep there"):
        open_folder(str(tmp_path / "nothing"))


def test_a_link_in_it_is_refused(tmp_path):
    _, folder = make_sweep(tmp_path)
    (folder.trials / "0000-seed1").symlink_to(tmp_path)
    with pytest.raises(OutputFileError, match="0000-seed1: is a link"):
        open_folder(str(folder.path))


def test_one_process_at_a_time_runs_it(tmp_path):
    _, folder = make_sweep(tmp_path)
    with lock_folder(folder), pytest.raises(TrainingError, match="another process runs this sweep"):
        lock_folder(folder)
    with lock_folder(folder):
        pass

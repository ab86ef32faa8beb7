"""Drivers by id: found in lists, never by path."""

import shutil

import pytest

from hotlap.drivers.packed import PackedDriver
from hotlap.errors import DriverError, TrainingError
from hotlap.models.model_file import read_model
from hotlap.web.drivers import (
    UnknownDriverError,
    find_checkpoint,
    find_model_path,
    kind_of,
    list_drivers,
    make_model_driver,
    read_policy,
)
from hotlap.web.policy_file import policy_bytes


@pytest.fixture
def experiments(monkeypatch, tmp_path, racer):
    """A results folder with one real run, which also has a checkpoint."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "experiments"
    shutil.copytree(racer.folder, folder / "mine")
    shutil.copy(racer.path, folder / "mine" / "checkpoint_512.zip")
    return folder


def test_the_models_of_the_results_folder_are_drivers(experiments):
    drivers = {driver["id"]: driver for driver in list_drivers("track-01", has_optimal=True)}
    assert list(drivers) == ["optimal", "casual", "run:mine"]
    assert drivers["run:mine"]["policy"] == "api/drivers/run:mine/policy"
    assert drivers["run:mine"]["track"] == "track-01"
    assert drivers["casual"]["replay"] == "api/drivers/casual/replay?track=track-01"
    assert "optimal" not in [driver["id"] for driver in list_drivers("track-01", has_optimal=False)]


def test_a_model_is_found_by_its_run_and_by_its_checkpoint(experiments):
    model = find_model_path("run:mine")
    assert model.parent == find_model_path("run:mine@512").parent
    assert find_model_path("run:mine@512").name == "checkpoint_512.zip"
    assert read_policy(model) == policy_bytes(read_model(model))


def test_the_servers_own_driver_is_the_learned_driver(experiments, racer):
    ours, theirs = make_model_driver("run:mine", "track-01"), PackedDriver.from_model(read_model(racer.path))
    assert ours.action_repeat == theirs.action_repeat == 3
    assert ours.packed.numbers.tobytes() == theirs.packed.numbers.tobytes()


@pytest.mark.parametrize(
    "driver_id",
    ["", "x", "run:", "run:nothing", "run:../mine", "run:mine/..", "run:mine@", "run:mine@-1", "run:mine@0512",
     "run:mine@7", "mine", "results/experiments/mine", "run:mine\0", "run:mine\n",
     "RUN:mine"],
)  # fmt: skip
def test_what_is_no_driver_is_unknown(experiments, driver_id):
    with pytest.raises(UnknownDriverError, match=r"is not known|has no checkpoint"):
        find_model_path(driver_id, "track-01")


def test_only_built_in_tracks_have_a_champion(experiments):
    assert find_model_path("champion", "track-02").name == "track-02.zip"
    assert find_model_path("generalist", "train-000").name == "generalist.zip"
    with pytest.raises(UnknownDriverError, match="is not known"):
        find_model_path("champion", "train-000")


def test_the_kind_of_a_driver():
    assert [kind_of(name) for name in ("casual", "optimal", "champion", "generalist", "run:a", "recorded")] == [
        "casual", "optimal", "champion", "generalist", "model", "model",
    ]  # fmt: skip
    with pytest.raises(UnknownDriverError, match="is not known"):
        kind_of("../x")


def test_a_link_is_no_model(experiments, tmp_path):
    for name in ("checkpoint_7.zip", "ppo_seed42_best.zip"):
        (experiments / "mine" / name).unlink(missing_ok=True)
        (experiments / "mine" / name).symlink_to(tmp_path / "elsewhere.zip")
    for find in (lambda: find_model_path("run:mine"), lambda: find_checkpoint("mine", 7)):
        with pytest.raises(DriverError, match="a link"):
            find()
    with pytest.raises(TrainingError, match="is not known"):
        find_checkpoint("nothing", 7)

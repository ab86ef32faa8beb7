"""Drivers by name: built-in drivers, runs and model files."""

import shutil
from pathlib import Path

import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import make_driver
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import ArchiveError, DriverError, ModelError
from hotlap.evaluation.evaluate import evaluate
from hotlap.models.archive import read_archive, write_archive


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["", "Casual", "verstappen", "../casual", "x" * 500])
def test_an_unknown_name_is_refused_with_the_built_in_names(name):
    with pytest.raises(DriverError, match=r"^driver '.*is not known\. .*casual") as caught:
        make_driver(name)
    assert len(str(caught.value)) < 200


def test_a_run_is_found_by_its_name_its_folder_and_its_file(racer):
    folder = Path("results/experiments/mine")
    shutil.copytree(racer.folder, folder)
    for name in ("mine", str(folder), str(folder / racer.path.name)):
        driver = make_driver(name)
        assert isinstance(driver, PackedDriver)
        assert driver.name == "ppo_seed42_model"


def test_a_built_in_driver_takes_precedence_over_a_run_of_the_same_name(racer):
    shutil.copytree(racer.folder, "results/experiments/casual")
    assert isinstance(make_driver("casual"), CasualDriver)
    assert make_driver("casual").name == "casual"
    assert isinstance(make_driver("./results/experiments/casual"), PackedDriver)


def test_two_drivers_of_one_model_are_identical(racer):
    figures = [evaluate(make_driver(str(racer.path)), "track-02", episodes=3, start="random", seed=5) for _ in range(2)]
    assert figures[0] == figures[1]
    assert figures[0].driver == "ppo_seed42_model"


def test_a_run_without_a_model_is_refused():
    Path("results/experiments/young").mkdir(parents=True)
    with pytest.raises(DriverError, match=r"young: holds no model and no checkpoint yet\. .*Or casual, optimal"):
        make_driver("young")


def test_models_of_another_environment_other_physics_or_damaged_are_refused(racer, cartpole):
    with pytest.raises(DriverError, match="is a model of CartPole-v1; it cannot drive"):
        make_driver(str(cartpole.path))
    whole = read_archive(racer.path)
    whole.about["card"]["physics"] = "other"
    write_archive(Path("other_physics.zip"), whole)
    with pytest.raises(ModelError, match=r"other_physics\.zip: was trained with physics other"):
        make_driver("other_physics.zip")
    Path("damaged.zip").write_bytes(racer.path.read_bytes()[:-100])
    with pytest.raises(ArchiveError, match=r"damaged\.zip"):
        make_driver("damaged.zip")

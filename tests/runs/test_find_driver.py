"""Models and drivers by name: built-in and shipped drivers, runs and model files."""

import shutil
from pathlib import Path

import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import ArchiveError, DriverError, InputFileError, ModelError
from hotlap.evaluation.evaluate import evaluate
from hotlap.models.archive import read_archive, write_archive
from hotlap.runs.find_driver import find_driver, find_driver_model, find_model


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["", "Casual", "verstappen", "../casual", "x" * 500])
def test_an_unknown_driver_is_refused_with_the_built_in_names(name):
    with pytest.raises(DriverError, match=r"^driver '.*is not known\. .*casual") as caught:
        find_driver(name)
    assert len(str(caught.value)) < 200


def test_a_run_is_found_by_its_name_its_folder_and_its_file(racer):
    folder = Path("results/experiments/mine")
    shutil.copytree(racer.folder, folder)
    for name in ("mine", str(folder), str(folder / racer.path.name)):
        driver = find_driver(name)
        assert isinstance(driver, PackedDriver)
        assert driver.name == "ppo_seed42_model"


def test_a_built_in_driver_takes_precedence_over_a_run_of_the_same_name(racer):
    shutil.copytree(racer.folder, "results/experiments/casual")
    assert isinstance(find_driver("casual"), CasualDriver)
    assert find_driver("casual").name == "casual"
    assert isinstance(find_driver("./results/experiments/casual"), PackedDriver)


def test_two_drivers_of_one_model_are_identical(racer):
    figures = [evaluate(find_driver(str(racer.path)), "track-02", episodes=3, start="random", seed=5) for _ in range(2)]
    assert figures[0] == figures[1]
    assert figures[0].driver == "ppo_seed42_model"


def test_a_driver_of_a_run_without_a_model_is_refused():
    Path("results/experiments/young").mkdir(parents=True)
    with pytest.raises(DriverError, match=r"young: holds no model and no checkpoint yet\. .*Or casual, optimal"):
        find_driver("young")


def test_models_of_another_environment_other_physics_or_damaged_are_refused(racer, cartpole):
    with pytest.raises(DriverError, match="is a model of CartPole-v1; it cannot drive"):
        find_driver(str(cartpole.path))
    whole = read_archive(racer.path)
    whole.about["card"]["physics"] = "other"
    write_archive(Path("other_physics.zip"), whole)
    with pytest.raises(ModelError, match=r"other_physics\.zip: was trained with physics other"):
        find_driver("other_physics.zip")
    Path("damaged.zip").write_bytes(racer.path.read_bytes()[:-100])
    with pytest.raises(ArchiveError, match=r"damaged\.zip"):
        find_driver("damaged.zip")


def test_a_shipped_driver_has_its_name_and_its_model_is_that_of_the_track():
    for track in ("track-01", "track-02"):
        assert find_driver_model("champion", track).card.track == track
        assert find_driver("champion", track).name == "champion"
    assert find_driver_model("champion").card.track == "track-01"
    assert find_driver("generalist", "train-000").name == "generalist"
    with pytest.raises(DriverError, match="none comes with the package for 'train-000'"):
        find_driver("champion", "train-000")


def test_a_built_in_driver_has_no_model():
    assert find_driver_model("casual") is find_driver_model("optimal", "track-02") is None


# --- which file a run's name means ---


@pytest.fixture
def run() -> Path:
    folder = Path("results/experiments/mine")
    folder.mkdir(parents=True)
    return folder


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"x")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["ppo_seed1_best.zip", "ppo_seed1_model.zip", "checkpoint_900.zip"], "ppo_seed1_best.zip"),
        (["ppo_seed1_model.zip", "checkpoint_900.zip"], "ppo_seed1_model.zip"),
        (["checkpoint_900.zip", "checkpoint_1000.zip", "checkpoint_99.zip", "notes.txt"], "checkpoint_1000.zip"),
        (["checkpoint_5.zip", "checkpoint_final.zip"], "checkpoint_5.zip"),
    ],
)
def test_a_run_means_its_best_model_then_its_final_one_then_its_newest_checkpoint(run, names, chosen):
    fill(run, *names)
    for name in ("mine", "results/experiments/mine", "./results/experiments/mine/", str(run.absolute())):
        assert find_model(name).resolve() == (run / chosen).resolve()


def test_a_file_means_itself(run):
    fill(run, "ppo_seed1_best.zip", "checkpoint_7.zip")
    assert find_model(str(run / "checkpoint_7.zip")) == run / "checkpoint_7.zip"
    assert find_model("mine/checkpoint_7.zip") == run / "checkpoint_7.zip"


@pytest.mark.parametrize("name", ["", "nobody", "../nobody", "no/where.zip", "x" * 5000])
def test_an_unknown_name_is_refused(run, name):
    with pytest.raises(InputFileError, match=r"is not known\. Name a run .* or a model file") as caught:
        find_model(name)
    assert len(str(caught.value)) < 200


def test_a_run_without_a_model_is_refused(run):
    fill(run, "config.toml")
    with pytest.raises(InputFileError, match="mine: holds no model and no checkpoint yet"):
        find_model("mine")

"""The tool that searches for a better last layer of a driver."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import polish_driver
from hotlap.drivers.packed import PackedDriver
from hotlap.evaluation.evaluate import evaluate, start_cars
from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import SHIPPED_FOLDER
from last_layer import LastLayer, hidden_features, num_hidden
from polish_courses import Course, Drives
from polish_driver import Starts, grouped, score
from tensor_course import TensorCourse

CHAMPION, GENERALIST = SHIPPED_FOLDER / "track-01.zip", SHIPPED_FOLDER / "generalist.zip"
SMALL = ["--generations=1", "--population=4", "--cars=2", "--checked=2", "--seconds=2", "--features=3", "--threads=1"]


@pytest.fixture(scope="module", params=[CHAMPION, GENERALIST], ids=["champion", "generalist"])
def seen(request):
    """A model, its packed policy, observations and the hidden features for them."""
    model = read_model(request.param)
    driver = PackedDriver.from_model(model)
    fleet = start_cars(driver, "track-01", range(64), "random")
    return model, driver, fleet, hidden_features(driver.packed, fleet.batch.obs, num_hidden(model))


def test_the_features_are_those_from_which_the_compiled_policy_decides(seen):
    model, driver, fleet, values = seen
    for number, layer in enumerate(driver.packed.layers[num_hidden(model) :]):
        values = np.tanh(values) if number else values
        size, first = layer["num_inputs"] * layer["num_outputs"], layer["first_weight"]
        weights = driver.packed.numbers[first : first + size].reshape(layer["num_inputs"], -1)
        values = values @ weights + driver.packed.numbers[layer["first_bias"] :][: layer["num_outputs"]]
    driver.begin(fleet, 0)
    np.testing.assert_allclose(driver.act(fleet.batch.obs), np.clip(values, [-1.0, 0.0, 0.0], 1.0), atol=2e-5)


def test_zeros_are_the_models_own_weights_and_one_coordinate_changes_one_output(seen):
    model, driver, _, features = seen
    layer = LastLayer(model, driver.packed, features, 5)
    np.testing.assert_array_equal(layer.numbers_at(np.zeros(layer.size)), driver.packed.numbers)
    coordinates = np.zeros(layer.size)
    coordinates[1] = 0.25  # of the largest feature, for the second output
    moved = pack_model(layer.model_with(layer.numbers_at(coordinates)))
    np.testing.assert_array_equal(moved.numbers, layer.numbers_at(coordinates))
    outputs = []
    for packed in (driver.packed, moved):
        record = packed.layers[num_hidden(model)]
        size, first = record["num_inputs"] * record["num_outputs"], record["first_weight"]
        weights = packed.numbers[first : first + size].reshape(record["num_inputs"], -1).astype(np.float64)
        outputs.append(features @ weights + packed.numbers[record["first_bias"] :][: record["num_outputs"]])
    change = outputs[1] - outputs[0]
    assert change.std(axis=0)[1] == pytest.approx(0.25, rel=1e-3)
    assert np.abs(change[:, [0, *range(2, change.shape[1])]]).max() == 0.0


def test_a_score_is_one_for_the_usual_drive_and_less_for_a_quicker_one():
    usual = Drives(np.array([30.0, 50.0]), np.array([True, True]))
    assert score(usual, usual, 0.05) == 1.0
    assert score(Drives(usual.slowness * 0.98, usual.is_clean), usual, 0.05) == pytest.approx(0.98)
    assert score(Drives(usual.slowness, np.array([True, False])), usual, 0.05) == pytest.approx(1.025)
    assert score(Drives(np.array([30.0, np.inf]), usual.is_clean), usual, 0.05) == pytest.approx(1.25)  # (1 + 1.5) / 2
    assert score(usual, Drives(np.array([30.0, np.inf]), usual.is_clean), 0.05) == 1.0  # only where it is known


def test_leaving_the_road_and_failing_cost_what_was_asked():
    usual = Drives(np.array([30.0, 50.0]), np.array([True, True]))
    unclean = Drives(usual.slowness, np.array([True, False]))
    assert score(unclean, usual, 0.5) == pytest.approx(1.25)
    stands = Drives(np.array([30.0, 5000.0]), np.array([True, True]))
    assert score(stands, usual, 0.5, 3.0) == pytest.approx(2.5)
    assert score(stands, usual, 4.0, 3.0) == pytest.approx(3.0)  # failing never costs less than leaving the road


@pytest.mark.parametrize(("num_ticks", "unit"), [(0, "lap"), (600, "metre")])
@pytest.mark.parametrize("num_parts", [1, 2])
def test_a_drive_is_that_of_an_evaluation(num_ticks, unit, num_parts):
    driver = PackedDriver.from_model(read_model(CHAMPION))
    with ThreadPoolExecutor(2) as pool:
        course = Course(driver, ["track-01"] * 3, num_ticks, pool, num_parts)
        found, again = course.drive_all([driver.packed.numbers] * 2, np.arange(7, 10, dtype=np.uint64))
    assert found.is_clean.all()
    np.testing.assert_array_equal(again.slowness, found.slowness)
    if unit == "lap":
        laps = evaluate(driver, "track-01", episodes=3, start="random", seed=7)
        assert np.median(found.slowness) == laps.median_lap_time_sec
    else:
        assert 1.0 / found.slowness == pytest.approx(889.9 / 28.6, rel=0.3)  # about the mean speed of its lap


@pytest.mark.parametrize(("path", "roads"), [(CHAMPION, 1), (GENERALIST, 2)], ids=["champion", "generalist"])
def test_cars_as_tensors_drive_as_the_compiled_policy_does(path, roads):
    model = read_model(path)
    driver, seeds = PackedDriver.from_model(model), np.arange(8, dtype=np.uint64)
    tracks = ["track-01", "track-02"][:roads] * (8 // roads)
    layer = LastLayer(model, driver.packed, np.random.default_rng(1).normal(size=(512, 256)), 3)
    other = layer.numbers_at(np.full(layer.size, 0.02))
    candidates = [driver.packed.numbers, other]
    tensors = TensorCourse(driver, tracks, 300, 2, num_hidden(model), "cpu").drive_all(candidates, seeds)
    with ThreadPoolExecutor(1) as pool:
        compiled = Course(driver, tracks, 300, pool).drive_all(candidates, seeds)
    for found, expected in zip(tensors, compiled, strict=True):
        np.testing.assert_allclose(found.slowness, expected.slowness, rtol=1e-5)
        np.testing.assert_array_equal(found.is_clean, expected.is_clean)
    assert not np.allclose(tensors[0].slowness, tensors[1].slowness, rtol=1e-3)


def test_hard_starts_come_again_for_the_same_cars():
    starts = Starts(4, np.random.default_rng(1))
    seeds = np.array([11, 12, 13, 14], np.uint64)
    starts.remember(seeds, Drives(np.array([30.0, 30.0, np.inf, 30.0]), np.array([True, False, True, True])))
    for _ in range(5):
        drawn = starts.draw()
        assert drawn[[1, 2]].tolist() == [12, 13]
        assert not set(drawn[[0, 3]].tolist()) & {11, 12, 13, 14}
        assert not set(starts.draw_new().tolist()) & {11, 12, 13, 14}


def test_tracks_are_driven_in_groups_of_as_many_as_there_are_cars():
    assert grouped(["a"], 3) == [["a", "a", "a"]]
    assert grouped(["a", "b"], 3) == [["a", "b", "a"]]
    assert grouped(list("abcdefgh"), 3) == [["a", "b", "c"], ["d", "e", "f"]]


def test_a_search_writes_a_model_that_is_no_worse(tmp_path, capsys):
    out = tmp_path / "polished.zip"
    assert polish_driver.main([str(out), str(CHAMPION), "--tracks", "track-01", *SMALL]) == 0
    assert "generation 1, " in capsys.readouterr().out
    found, given = read_model(out), read_model(CHAMPION)
    assert found.card == given.card
    changed = {name for name, values in given.weights.items() if not np.array_equal(values, found.weights[name])}
    assert changed <= {"mlp_extractor.policy_net.4.weight", "mlp_extractor.policy_net.4.bias"}


@pytest.mark.parametrize(
    ("model", "tracks", "says"), [("no.zip", "track-01", "no.zip"), (str(CHAMPION), "nowhere", "nowhere")]
)
def test_what_is_not_there_is_one_line(model, tracks, says, tmp_path, capsys):
    assert polish_driver.main([str(tmp_path / "out.zip"), model, "--tracks", tracks, *SMALL]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error


@pytest.mark.parametrize("option", ["--cars=0", "--population=3", "--seconds=nan", "--threads=x", "--seed=-1"])
def test_a_bad_number_is_refused_before_the_search(option, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        polish_driver.main([str(tmp_path / "out.zip"), str(CHAMPION), "--tracks", "track-01", *SMALL, option])
    assert stop.value.code == 2
    assert f"argument {option.split('=')[0]}: must be a " in capsys.readouterr().err


def test_ctrl_c_ends_the_search_and_a_model_is_written(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(polish_driver.CovarianceSearch, "ask", interrupt)
    out = tmp_path / "out.zip"
    assert polish_driver.main([str(out), str(CHAMPION), "--tracks", "track-01", *SMALL]) == 0
    np.testing.assert_array_equal(pack_model(read_model(out)).numbers, pack_model(read_model(CHAMPION)).numbers)

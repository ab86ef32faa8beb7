"""Curves, and reading them from TensorBoard event files."""

import math

import numpy as np
import pytest

from hotlap.reports.curves import Curve, make_curve, read_events
from reports.written_runs import START_S, curve, write_events

NAME = "events.out.tfevents.1700000000.host.1.1"
LOGGED = {"eval/mean_reward": [(10, 1.5), (20, -2.25)], "reward/wall": [(10, -0.125), (15, 0.0), (20, 0.5)]}


@pytest.fixture
def file(tmp_path):
    write_events(tmp_path / NAME, LOGGED)
    return tmp_path / NAME


def points(found: Curve) -> list[tuple[int, float]]:
    return list(zip(found.step.tolist(), found.value.tolist(), strict=True))


def test_logged_scalars_are_read_as_tensorboard_reads_them(file):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    before = file.read_bytes()
    found = {key: points(one) for key, one in read_events(file.parent).items()}
    assert found == LOGGED
    assert file.read_bytes() == before
    oracle = EventAccumulator(str(file.parent), size_guidance={"scalars": 0})
    oracle.Reload()
    assert found == {
        key: [(event.step, event.value) for event in oracle.Scalars(key)] for key in oracle.Tags()["scalars"]
    }


def test_folder_without_events_has_no_curves(tmp_path):
    assert read_events(tmp_path) == {}
    assert read_events(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("lost_bytes", [1, 7, 20])
def test_truncated_last_record_is_dropped_alone(file, lost_bytes):
    file.write_bytes(file.read_bytes()[:-lost_bytes])
    found = read_events(file.parent)
    assert points(found["eval/mean_reward"]) == [(10, 1.5)]
    assert points(found["reward/wall"]) == [(10, -0.125), (15, 0.0)]


@pytest.mark.parametrize("content", [b"", b"not an event file despite its name"])
def test_file_without_events_is_skipped(file, content):
    (file.parent / "events.out.tfevents.1800000000.host.2.2").write_bytes(content)
    assert points(read_events(file.parent)["eval/mean_reward"]) == LOGGED["eval/mean_reward"]


def test_points_without_a_finite_value_are_left_out(tmp_path):
    write_events(tmp_path / NAME, {"train/loss": [(10, math.nan), (20, 2.0), (30, math.inf)]})
    assert points(read_events(tmp_path)["train/loss"]) == [(20, 2.0)]
    found = make_curve([1, 2, 3], [None, 0.5, None])
    assert points(found) == [(2, 0.5)]
    assert found.step.dtype == np.int64
    assert len(make_curve([1], [None])) == 0


def test_resumed_run_has_no_pause_and_its_later_values_replace_earlier_ones(tmp_path):
    write_events(tmp_path / NAME, {"a": [(10, 0.0), (20, 1.0)]})  # ten steps per second
    later = tmp_path / "events.out.tfevents.1700009999.host.2.2"
    write_events(later, {"a": [(30, 2.0)]}, start_s=START_S + 9999.0)
    found = read_events(tmp_path)["a"]
    assert points(found) == [(10, 0.0), (20, 1.0), (30, 2.0)]
    assert found.elapsed_s == pytest.approx([1.0, 2.0, 2.0 + 3.0])
    write_events(later, {"a": [(20, 5.0)]}, start_s=START_S + 9999.0)
    assert points(read_events(tmp_path)["a"]) == [(10, 0.0), (20, 5.0)]


def test_values_by_step_and_the_first_value_at_or_above_a_goal():
    found = curve((100, -5.0), (200, 200.0), (300, 10.0), (400, 250.0))
    assert (found.at(100), found.at(150), found.last, len(found)) == (-5.0, None, 250.0, 4)
    assert (Curve().last, Curve().at(0), len(Curve())) == (None, None, 0)
    assert found.first_reaching(200.0) == (200, 20.0)
    assert found.first_reaching(200.5) == (400, 40.0)
    assert found.first_reaching(251.0) is None
    assert Curve(found.step, found.value).first_reaching(200.0) == (200, None)

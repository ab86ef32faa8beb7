"""Curves from event files: what was logged comes back, however the file ends."""

import math
from pathlib import Path

import numpy as np
import pytest

from hotlap.reports.curves import Curve, make_curve, read_events
from reports.written_runs import BEGAN_S, curve, write_events

NAME = "events.out.tfevents.1700000000.host.1.1"
LOGGED = {"eval/mean_reward": [(10, 1.5), (20, -2.25)], "reward/wall": [(10, -0.125), (15, 0.0), (20, 0.5)]}


@pytest.fixture
def file(tmp_path):
    write_events(tmp_path / NAME, LOGGED)
    return tmp_path / NAME


def points(found: Curve) -> list[tuple[int, float]]:
    return list(zip(found.step.tolist(), found.value.tolist(), strict=True))


def test_what_was_logged_is_read(file):
    found = read_events(file.parent)
    assert {key: points(one) for key, one in found.items()} == LOGGED


def test_tensorboard_reads_the_same(file):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    oracle = EventAccumulator(str(file.parent), size_guidance={"scalars": 0})
    oracle.Reload()
    found = read_events(file.parent)
    assert sorted(found) == sorted(oracle.Tags()["scalars"])
    for key, one in found.items():
        assert points(one) == [(event.step, event.value) for event in oracle.Scalars(key)]


def test_a_folder_without_events_has_no_curves(tmp_path):
    assert read_events(tmp_path) == {}
    assert read_events(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("lost_bytes", [1, 7, 20])
def test_a_torn_last_record_costs_that_record_only(file, lost_bytes):
    file.write_bytes(file.read_bytes()[:-lost_bytes])
    found = read_events(file.parent)
    assert points(found["eval/mean_reward"]) == [(10, 1.5)]
    assert points(found["reward/wall"]) == [(10, -0.125), (15, 0.0)]


@pytest.mark.parametrize("content", [b"", b"this is no event file, whatever its name says"])
def test_a_file_that_holds_no_events_is_passed_over(file, content):
    (file.parent / "events.out.tfevents.1800000000.host.2.2").write_bytes(content)
    assert points(read_events(file.parent)["eval/mean_reward"]) == LOGGED["eval/mean_reward"]


def test_what_is_no_number_is_left_out(tmp_path):
    write_events(tmp_path / NAME, {"train/loss": [(10, math.nan), (20, 2.0), (30, math.inf)]})
    assert points(read_events(tmp_path)["train/loss"]) == [(20, 2.0)]


def test_the_time_between_two_sittings_is_no_training(tmp_path):
    write_events(tmp_path / NAME, {"a": [(10, 0.0), (20, 1.0)]})  # a step each tenth of a second
    later = "events.out.tfevents.1700009999.host.2.2"
    write_events(tmp_path / later, {"a": [(30, 2.0)]}, began_s=BEGAN_S + 9999.0)
    found = read_events(tmp_path)["a"]
    assert points(found) == [(10, 0.0), (20, 1.0), (30, 2.0)]
    assert found.elapsed_s == pytest.approx([1.0, 2.0, 2.0 + 3.0])


def test_of_two_values_at_a_step_the_later_counts(tmp_path):
    write_events(tmp_path / NAME, {"a": [(10, 0.0), (20, 1.0)]})
    write_events(tmp_path / "events.out.tfevents.1700009999.host.2.2", {"a": [(20, 5.0)]}, began_s=BEGAN_S + 9999.0)
    assert points(read_events(tmp_path)["a"]) == [(10, 0.0), (20, 5.0)]


def test_a_goal_is_reached_at_the_first_value_at_or_over_it():
    found = curve((100, -5.0), (200, 200.0), (300, 10.0), (400, 250.0))
    assert found.first_reaching(200.0) == (200, 20.0)
    assert found.first_reaching(200.5) == (400, 40.0)
    assert found.first_reaching(251.0) is None
    assert Curve(found.step, found.value).first_reaching(200.0) == (200, None)


def test_values_by_step():
    found = curve((100, 1.0), (200, 2.0))
    assert (found.at(100), found.at(150), found.last, len(found)) == (1.0, None, 2.0, 2)
    assert (Curve().last, Curve().at(0), len(Curve())) == (None, None, 0)


def test_points_without_a_value_are_left_out():
    found = make_curve([1, 2, 3], [None, 0.5, None])
    assert points(found) == [(2, 0.5)]
    assert found.step.dtype == np.int64
    assert len(make_curve([1], [None])) == 0


def test_reading_does_not_change_the_files(file):
    before = Path(file).read_bytes()
    read_events(file.parent)
    assert Path(file).read_bytes() == before

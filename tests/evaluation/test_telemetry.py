"""A recorded drive: one row per tick, and its laps."""

from dataclasses import fields

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.evaluation.evaluate import drive, make_evaluation_fleet
from hotlap.evaluation.races import Entry
from hotlap.evaluation.telemetry import record_laps, record_race
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import load_track


@pytest.fixture(scope="module")
def trace():
    return record_laps(CasualDriver(), "track-01", num_laps=2, seed=1)


def test_there_is_a_row_for_every_tick(trace):
    total_s = sum(lap.time_s for lap in trace.laps)
    for field in fields(trace):
        if field.name != "laps":
            assert getattr(trace, field.name).shape == trace.x_m.shape
    # The last lap ends within the last tick, so there are rows on both sides of the line.
    assert (len(trace.x_m) - 2) / 60.0 < total_s <= (len(trace.x_m) - 1) / 60.0


def test_the_laps_are_those_driven(trace):
    assert [lap.number for lap in trace.laps] == [1, 2]
    assert trace.laps[1].time_s < trace.laps[0].time_s < 45.0


def test_it_starts_standing_on_the_line(trace):
    nodes = load_track("track-01").nodes
    assert trace.speed_mps[0] == 0.0
    assert (trace.x_m[0], trace.y_m[0]) == pytest.approx((nodes.x_m[0], nodes.y_m[0]), abs=0.01)
    assert trace.arc_m[0] == 0.0


def test_speed_is_the_distance_between_rows(trace):
    distance_m = np.hypot(np.diff(trace.x_m), np.diff(trace.y_m))
    mean_mps = 0.5 * (trace.speed_mps[1:] + trace.speed_mps[:-1])
    np.testing.assert_allclose(distance_m * 60.0, mean_mps, atol=0.15)


def test_arc_length_restarts_at_each_lap(trace):
    steps = np.diff(trace.arc_m)
    assert np.count_nonzero(steps < -100.0) == 2
    assert trace.arc_m.max() == pytest.approx(load_track("track-01").nodes.length_m, abs=1.0)


def test_recording_does_not_change_the_drive(trace):
    fleet = make_evaluation_fleet("track-01", 1)
    fleet.seed(np.array([1], np.uint64))
    fleet.reset(start="line")
    driver = CasualDriver()
    driver.begin(fleet, 1)
    assert drive(driver, fleet, num_laps=2).laps == trace.laps


def test_the_controls_are_those_applied(trace):
    assert trace.throttle[0] == trace.brake[0] == trace.steer[0] == 0.0
    assert trace.throttle.max() == pytest.approx(1.0, abs=0.02)
    assert 0.3 < trace.brake.max() <= 1.0
    assert trace.steer.min() < 0.0 < trace.steer.max()
    gains = np.diff(trace.speed_mps) * 60.0
    assert gains[trace.brake[:-1] > 0.3].max() < 0.0


def test_lateral_is_the_distance_from_the_centreline(trace):
    nodes = load_track("track-01").nodes
    at = 700
    adistance_m = np.hypot(nodes.x_m - trace.x_m[at], nodes.y_m - trace.y_m[at]).min()
    assert abs(trace.lateral_m[at]) == pytest.approx(adistance_m, abs=0.1)


def test_one_car_alone_in_a_race_is_recorded_as_without_one():
    seen = []
    driver = find_driver("champion", "track-01")
    alone = record_laps(driver, "track-01", num_laps=2)
    raced, counts = record_race([Entry("champion", driver)], "track-01", num_laps=2, on_tick=seen.append)
    assert raced.laps == alone.laps
    for field in fields(alone):
        if field.name != "laps":
            # The last tick takes the car over the line and out of the race.
            np.testing.assert_array_equal(getattr(raced, field.name), getattr(alone, field.name)[:-1])
    assert len(seen) == len(alone.x_m)
    assert counts.race_times_s[0, 0] == pytest.approx(sum(lap.time_s for lap in alone.laps), abs=1e-3)

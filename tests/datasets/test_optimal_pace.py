"""The clock of the optimal lap, against the optimal lap itself."""

import numpy as np
import pytest

from hotlap.datasets.optimal_pace import OptimalPace
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def lap_s(track):
    return find_reference(track).lap_time_s


@pytest.fixture(scope="module")
def pace(track):
    return OptimalPace(track, find_reference(track))


def test_at_the_line_the_whole_lap_is_to_go_and_it_falls_along_the_road(track, pace, lap_s):
    arc_m = np.linspace(0.0, track.nodes.length_m, 500, endpoint=False)
    to_go_s = pace.time_to_go_s(arc_m)
    assert to_go_s[0] == pytest.approx(lap_s, abs=1e-6)
    assert (np.diff(to_go_s) < 0.0).all()
    assert 0.0 < to_go_s[-1] < 0.2


def test_the_optimal_lap_loses_nothing_to_itself_over_two_laps(track, pace, lap_s):
    # Where the optimal lap is at each tick, from the inverse of the time to go.
    arc_m = np.linspace(0.0, track.nodes.length_m, 20_000, endpoint=False)
    since_s = lap_s - pace.time_to_go_s(arc_m)
    ticks_s = np.arange(int(2 * lap_s * 60)) / 60.0
    driven_m = np.interp(ticks_s % lap_s, since_s, arc_m)
    assert np.abs(pace.gap_s(driven_m)).max() < 2e-3


def test_a_car_that_stands_loses_a_second_a_second_and_backwards_more(pace):
    assert pace.gap_s(np.full(61, 100.0))[-1] == 1.0
    assert pace.gap_s(np.linspace(100.0, 99.0, 61))[-1] > 1.0


def test_the_line_is_no_jump(track, pace):
    length_m = track.nodes.length_m
    across_m = np.array([length_m - 0.5, 0.0, 0.5])
    backwards_m = across_m[::-1]
    assert np.abs(np.diff(pace.gap_s(across_m))).max() < 0.02
    assert np.abs(np.diff(pace.gap_s(backwards_m))).max() < 0.06

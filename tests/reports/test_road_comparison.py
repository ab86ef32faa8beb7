"""Generated roads against real ones, with corners made up for the purpose."""

import math

import pytest

from hotlap.errors import ReportError
from hotlap.reports.road_comparison import AFTER_STRAIGHT, MANY_NEIGHBOURS, compare_roads, count_near
from hotlap.tracks.geometry.road_statistics import CornerStatistics, RoadStatistics


def corner(entry_m=100.0, radius_m=20.0, width_m=10.0, turn_deg=90.0):
    return CornerStatistics(entry_m, radius_m, width_m, math.radians(turn_deg))


def road(*corners, length_m=4000.0):
    return RoadStatistics(length_m, 8.0, 10.0, 12.0, 600.0, 0.6, 5.0, corners)


@pytest.mark.parametrize(
    ("other", "is_near"),
    [
        ({"entry_m": 154.0}, True),  # 25 m and 30 % of 100 m
        ({"entry_m": 156.0}, False),
        ({"radius_m": 15.1}, True),
        ({"radius_m": 25.2}, False),
        ({"width_m": 8.6}, True),
        ({"width_m": 11.6}, False),
        ({"turn_deg": -109.0}, True),  # the other way round is the same
        ({"turn_deg": 111.0}, False),
    ],
)
def test_corners_are_near_if_every_measure_is(other, is_near):
    assert count_near([corner()], [corner(**other)]).tolist() == [int(is_near)]


def test_the_fraction_of_real_corners_near_generated_ones():
    real = road(corner(), corner(radius_m=50.0), corner(radius_m=100.0), corner(entry_m=900.0))
    generated = [road(*[corner()] * MANY_NEIGHBOURS, corner(radius_m=52.0, turn_deg=-90.0))]
    found = compare_roads([real], generated)
    assert (found.covered, found.covered_many) == (0.5, 0.25)
    assert found.left_fraction == pytest.approx(MANY_NEIGHBOURS / (MANY_NEIGHBOURS + 1))
    assert (found.num_real_corners, found.num_generated_corners) == (4, MANY_NEIGHBOURS + 1)


def test_spreads_are_percentiles_of_roads_and_of_corners():
    real = [road(corner(entry_m=50.0), corner(entry_m=300.0), length_m=length_m) for length_m in (2000.0, 4000.0)]
    found = compare_roads(real, [road(corner())]).spreads
    assert found["lap (m)"].real == pytest.approx((2000.0, 2200.0, 3000.0, 3800.0, 4000.0))
    assert found["corners per km"].real[0] == pytest.approx(0.5)
    assert found["straight before a corner (m)"].real[2] == pytest.approx(175.0)
    assert found["straight before a corner (m)" + AFTER_STRAIGHT].real == pytest.approx((300.0,) * 5)
    assert found["straight before a corner (m)" + AFTER_STRAIGHT].generated == ()


def test_roads_without_corners_are_refused():
    with pytest.raises(ReportError, match="need corners"):
        compare_roads([road()], [road(corner())])

"""Ways of a map: joined into the longest loop, projected to metres, with the widths and the direction of their tags."""

import math
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.files.map_ways import DEFAULT_WIDTH_M, RoadMap, Way, project
from hotlap.tracks.files.map_ways import join_loop as join
from hotlap.tracks.geometry.centreline import length_m

PATH = Path("map.osm")
LON, LAT = 8.0, 50.0
# Metres of a degree there, from published tables of the WGS 84 ellipsoid: 71,696 m east and 111,229 m north.
EAST_M, NORTH_M = 71_696.0, 111_229.0


def ring(radius_m=200.0, num_points=60):
    """Points of a circle by number, anticlockwise."""
    angles = (2.0 * math.pi * k / num_points for k in range(num_points))
    return {
        str(k): (LON + radius_m * math.cos(a) / EAST_M, LAT + radius_m * math.sin(a) / NORTH_M)
        for k, a in enumerate(angles)
    }


def join_loop(path, ways, places):
    return join(path, RoadMap(ways, places, ""))


def way(name, /, *nodes, **tags):
    return Way(name, [str(node) for node in nodes], {"highway": "raceway", **tags})


PLACES = ring()
HALVES = [way("upper", *range(31)), way("lower", *range(30, 60), 0)]


def test_a_degree_has_the_metres_of_published_tables():
    x, y = project([(LON - 0.01, LAT), (LON + 0.01, LAT)])
    assert np.diff(x) == pytest.approx(0.02 * EAST_M, rel=1e-4)
    x, y = project([(LON, LAT - 0.01), (LON, LAT + 0.01)])
    assert np.diff(y) == pytest.approx(0.02 * NORTH_M, rel=1e-4)


def test_two_halves_are_a_circle_of_the_right_length():
    loop = join_loop(PATH, HALVES, PLACES)
    assert length_m(loop.centreline) == pytest.approx(2.0 * math.pi * 200.0, rel=1e-3)
    assert sorted(loop.names) == ["lower", "upper"]
    assert not loop.has_widths
    assert loop.centreline.width_left_m == pytest.approx(0.5 * DEFAULT_WIDTH_M)


def test_ways_in_any_order_and_direction_give_the_same_loop():
    turned = [way("lower", 0, *range(59, 29, -1)), way("upper", *range(31))]
    first, second = (join_loop(PATH, ways, PLACES).centreline for ways in (HALVES, turned))
    assert {(round(x, 3), round(y, 3)) for x, y in zip(first.x_m, first.y_m, strict=True)} == {
        (round(x, 3), round(y, 3)) for x, y in zip(second.x_m, second.y_m, strict=True)
    }


def area_m2(line):
    """Positive where the loop is driven anticlockwise."""
    return 0.5 * float(np.sum(line.x_m * np.roll(line.y_m, -1) - line.y_m * np.roll(line.x_m, -1)))


def test_without_one_way_roads_it_is_driven_as_it_is_drawn_from_the_first_way_on():
    loop = join_loop(PATH, HALVES, PLACES)
    assert area_m2(loop.centreline) > 0.0
    assert loop.names == ["upper", "lower"]
    assert (loop.centreline.x_m[0], loop.centreline.y_m[0]) == pytest.approx((200.0, 0.0), abs=0.2)
    backwards = [Way(half.name, half.nodes[::-1], half.tags) for half in HALVES]
    assert area_m2(join_loop(PATH, backwards, PLACES).centreline) < 0.0


@pytest.mark.parametrize(("oneway", "sign"), [("yes", 1.0), ("-1", -1.0)])
def test_a_one_way_road_is_driven_that_way(oneway, sign):
    ways = [way("upper", *range(31), oneway=oneway), HALVES[1]]
    assert area_m2(join_loop(PATH, ways, PLACES).centreline) * sign > 0.0


def test_the_longest_loop_is_taken_and_dead_ends_and_pit_lanes_are_not():
    places = PLACES | {"far": (LON + 0.02, LAT), "pit": (LON, LAT)}
    chord = way("short cut", 0, 30)
    ways = [*HALVES, chord, way("dead end", 5, "far"), way("Pit Lane", 50, "pit", 10, name="Pit Lane")]
    assert sorted(join_loop(PATH, ways, places).names) == ["lower", "upper"]


def test_other_roads_are_used_only_where_there_is_no_raceway():
    street = Way("street", [str(k) for k in (*range(0, 60, 4), 0)], {"highway": "residential"})
    assert join_loop(PATH, [street], PLACES).names == ["street"]
    assert sorted(join_loop(PATH, [street, *HALVES], PLACES).names) == ["lower", "upper"]


@pytest.mark.parametrize(
    ("tags", "width_m"),
    [
        ({"width": "12"}, 12.0), ({"width": "12.5 m"}, 12.5), ({"width": "40 ft"}, 12.192), ({"lanes": "3"}, 10.5),
        ({"width": "wide"}, None), ({"width": "0.5"}, None), ({"width": "9999"}, None), ({"lanes": "99"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_widths_come_from_the_tags(tags, width_m):
    assert Way("road", [], tags).width_m == (None if width_m is None else pytest.approx(width_m))


def test_each_way_keeps_its_own_width():
    loop = join_loop(PATH, [way("upper", *range(31), width="14"), HALVES[1]], PLACES)
    assert loop.has_widths
    is_upper = loop.centreline.y_m > 20.0
    assert loop.centreline.width_left_m[is_upper] == pytest.approx(7.0)
    assert loop.centreline.width_right_m[loop.centreline.y_m < -20.0] == pytest.approx(5.0)


def test_long_straights_get_points_and_near_points_are_one():
    corners = {"a": (LON, LAT), "b": (LON + 0.01, LAT), "c": (LON + 0.01, LAT + 0.005), "d": (LON, LAT + 0.005)}
    places = corners | {"e": (LON + 1e-7, LAT)}
    line = join_loop(PATH, [way("square", "a", "e", "b", "c", "d", "a")], places).centreline
    steps_m = np.hypot(np.diff(line.x_m), np.diff(line.y_m))
    assert steps_m.max() < 121.0
    assert steps_m.min() > 0.5


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ([], "has no road"),
        ([way("point", 1)], "has no road"),
        ([HALVES[0]], r"form no loop; one ends at latitude 50\.00000, longitude 8\.00279"),
        ([way("there and back", 1, 2, 3, 2, 1)], "its loop has 4 points"),
    ],
    ids=["nothing", "a point", "half", "a line"],
)
def test_what_is_no_loop_is_refused(ways, words):
    with pytest.raises(TrackError, match=words):
        join_loop(PATH, ways, PLACES)


def test_a_town_is_refused():
    places = {(i, j): (LON + 1e-3 * i, LAT + 1e-3 * j) for i in range(20) for j in range(20)}
    rows = [Way("row", [(i, j) for i in range(20)], {"highway": "residential"}) for j in range(20)]
    columns = [Way("column", [(i, j) for j in range(20)], {"highway": "residential"}) for i in range(20)]
    with pytest.raises(TrackError, match="roads between junctions, at most 400 are searched"):
        join_loop(PATH, [*rows, *columns], places)

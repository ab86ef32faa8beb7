"""Places on the ribbon: there and back, over the seam, and along the lap."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.sim.ribbon import FAR_SPAN, MAX_WALK, NEAR_SPAN, pack_ribbons
from hotlap.tracks.geometry.node_builder import wall_lines
from sim.kernels import F, locate_on, place_on
from sim.worlds import BUILT_IN, World, heading_at, nodes_of

NAMES = sorted((*BUILT_IN, "oval", "eight"))


@cache
def world_of(name: str) -> World:
    """A world of one track, made by the first test that needs it: the simulator is compiled before that."""
    return World([nodes_of(name)])


def find(world: World, x, y, from_node: int) -> tuple[int, float, float, float]:
    node, fraction, left_m, arc_m = locate_on(
        world.ribbons, 0, np.array([from_node]), np.array([x], F), np.array([y], F)
    )
    return int(node[0]), float(fraction[0]), float(left_m[0]), float(arc_m[0])


@settings(max_examples=300)
@given(
    name=st.sampled_from(NAMES),
    where=st.floats(0.0, 1.0, exclude_max=True),
    side=st.floats(-1.0, 1.0),
    walk=st.integers(-30, 30),
)
def test_locate_finds_what_place_placed(name, where, side, walk):
    world = world_of(name)
    nodes = nodes_of(name)
    node, fraction = divmod(where * nodes.num_nodes, 1.0)
    node = int(node)
    walls = nodes.wall_left_m if side > 0.0 else nodes.wall_right_m
    left_m = side * min(walls[node], walls[(node + 1) % nodes.num_nodes])
    x, y = place_on(world.ribbons, 0, node, fraction, left_m)
    found_node, found_fraction, found_left_m, found_arc_m = find(world, x, y, (node + walk) % nodes.num_nodes)
    steps = (
        found_node + found_fraction - node - fraction + nodes.num_nodes / 2
    ) % nodes.num_nodes - nodes.num_nodes / 2
    # The fraction is measured along the chord, placed along the curve: on the inside wall they differ by centimetres.
    assert abs(steps) * nodes.step_m < 0.05
    assert found_left_m == pytest.approx(left_m, abs=0.02)
    assert found_arc_m == pytest.approx((found_node + found_fraction) * nodes.step_m, abs=1e-3)
    back = place_on(world.ribbons, 0, found_node, found_fraction, found_left_m)
    assert np.hypot(float(back[0] - x), float(back[1] - y)) < 0.05


@pytest.mark.parametrize("name", [*BUILT_IN, "oval", "eight"])
def test_points_on_the_centreline_are_found_exactly(name):
    world, nodes = world_of(name), nodes_of(name)
    at = np.arange(nodes.num_nodes)
    x, y = world.ribbons.nodes["x_m"], world.ribbons.nodes["y_m"]
    node, fraction, left_m, arc_m = locate_on(world.ribbons, 0, at, x, y)
    assert np.array_equal(node, at)
    assert fraction.max() == 0.0
    assert np.abs(left_m).max() == 0.0
    assert arc_m == pytest.approx(at * nodes.step_m, abs=2e-4)


@pytest.mark.parametrize("name", [*BUILT_IN, "eight"])
def test_walking_a_lap_in_small_steps_passes_every_node_once_and_the_seam_both_ways(name):
    world, nodes = world_of(name), nodes_of(name)
    fine = np.arange(0.0, nodes.num_nodes, 0.23)
    x = np.interp(fine, np.arange(nodes.num_nodes + 1), np.append(nodes.x_m, nodes.x_m[0]))
    y = np.interp(fine, np.arange(nodes.num_nodes + 1), np.append(nodes.y_m, nodes.y_m[0]))
    for order in (1, -1):
        node, visited = 0, []
        for px, py in zip(x[::order], y[::order], strict=True):
            node = find(world, px, py, node)[0]
            visited.append(node)
        hops = np.diff(visited, append=visited[0])
        hops[hops < -nodes.num_nodes / 2] += nodes.num_nodes
        hops[hops > nodes.num_nodes / 2] -= nodes.num_nodes
        assert set(visited) == set(range(nodes.num_nodes))
        assert set(hops.tolist()) <= {0, order}


def test_a_lap_ends_and_begins_at_the_line_and_left_of_travel_is_positive():
    world, nodes = world_of("track-01"), nodes_of("track-01")
    along = np.array([np.cos(heading_at(nodes, 0)), np.sin(heading_at(nodes, 0))])
    line = np.array([nodes.x_m[0], nodes.y_m[0]])
    behind = find(world, *(line - 0.3 * along), 0)
    beyond = find(world, *(line + 0.3 * along), nodes.num_nodes - 1)
    left = find(world, *(line + 3.0 * np.array([-along[1], along[0]])), 0)
    assert behind[0] == nodes.num_nodes - 1
    assert behind[3] == pytest.approx(nodes.length_m - 0.3, abs=2e-3)
    assert beyond[0] == 0
    assert beyond[3] == pytest.approx(0.3, abs=2e-3)
    assert left[2] == pytest.approx(3.0, abs=1e-3)


def test_a_point_far_away_ends_the_search():
    node, fraction, left_m, _ = find(world_of("track-01"), 1e7, -1e7, 5)
    assert 0 <= node < nodes_of("track-01").num_nodes
    assert 0.0 <= fraction <= 1.0
    assert np.isfinite(left_m)
    assert nodes_of("track-01").num_nodes > MAX_WALK


def test_several_tracks_share_the_arrays_without_touching():
    tracks = [nodes_of(name) for name in BUILT_IN]
    packed = pack_ribbons(tracks, [np.full(nodes.num_nodes, 10.0) for nodes in tracks])
    for index, nodes in enumerate(tracks):
        alone = pack_ribbons([nodes], [np.full(nodes.num_nodes, 10.0)])
        head = packed.tracks[index]
        first, first_portal, count = int(head["first_node"]), int(head["first_portal"]), nodes.num_nodes
        assert np.array_equal(packed.nodes[first : first + count], alone.nodes)
        assert np.array_equal(packed.portals[first_portal - FAR_SPAN : first_portal + count + FAR_SPAN], alone.portals)
        assert head["length_m"] == pytest.approx(nodes.length_m, rel=1e-6)
        assert head["widest_wall_m"] == pytest.approx(max(nodes.wall_left_m.max(), nodes.wall_right_m.max()), rel=1e-6)


@pytest.mark.parametrize("name", BUILT_IN)
def test_portals_stand_on_the_walls_and_repeat_over_the_seam(name):
    nodes, ribbons = nodes_of(name), world_of(name).ribbons
    loop = ribbons.portals[FAR_SPAN : FAR_SPAN + nodes.num_nodes]
    left, right = wall_lines(nodes)
    assert np.stack([loop["left_x"], loop["left_y"]], axis=1) == pytest.approx(left, abs=2e-4)
    assert np.stack([loop["right_x"], loop["right_y"]], axis=1) == pytest.approx(right, abs=2e-4)
    assert np.array_equal(ribbons.portals[:FAR_SPAN], loop[-FAR_SPAN:])
    assert np.array_equal(ribbons.portals[-FAR_SPAN:], loop[:FAR_SPAN])


@pytest.mark.parametrize(("span", "column"), [(FAR_SPAN, "far_stray_m"), (NEAR_SPAN, "near_stray_m")])
def test_no_wall_strays_farther_from_its_chord_than_the_portal_says(span, column):
    from shapely import LineString, Point

    nodes = nodes_of("track-03")
    loop = world_of("track-03").ribbons.portals[FAR_SPAN : FAR_SPAN + nodes.num_nodes]
    walls = [np.stack([loop[f"{side}_x"], loop[f"{side}_y"]], axis=1).astype(float) for side in ("left", "right")]
    for k in range(0, nodes.num_nodes, 7):
        strays = []
        for wall in (wall[np.arange(k, k + span + 1) % nodes.num_nodes] for wall in walls):
            chord = LineString(wall[[0, -1]])
            strays += [chord.distance(Point(point)) for point in wall]
        assert max(strays) < loop[column][k] < max(strays) + 0.002

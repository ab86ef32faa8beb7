"""A car on the road touches no wall: walls leave room, and a road too tight for that is narrowed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.geometry.bend_narrowing import narrow_tight_bends
from hotlap.tracks.geometry.node_builder import DEFAULT_SPACING_M, build_nodes, edge_points, find_fault
from hotlap.tracks.registry import load_track, save_track
from tracks.shapes import hairpins, stadium

RADIUS_M = CarParameters().radius_m


def least_room(nodes):
    return float(min((nodes.wall_left_m - nodes.road_left_m).min(), (nodes.wall_right_m - nodes.road_right_m).min()))


@pytest.mark.parametrize("radius_m", [2.5, 4.0, 5.7, 6.0, 7.0, 8.0])
@pytest.mark.parametrize("half_m", [3.5, 5.0, 6.8])
def test_a_hairpin_leaves_a_car_at_its_inner_edge_room(radius_m, half_m):
    line = narrow_tight_bends(hairpins(radius_m, left=half_m, right=half_m), DEFAULT_SPACING_M)
    assert find_fault(line) is None
    nodes = build_nodes(line)
    assert least_room(nodes) > RADIUS_M
    assert nodes.road_left_m.min() >= 0.25
    np.testing.assert_array_equal(nodes.road_right_m, half_m)  # the outside is as wide as before


def test_a_road_is_narrowed_at_the_hairpin_only_and_comes_back_gradually():
    nodes = build_nodes(hairpins(6.0, left=5.0, right=5.0))
    is_narrow = nodes.road_left_m < 5.0
    assert is_narrow.any()
    assert (np.abs(nodes.x_m[is_narrow]) > 150.0).all()
    assert np.abs(np.diff(nodes.road_left_m)).max() <= 0.5 * nodes.step_m + 1e-9


def test_legs_side_by_side_keep_their_width_and_a_car_its_room():
    # Two legs 12 m apart with 5 m of road between them on each side: 2 m are left for both walls.
    nodes = build_nodes(stadium(6.0, straight_m=250.0, left=5.0, right=5.0))
    assert least_room(nodes) > RADIUS_M
    is_straight = np.abs(nodes.curvature_radpm) < 1e-3
    assert np.median(nodes.road_left_m[is_straight]) == 5.0


def test_a_road_with_room_keeps_its_width():
    for line in (hairpins(12.0, left=6.0, right=6.0), stadium(20.0)):
        nodes = build_nodes(line)
        assert least_room(nodes) > RADIUS_M
        assert nodes.road_left_m.min() == pytest.approx(line.width_left_m.min())


@pytest.mark.parametrize("track_id", ["track-01", "track-02", "track-03", "train-072"])
def test_shipped_tracks_leave_a_car_room(track_id):
    assert least_room(load_track(track_id).nodes) > 2.0 * RADIUS_M  # train-072 has the least of all


@settings(max_examples=12, deadline=None)
@given(st.floats(2.2, 12.0), st.floats(1.6, 12.0), st.floats(1.6, 12.0))
def test_whatever_the_widths_of_a_hairpin_a_car_on_the_road_touches_no_wall(radius_m, left_m, right_m):
    line = narrow_tight_bends(hairpins(radius_m, left=left_m, right=right_m), DEFAULT_SPACING_M)
    if find_fault(line) is None:
        assert least_room(build_nodes(line)) > RADIUS_M


def test_a_car_at_either_edge_of_the_tightest_hairpin_touches_no_wall_in_the_simulator():
    save_track("pin", hairpins(5.7, left=5.0, right=5.0), "")
    nodes = load_track("pin").nodes
    fleet = Fleet(["pin"], RacerSettings(), 2 * nodes.num_nodes, CpuEngine(1))
    fleet.seed(np.arange(fleet.num_cars, dtype=np.uint64))
    fleet.reset()
    state, node = fleet.get_state(), np.tile(np.arange(nodes.num_nodes), 2)
    lateral_m = np.concatenate((nodes.road_left_m, -nodes.road_right_m))
    places = edge_points(nodes, nodes.road_left_m), edge_points(nodes, -nodes.road_right_m)
    state["x_m"][:], state["y_m"][:] = np.concatenate(places).T
    state["yaw_rad"][:] = np.arctan2(nodes.tangent_y, nodes.tangent_x)[node]
    state["node"][:], state["share"][:], state["lateral_m"][:] = node, 0.0, lateral_m
    for name in ("forward_mps", "left_mps", "yaw_radps"):
        state[name][:] = 0.0
    fleet.set_state(state)
    fleet.step(np.zeros((fleet.num_cars, 3), np.float32), autoreset=False)
    assert not fleet.batch.infos["wallContact"].any()

"""The guide: on roads where the quickest line is known."""

import numpy as np
import pytest

from hotlap.sim.guide_line import EDGE_MARGIN_M, GRIP_FRACTION, guide_line
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.registry import load_track
from sim.kernels import CAR, GRAVITY_MPS2

ROOM_M = 6.0 - EDGE_MARGIN_M


def make_nodes(x_m: np.ndarray, y_m: np.ndarray, half_m: float = 6.0) -> RibbonNodes:
    """A closed road of constant width through evenly spaced points."""
    along_x, along_y = (0.5 * (np.roll(values, -1) - np.roll(values, 1)) for values in (x_m, y_m))
    step_m = np.hypot(along_x, along_y)
    turn = np.unwrap(np.arctan2(along_y, along_x))
    curvature = (np.roll(turn, -1) - np.roll(turn, 1) + np.pi) % (2.0 * np.pi) - np.pi
    even = np.ones_like(x_m)
    return RibbonNodes(
        float(step_m.mean()), x_m, y_m, along_x / step_m, along_y / step_m, curvature / (2.0 * step_m),
        half_m * even, half_m * even, 2.0 * half_m * even, 2.0 * half_m * even,
    )  # fmt: skip


def circle(radius_m: float, direction: float = 1.0) -> RibbonNodes:
    angle = direction * np.linspace(0.0, 2.0 * np.pi, int(2.0 * np.pi * radius_m), endpoint=False)
    return make_nodes(radius_m * np.cos(angle), radius_m * np.sin(angle))


def oval(straight_m: int = 200, radius_m: float = 30.0) -> RibbonNodes:
    """Two straights and two half circles, points one metre apart."""
    bend = np.linspace(-0.5 * np.pi, 0.5 * np.pi, round(np.pi * radius_m), endpoint=False)
    straight = np.arange(straight_m, dtype=float)
    x_m = np.concatenate([straight, straight_m + radius_m * np.cos(bend), straight[::-1] + 1, -radius_m * np.cos(bend)])
    y_m = np.concatenate(
        [0.0 * straight - radius_m, radius_m * np.sin(bend), 0.0 * straight + radius_m, -radius_m * np.sin(bend)]
    )
    return make_nodes(x_m, y_m)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_on_a_circle_it_stays_at_one_distance_and_uses_the_given_grip(direction):
    """A lap at the limit of grip takes as long as the root of the radius, so the line at the inner edge is quickest."""
    left_m, progress_mps = guide_line(circle(60.0, direction))
    assert left_m == pytest.approx(direction * ROOM_M, abs=0.02)
    inner_m = 60.0 - ROOM_M
    grip_mps2 = GRIP_FRACTION * CAR.friction * GRAVITY_MPS2
    assert progress_mps == pytest.approx(np.sqrt(grip_mps2 * inner_m) * 60.0 / inner_m, rel=5e-3)


def test_it_enters_a_bend_outside_passes_its_apex_inside_and_leaves_outside():
    nodes = oval()
    left_m, progress_mps = guide_line(nodes)
    apex = 200 + round(0.5 * np.pi * 30.0)
    assert left_m[apex] > 0.9 * ROOM_M  # a left bend
    assert left_m[apex - 80 : apex].min() < -0.4 * ROOM_M
    assert left_m[apex : apex + 80].min() < -0.4 * ROOM_M
    assert np.abs(left_m).max() <= ROOM_M + 1e-9
    # The radius of its line is larger than that of the centreline.
    grip_mps2 = GRIP_FRACTION * CAR.friction * GRAVITY_MPS2
    assert progress_mps[apex] > np.sqrt(grip_mps2 * 30.0)
    assert progress_mps.argmax() not in range(190, 320)


def test_a_mirrored_road_has_the_mirrored_guide():
    nodes = load_track("track-01").nodes
    mirrored = RibbonNodes(
        nodes.step_m, nodes.x_m, -nodes.y_m, nodes.tangent_x, -nodes.tangent_y, -nodes.curvature_radpm,
        nodes.road_right_m, nodes.road_left_m, nodes.wall_right_m, nodes.wall_left_m,
    )  # fmt: skip
    left_m, progress_mps = guide_line(nodes)
    other_m, other_mps = guide_line(mirrored)
    np.testing.assert_allclose(other_m, -left_m, atol=1e-6)
    np.testing.assert_allclose(other_mps, progress_mps, rtol=1e-6)


@pytest.mark.parametrize("track_id", ["track-01", "track-02", "track-03"])
def test_it_keeps_off_the_edges_and_its_lap_is_little_slower_than_the_optimum(track_id):
    track = load_track(track_id)
    nodes = track.nodes
    left_m, progress_mps = guide_line(nodes)
    assert (left_m <= nodes.road_left_m).all()
    assert (left_m >= -nodes.road_right_m).all()
    lap_s = float((nodes.step_m / progress_mps).sum())
    from hotlap.optimal.reference import find_reference

    assert 1.0 < lap_s / find_reference(track).lap_time_s < 1.05

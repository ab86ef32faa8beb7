"""Plans as racelines: a circle stays a circle, and shipped lines stay on the road and match their lap times."""

import numpy as np
import pytest

from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, State
from hotlap.optimal.plan import Plan
from hotlap.optimal.raceline import SPACING_M, make_raceline
from hotlap.optimal.reference import find_reference
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.registry import list_tracks, load_track
from optimal.kernels import places_of
from tracks.shapes import circle

SHIPPED = [entry.track_id for entry in list_tracks() if entry.source != "yours"]


def lap_s(line) -> float:
    """Time round a closed line, from its points and speeds."""
    pieces_m = np.hypot(np.diff(line.x_m, append=line.x_m[0]), np.diff(line.y_m, append=line.y_m[0]))
    pace = 1.0 / line.vx_mps
    return float(np.sum(pieces_m * 0.5 * (pace + np.roll(pace, -1))))


def test_a_lap_offset_from_a_circle_is_a_smaller_circle():
    nodes = build_nodes(circle(100.0, 200, right=6.0, left=6.0))
    arc_m = np.linspace(0.0, nodes.length_m, 301)[1:]
    states = np.zeros((300, NUM_STATES))
    states[:, State.LATERAL], states[:, State.FORWARD] = 5.0, 19.0
    line = make_raceline(Plan(arc_m, states, np.zeros((300, NUM_CONTROLS)), 0.0, 0.0), nodes)
    np.testing.assert_allclose(np.hypot(line.x_m, line.y_m), 95.0, atol=0.02)
    np.testing.assert_allclose(line.kappa_radpm, 1.0 / 95.0, rtol=5e-3)
    np.testing.assert_allclose(line.vx_mps, 19.0)
    np.testing.assert_allclose(line.ax_mps2, 0.0, atol=1e-9)
    assert line.psi_rad[0] == pytest.approx(0.0, abs=0.01)  # starts northwards
    assert lap_s(line) == pytest.approx(2.0 * np.pi * 5.0, rel=1e-3)
    assert len(line.s_m) == round(nodes.length_m / SPACING_M)


def test_sliding_counts_as_speed_and_course():
    nodes = load_track("track-01").nodes
    arc_m = np.linspace(0.0, nodes.length_m, 501)[1:]
    states = np.zeros((500, NUM_STATES))
    states[:, State.FORWARD], states[:, State.LEFT] = 20.0, -2.0
    states[:, State.HEADING] = np.arctan2(2.0, 20.0)  # the nose points inwards by as much as the car slides out
    line = make_raceline(Plan(arc_m, states, np.zeros((500, NUM_CONTROLS)), 0.0, 0.0), nodes)
    np.testing.assert_allclose(line.vx_mps, np.hypot(20.0, 2.0))
    at_m = np.arange(len(line.x_m)) * SPACING_M
    road = np.arctan2(along_track(nodes.tangent_y, nodes, at_m), along_track(nodes.tangent_x, nodes, at_m))
    off = (line.psi_rad + 0.5 * np.pi - road + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(off).max() < 1e-6


def test_every_shipped_line_stays_on_its_road_and_takes_its_lap_time():
    beyond_m, off = {}, {}
    for track_id in SHIPPED:
        track = load_track(track_id)
        reference = find_reference(track)
        nodes, line = track.nodes, reference.raceline
        off[track_id] = lap_s(line) / reference.lap_time_s - 1.0
        # Points come every two metres of centreline, so each is searched from where it should be.
        near = np.arange(len(line.x_m)) * SPACING_M // nodes.step_m % nodes.num_nodes
        left_m, arc_m = places_of(nodes, near, line.x_m, line.y_m)
        over_left = left_m - along_track(nodes.road_left_m, nodes, arc_m)
        over_right = -left_m - along_track(nodes.road_right_m, nodes, arc_m)
        beyond_m[track_id] = float(max(over_left.max(), over_right.max()))
    assert {name: beyond for name, beyond in beyond_m.items() if not beyond <= 0.05} == {}
    assert min(beyond_m.values()) > -0.5  # and uses all of it
    assert {name: value for name, value in off.items() if not abs(value) < 2e-3} == {}

"""Plans as racelines: a circle comes out as a circle, and shipped lines stay on the road and take the time they say."""

import numpy as np
import pytest

from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, State
from hotlap.optimal.plan import Plan
from hotlap.optimal.raceline import SPACING_M, raceline_of
from hotlap.optimal.reference import find_reference
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.geometry import build_nodes
from hotlap.tracks.registry import list_tracks, load_track

from .kernels import places_of

SHIPPED = [entry.track_id for entry in list_tracks() if entry.source != "yours"]


def lap_s(line) -> float:
    """Time round a closed line, from its points and speeds."""
    pieces_m = np.hypot(np.diff(line.x_m, append=line.x_m[0]), np.diff(line.y_m, append=line.y_m[0]))
    pace = 1.0 / line.vx_mps
    return float(np.sum(pieces_m * 0.5 * (pace + np.roll(pace, -1))))


def test_an_offset_lap_of_a_circle():
    angle = np.arange(200) * 2.0 * np.pi / 200
    width = np.full(200, 6.0)
    nodes = build_nodes(Centreline(100.0 * np.cos(angle), 100.0 * np.sin(angle), width, width.copy()))
    arc_m = np.linspace(0.0, nodes.length_m, 301)[1:]
    states = np.zeros((300, NUM_STATES))
    states[:, State.LATERAL], states[:, State.FORWARD] = 5.0, 19.0
    line = raceline_of(Plan(arc_m, states, np.zeros((300, NUM_CONTROLS)), 0.0, 0.0), nodes)
    np.testing.assert_allclose(np.hypot(line.x_m, line.y_m), 95.0, atol=0.02)
    np.testing.assert_allclose(line.kappa_radpm, 1.0 / 95.0, rtol=5e-3)
    np.testing.assert_allclose(line.vx_mps, 19.0)
    np.testing.assert_allclose(line.ax_mps2, 0.0, atol=1e-9)
    assert line.psi_rad[0] == pytest.approx(0.0, abs=0.01)  # begins northwards
    assert lap_s(line) == pytest.approx(2.0 * np.pi * 5.0, rel=1e-3)
    assert len(line.s_m) == round(nodes.length_m / SPACING_M)


def test_sliding_counts_as_speed_and_course():
    nodes = load_track("track-01").nodes
    arc_m = np.linspace(0.0, nodes.length_m, 501)[1:]
    states = np.zeros((500, NUM_STATES))
    states[:, State.FORWARD], states[:, State.LEFT] = 20.0, -2.0
    states[:, State.HEADING] = np.arctan2(2.0, 20.0)  # the nose points inwards by as much as the car slides out
    line = raceline_of(Plan(arc_m, states, np.zeros((500, NUM_CONTROLS)), 0.0, 0.0), nodes)
    np.testing.assert_allclose(line.vx_mps, np.hypot(20.0, 2.0))
    at_m = np.arange(len(line.x_m)) * SPACING_M
    road = np.arctan2(along_track(nodes.tangent_y, nodes, at_m), along_track(nodes.tangent_x, nodes, at_m))
    off = (line.psi_rad + 0.5 * np.pi - road + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(off).max() < 1e-6


@pytest.mark.timeout(60)  # builds all the tracks, if nobody has
def test_every_shipped_line_stays_on_its_road():
    beyond_m = {}
    for track_id in SHIPPED:
        track = load_track(track_id)
        nodes, line = track.nodes, find_reference(track).raceline
        # Points come every two metres of centreline, so each is searched from where it should be.
        near = np.arange(len(line.x_m)) * SPACING_M // nodes.step_m % nodes.num_nodes
        left_m, arc_m = places_of(nodes, near, line.x_m, line.y_m)
        over_left = left_m - along_track(nodes.road_left_m, nodes, arc_m)
        over_right = -left_m - along_track(nodes.road_right_m, nodes, arc_m)
        beyond_m[track_id] = float(max(over_left.max(), over_right.max()))
    assert {name: beyond for name, beyond in beyond_m.items() if not beyond <= 0.05} == {}
    assert min(beyond_m.values()) > -0.5  # and uses all of it


@pytest.mark.timeout(60)  # builds all the tracks, if nobody has
def test_every_shipped_line_takes_the_time_it_says():
    off = {}
    for track_id in SHIPPED:
        reference = find_reference(load_track(track_id))
        off[track_id] = lap_s(reference.raceline) / reference.lap_time_s - 1.0
    assert {name: value for name, value in off.items() if not abs(value) < 2e-3} == {}

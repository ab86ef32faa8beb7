"""Where time is lost, on laps whose answer is known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.errors import ReportError
from hotlap.evaluation.evaluate import Lap
from hotlap.evaluation.lap_comparison import best_flying_lap, compare, estimate_pedals, project
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.corners import find_corners
from hotlap.tracks.geometry.node_builder import build_nodes, find_crossings
from hotlap.tracks.registry import Track, load_track


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def raceline(track):
    return centreline_raceline(track)


@pytest.fixture(scope="module")
def lap_s(track, raceline):
    return float(clock(raceline, track)[1][-1])


def figure_eight() -> Track:
    angle = (np.arange(300) + 40) * 2.0 * np.pi / 300
    width = np.full(300, 6.0)
    line = Centreline(300 * np.sin(angle), 200 * np.sin(2 * angle), width, width.copy())
    return replace(load_track("track-01"), centreline=line, nodes=build_nodes(line))


def test_the_reference_itself_loses_nothing(track, raceline, lap_s):
    result = compare(follow(raceline, track), track, raceline, lap_s)
    np.testing.assert_allclose(result.delta_s, 0.0, atol=1e-3)
    np.testing.assert_allclose(result.driver_speed_mps, result.optimal_speed_mps, rtol=5e-3)
    assert [sector.lost_s for sector in result.sectors] == pytest.approx([0.0] * 7, abs=1e-3)
    assert result.gap == pytest.approx(0.0, abs=1e-6)


def test_at_nine_tenths_of_the_speed_a_ninth_of_the_time_is_lost_everywhere(track, raceline, lap_s):
    result = compare(follow(raceline, track, 0.9), track, raceline, lap_s)
    np.testing.assert_allclose(result.delta_s, result.optimal_time_s / 0.9 - result.optimal_time_s, atol=1e-3)
    assert result.delta_s[-1] == pytest.approx(lap_s / 0.9 - lap_s, abs=1e-3)
    assert result.gap == pytest.approx(1.0 / 9.0, abs=1e-5)
    fine_m, fine_s, _ = clock(raceline, track)
    for sector in result.sectors:
        start_s, end_s = np.interp([sector.start_m, sector.end_m], fine_m, fine_s)
        spent_s = (end_s - start_s) % lap_s
        assert sector.lost_s == pytest.approx(spent_s / 9.0, abs=1e-3)
        assert sector.driver_slowest_mps == pytest.approx(0.9 * sector.optimal_slowest_mps, rel=0.01)


def test_sector_losses_add_up_to_the_difference_of_the_laps(track, raceline, lap_s):
    result = compare(follow(raceline, track, 0.83), track, raceline, lap_s)
    assert sum(sector.lost_s for sector in result.sectors) == pytest.approx(result.lap.time_s - lap_s, abs=1e-3)
    assert result.delta_s[0] == 0.0
    losses = [sector.lost_s for sector in result.sectors]
    assert losses == sorted(losses, reverse=True)


def test_time_is_lost_where_the_driver_is_slow(track, raceline, lap_s):
    hairpin = find_corners(track.nodes)[3].apex
    speed_mps = raceline.vx_mps.copy()
    speed_mps[hairpin - 10 : hairpin + 11] *= 0.5
    slow = follow(replace(raceline, vx_mps=speed_mps), track)
    result = compare(slow, track, raceline, lap_s)
    assert result.sectors[0].label == "T4 hairpin"
    assert result.sectors[0].lost_s == pytest.approx(result.delta_s[-1], abs=2e-3)
    assert result.delta_s[hairpin - 15] == pytest.approx(0.0, abs=1e-3)


def test_the_best_clean_flying_lap_is_taken():
    laps = [Lap(0, 1, 20.0, True), Lap(0, 2, 24.0, True), Lap(0, 3, 22.0, False), Lap(0, 4, 23.0, True)]
    assert best_flying_lap(laps) == laps[3]
    assert best_flying_lap(laps[:1]) is None
    assert best_flying_lap([laps[0], laps[2]]) == laps[2]


def test_a_car_that_goes_back_is_timed_at_its_first_passage(track, raceline, lap_s):
    trace = follow(raceline, track, 0.9)
    first = len(trace.x_m) // 2 + 400
    arc_m = trace.arc_m.copy()
    arc_m[first : first + 20] -= 15.0
    result = compare(replace(trace, arc_m=arc_m), track, raceline, lap_s)
    plain = compare(trace, track, raceline, lap_s)
    is_elsewhere = np.abs(result.arc_m - trace.arc_m[first + 10]) > 20.0
    np.testing.assert_allclose(result.driver_time_s[is_elsewhere], plain.driver_time_s[is_elsewhere], atol=1e-3)
    is_before = (result.arc_m > trace.arc_m[first] - 15.0) & (result.arc_m < trace.arc_m[first - 1])
    np.testing.assert_allclose(result.driver_time_s[is_before], plain.driver_time_s[is_before], atol=1e-3)
    assert (np.diff(result.driver_time_s) > 0.0).all()


def test_a_raceline_may_start_anywhere_on_the_lap(track, raceline, lap_s):
    shift = 333
    columns = {
        name: np.roll(getattr(raceline, name), -shift) for name in ("x_m", "y_m", "psi_rad", "vx_mps", "ax_mps2")
    }
    turned = replace(raceline, **columns)
    result = compare(follow(raceline, track), track, turned, lap_s)
    np.testing.assert_allclose(result.delta_s, 0.0, atol=2e-3)


def test_projection_stays_on_its_level_of_an_overpass():
    track = figure_eight()
    assert len(find_crossings(track.nodes)) == 1
    raceline = centreline_raceline(track, np.full(track.nodes.num_nodes, 30.0))
    np.testing.assert_allclose(project(raceline, track.nodes), raceline.s_m, atol=1e-6)


def test_projection_stays_on_its_leg_of_a_hairpin(track):
    """Two straights 8 m apart, where the road of one reaches past the middle between them."""
    along, turn = np.arange(0.0, 60.0, 2.0), np.arange(0.0, np.pi, 0.4)
    half = np.concatenate([along - 30.0 + 0.0j, 30.0 + 4.0j - 4.0j * np.exp(1j * turn)])
    points = np.concatenate([half, 8.0j - half])
    left_m = np.full(points.size, 2.0)
    left_m[22:29] = 5.0  # towards the other straight, near the end of the first
    nodes = build_nodes(Centreline(points.real.copy(), points.imag.copy(), np.full(points.size, 2.0), left_m))
    side_m = np.interp(np.arange(nodes.num_nodes) * nodes.step_m, [40.0, 46.0, 54.0, 59.0], [0.0, 4.9, 4.9, 0.0])
    line = replace(
        centreline_raceline(replace(track, nodes=nodes), np.full(nodes.num_nodes, 10.0)),
        x_m=nodes.x_m - side_m * nodes.tangent_y,
        y_m=nodes.y_m + side_m * nodes.tangent_x,
    )
    around = (project(line, nodes) - line.s_m + 50.0) % nodes.length_m - 50.0
    np.testing.assert_allclose(around, 0.0, atol=0.05)


def test_projection_ignores_a_lateral_offset(track):
    nodes = track.nodes
    side_m = 3.0 * np.sin(np.arange(nodes.num_nodes) / 40.0)
    line = replace(
        centreline_raceline(track),
        x_m=nodes.x_m - side_m * nodes.tangent_y,
        y_m=nodes.y_m + side_m * nodes.tangent_x,
    )
    around = (project(line, nodes) - line.s_m + 50.0) % nodes.length_m - 50.0
    np.testing.assert_allclose(around, 0.0, atol=1e-6)


def test_pedals_are_estimated_from_acceleration():
    car = CarParameters()
    flat_out = np.array([car.top_speed_mps])
    throttle, brake = estimate_pedals(flat_out, np.zeros(1), car)
    assert (throttle[0], brake[0]) == pytest.approx((1.0, 0.0), abs=1e-6)
    throttle, brake = estimate_pedals(np.zeros(1), np.array([-car.rolling_mps2 - 0.5 * 24.0e3 / 1200.0]), car)
    assert (throttle[0], brake[0]) == pytest.approx((0.0, 0.5))


def test_a_track_without_corners_is_one_sector():
    angle = np.arange(120) * 2.0 * np.pi / 120
    width = np.full(120, 6.0)
    line = Centreline(400 * np.cos(angle), 400 * np.sin(angle), width, width.copy())
    circle = replace(load_track("track-01"), centreline=line, nodes=build_nodes(line))
    raceline = centreline_raceline(circle, np.full(circle.nodes.num_nodes, 40.0))
    result = compare(follow(raceline, circle, 0.8), circle, raceline, circle.nodes.length_m / 40.0)
    [sector] = result.sectors
    assert sector.label == "whole lap"
    assert sector.lost_s == pytest.approx(circle.nodes.length_m / 160.0, abs=1e-3)


def test_laps_that_cannot_be_compared_are_refused(track, raceline, lap_s):
    trace = follow(raceline, track)
    with pytest.raises(ReportError, match="no flying lap among 1 laps"):
        compare(replace(trace, laps=trace.laps[:1]), track, raceline, lap_s)
    with pytest.raises(ReportError, match=r"given lap time is 99\.00 s"):
        compare(trace, track, raceline, 99.0)
    with pytest.raises(ReportError, match="does not go once around"):
        compare(trace, track, centreline_raceline(load_track("track-03")), lap_s)

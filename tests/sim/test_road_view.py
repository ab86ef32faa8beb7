"""Both versions of the view of the road, against plain geometry on real tracks."""

import hashlib

import numpy as np
import pytest

from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import num_observations, observation_space
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.guide_line import guide_line
from hotlap.sim.road_view import (
    COLUMNS_PER_POINT,
    FIRST_GUIDE,
    MIN_REACH_M,
    NUM_POSITION,
    RADIUS_SCALE_M,
    VIEW_BRAKE,
    VIEW_HEADING_COSINE,
    VIEW_HEADING_SINE,
    VIEW_OFFSET,
    VIEW_ROOM_LEFT,
    VIEW_ROOM_RIGHT,
    VIEW_SIDE_SLIP,
    VIEW_THROTTLE,
    WIDTH_SCALE_M,
    point_ahead,
)
from hotlap.sim.world import NUM_OBSERVATIONS
from hotlap.tracks.registry import split_ids

VERSIONS = pytest.mark.parametrize("observation", ["road", "road-2"])
# Points, the power of their spacing, and how far ahead (s) the last one lies.
SPACINGS = {"road": (12, 2.0, 4.0), "road-2": (24, 1.5, 8.0)}
NUM_COLUMNS = {"road": 58, "road-2": 144}
# SHA-256 of the first version's observations, as they were before there was a second.
FIRST_VERSION_DIGEST = "3ff136abbe96455eda182e031200988fb749ea25dfcb1f62cbcd5f0c00106f6a"


def make_fleet(num_cars: int = 64, observation: str = "road", track: str = "track-01") -> Fleet:
    fleet = Fleet([track], RacerSettings.load({"episode": {"start": "random"}}), num_cars, CpuEngine(), observation)
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset()
    return fleet


def drive(fleet: Fleet, num_steps: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(num_steps):
        actions = rng.uniform([-0.4, 0.2, -0.6], [0.4, 1.0, 0.4], (fleet.num_cars, 3)).astype(np.float32)
        fleet.step(actions, autoreset=True)


def view(fleet: Fleet) -> np.ndarray:
    return fleet.batch.obs[:, NUM_OBSERVATIONS:].astype(np.float64)


def points_ahead(fleet: Fleet, observation: str) -> tuple[np.ndarray, np.ndarray]:
    """How far ahead (m) the points lie, and where along the nodes."""
    me = fleet.states
    num_points, power, reach_s = SPACINGS[observation]
    speed = np.hypot(me["forward_mps"], me["left_mps"]).astype(np.float64)
    fractions = (np.arange(1, num_points + 1) / num_points) ** power
    distance = fractions * (float(MIN_REACH_M) + reach_s * speed[:, None])
    return distance, (me["arc_m"][:, None] + distance) / fleet.tracks[0].nodes.step_m


def along(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.interp(where % len(values), np.arange(len(values) + 1), np.append(values, values[0]))


def test_the_first_version_keeps_its_bits() -> None:
    fleet, rng, digest = make_fleet(track="track-02"), np.random.default_rng(0), hashlib.sha256()
    for _ in range(100):
        fleet.step(rng.uniform([-0.4, 0.2, -0.6], [0.4, 1.0, 0.4], (64, 3)).astype(np.float32), autoreset=True)
        digest.update(fleet.batch.obs.tobytes())
    assert digest.hexdigest() == FIRST_VERSION_DIGEST


@VERSIONS
def test_the_first_columns_are_those_of_the_rays(observation: str) -> None:
    rays, road = make_fleet(observation="rays"), make_fleet(observation=observation)
    assert rays.batch.obs.shape == (64, 14)
    assert road.batch.obs.shape == (64, NUM_COLUMNS[observation]) == (64, num_observations(observation))
    for fleet in (rays, road):
        drive(fleet, 200)
    assert rays.states.tobytes() == road.states.tobytes()
    assert np.array_equal(rays.batch.obs, road.batch.obs[:, :NUM_OBSERVATIONS])
    assert np.array_equal(rays.batch.final_obs, road.batch.final_obs[:, :NUM_OBSERVATIONS])


@VERSIONS
@pytest.mark.parametrize("track", ["track-01", "track-03", split_ids("train")[0]])
def test_the_position_is_the_state_of_the_car_on_its_road(track: str, observation: str) -> None:
    fleet = make_fleet(track=track, observation=observation)
    drive(fleet, 150)
    me, nodes, seen = fleet.states, fleet.tracks[0].nodes, view(fleet)

    def at_car(values: np.ndarray) -> np.ndarray:
        after = (me["node"] + 1) % nodes.num_nodes
        return values[me["node"]] * (1.0 - me["share"]) + values[after] * me["share"]

    road_rad = np.arctan2(at_car(nodes.tangent_y), at_car(nodes.tangent_x))
    expected = np.zeros((len(me), NUM_POSITION))
    expected[:, VIEW_OFFSET] = me["lateral_m"] / WIDTH_SCALE_M
    expected[:, VIEW_ROOM_LEFT] = (at_car(nodes.road_left_m) - me["lateral_m"]) / WIDTH_SCALE_M
    expected[:, VIEW_ROOM_RIGHT] = (at_car(nodes.road_right_m) + me["lateral_m"]) / WIDTH_SCALE_M
    expected[:, VIEW_HEADING_SINE] = np.sin(me["yaw_rad"] - road_rad)
    expected[:, VIEW_HEADING_COSINE] = np.cos(me["yaw_rad"] - road_rad)
    expected[:, VIEW_SIDE_SLIP] = me["left_mps"] / 20.0
    expected[:, VIEW_THROTTLE], expected[:, VIEW_BRAKE] = me["throttle"], me["brake"]
    # A mixed tangent is a little shorter than one, less than a thousandth on these roads.
    np.testing.assert_allclose(seen[:, :NUM_POSITION], np.clip(expected, -1.0, 1.0), atol=2e-3)


@VERSIONS
@pytest.mark.parametrize("track", ["track-01", "track-02"])
def test_the_points_ahead_are_the_roads_edges_in_the_cars_frame(track: str, observation: str) -> None:
    fleet = make_fleet(track=track, observation=observation)
    drive(fleet, 150)
    me, nodes = fleet.states, fleet.tracks[0].nodes
    num_points = SPACINGS[observation][0]
    seen = view(fleet)[:, NUM_POSITION : NUM_POSITION + COLUMNS_PER_POINT * num_points]
    points = seen.reshape(len(me), num_points, COLUMNS_PER_POINT)
    distance, where = points_ahead(fleet, observation)
    for column, width, side in ((1, nodes.road_left_m, 1.0), (2, nodes.road_right_m, -1.0)):
        across_m = side * along(width, where)
        x = along(nodes.x_m, where) - along(nodes.tangent_y, where) * across_m
        y = along(nodes.y_m, where) + along(nodes.tangent_x, where) * across_m
        dx, dy = x - me["x_m"][:, None], y - me["y_m"][:, None]
        bearing = np.arctan2(dy, dx) - me["yaw_rad"][:, None]
        is_near = np.hypot(dx, dy) < 1.5
        np.testing.assert_allclose(points[..., column][~is_near], np.sin(bearing)[~is_near], atol=5e-3)

    heading = np.unwrap(np.arctan2(nodes.tangent_y, nodes.tangent_x))
    lap_turn = 2.0 * np.pi * np.round((heading[-1] - heading[0]) / (2.0 * np.pi))
    laps, rest = np.divmod(where, nodes.num_nodes)
    turned = (
        np.interp(rest, np.arange(nodes.num_nodes + 1), np.append(heading, heading[0] + lap_turn)) + laps * lap_turn
    )
    here = (me["arc_m"] / nodes.step_m).astype(np.float64)
    start = np.interp(here, np.arange(nodes.num_nodes + 1), np.append(heading, heading[0] + lap_turn))
    turns = np.diff(np.concatenate([start[:, None], turned], axis=1))
    curvature = turns / np.diff(np.concatenate([np.zeros((len(me), 1)), distance], axis=1))
    is_small = np.abs(turns) < 3.0
    expected = np.clip(float(RADIUS_SCALE_M) * curvature, -1.0, 1.0)
    np.testing.assert_allclose(points[..., 0][is_small], expected[is_small], atol=5e-3)


@pytest.mark.parametrize("track", ["track-01", "track-02"])
def test_the_second_version_shows_the_guide_at_the_car_and_at_every_point(track: str) -> None:
    fleet = make_fleet(track=track, observation="road-2")
    drive(fleet, 150)
    me, nodes = fleet.states, fleet.tracks[0].nodes
    left_m, progress_mps = guide_line(nodes)
    seen = view(fleet)[:, FIRST_GUIDE:].reshape(len(me), 25, 2)
    here = me["arc_m"].astype(np.float64) / nodes.step_m
    np.testing.assert_allclose(seen[:, 0, 0], (me["lateral_m"] - along(left_m, here)) / WIDTH_SCALE_M, atol=1e-3)
    where = points_ahead(fleet, "road-2")[1]
    speeds = along(progress_mps, np.concatenate([here[:, None], where], axis=1)) / 80.0
    assert np.ptp(speeds) > 0.2
    np.testing.assert_allclose(seen[..., 1], speeds, atol=2e-3)
    across_m = along(left_m, where)
    dx = along(nodes.x_m, where) - along(nodes.tangent_y, where) * across_m - me["x_m"][:, None]
    dy = along(nodes.y_m, where) + along(nodes.tangent_x, where) * across_m - me["y_m"][:, None]
    bearing = np.arctan2(dy, dx) - me["yaw_rad"][:, None]
    is_near = np.hypot(dx, dy) < 1.5
    np.testing.assert_allclose(seen[:, 1:, 0][~is_near], np.sin(bearing)[~is_near], atol=5e-3)


@VERSIONS
def test_every_value_stays_in_its_range(observation: str) -> None:
    space, fleet = observation_space(observation), make_fleet(256, observation)
    for seed in range(5):
        drive(fleet, 100, seed)
        assert (fleet.batch.obs >= space.low).all()
        assert (fleet.batch.obs <= space.high).all()
    assert np.abs(fleet.batch.obs[:, NUM_OBSERVATIONS:]).max(axis=0).min() > 0.0  # no column is always zero


@pytest.mark.timeout(60)
@pytest.mark.parametrize("distance_m", [0.0, 2_000.0, 1e9, np.inf, -np.inf, np.nan])
def test_a_point_at_any_distance_lies_on_the_track(distance_m: float) -> None:
    """A policy that has diverged can give a speed that is not finite: neither a hang nor another's memory."""
    fleet = make_fleet(1)
    track = fleet.scenario.ribbons.tracks[0]
    node, _ = point_ahead(fleet.states[0], track, np.float32(distance_m))
    assert 0 <= node < track["num_nodes"]
    if np.isfinite(distance_m) and distance_m < 1e6:
        ahead = fleet.states["node"][0] + int(fleet.states["share"][0] + distance_m / track["step_m"])
        assert node == ahead % track["num_nodes"]

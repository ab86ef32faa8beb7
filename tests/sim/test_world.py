"""The whole tick: walls, surfaces, starts and observations."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.sim.rewards import START_ON_LINE, START_RANDOM
from hotlap.sim.world import (
    NUM_OBSERVATIONS,
    OBS_OFFSET,
    OBS_PROGRESS,
    OBS_SPEED,
    OBS_STEER,
    OBS_YAW_RATE,
    START_HEADING_RAD,
    STATE_DTYPE,
)
from sim.kernels import CAR, F
from sim.worlds import BUILT_IN, World, drivable_area, heading_at, nodes_of

COAST = [0.0, 0.0, 0.0]
GENERATED = (0, 2, 5, 7, 13, 17)
FLOAT_COLUMNS = [name for name in STATE_DTYPE.names or () if STATE_DTYPE[name] == np.float32]


# --- walls hold ---


def hostile_actions(num_ticks: int, num_cars: int, seed: int) -> np.ndarray:
    """Drivers that try to leave the track: flat out, bang-bang, spinning or noise, one kind per car."""
    rng = np.random.default_rng(seed)
    actions = np.zeros((num_ticks, num_cars, 3), F)
    for car in range(num_cars):
        hold = rng.integers(1, 120)
        beats = num_ticks // hold + 1
        steer = np.repeat(rng.choice([-1.0, 0.0, 1.0], beats), hold)[:num_ticks]
        match car % 5:
            case 0:  # flat out into the next wall, wheel on one side
                actions[:, car] = (rng.choice([-1.0, -0.3, 0.3, 1.0]), 1.0, 0.0)
            case 1:  # bang-bang on everything
                pedals = np.repeat(rng.integers(0, 2, (beats, 2)), hold, axis=0)[:num_ticks]
                actions[:, car] = np.column_stack([steer, pedals])
            case 2:  # full throttle, wheel thrown about
                actions[:, car] = np.column_stack([steer, np.ones(num_ticks), np.zeros(num_ticks)])
            case 3:  # noise, far out of range
                actions[:, car] = rng.uniform(-5.0, 5.0, (num_ticks, 3))
            case _:  # straight on
                actions[:, car] = (0.0, 1.0, 0.0)
    return actions


def throw_cars(world: World, seed: int) -> None:
    """Fling every car through the place where it stands: any speed and spin, sideways and backwards too."""
    rng = np.random.default_rng(seed)
    size = world.num_cars
    world.states["yaw_rad"] = rng.uniform(-np.pi, np.pi, size)
    world.states["forward_mps"] = rng.uniform(-30.0, 1.05 * CAR.top_speed_mps, size)
    world.states["left_mps"] = rng.uniform(-20.0, 20.0, size)
    world.states["yaw_radps"] = rng.uniform(-6.0, 6.0, size)


def assert_nobody_leaves(name: str | int, num_ticks: int, num_cars: int, seed: int) -> int:
    """Drive hostile cars; an oracle that knows only the walls' outline checks every tick.

    Returns how many ticks were driven after a car's first excursion: the drivers must be hostile indeed.
    """
    world = World([nodes_of(name)], num_cars, start=START_RANDOM)
    area = drivable_area(nodes_of(name))
    excursions = 0
    for part, chunk in enumerate(np.array_split(hostile_actions(num_ticks, num_cars, seed), max(1, num_ticks // 1000))):
        throw_cars(world, seed + part)
        trace = world.play(chunk)
        assert all(np.isfinite(trace[column]).all() for column in FLOAT_COLUMNS)
        assert np.isfinite(world.batch.obs).all()
        x, y = trace["x_m"].astype(np.float64).ravel(), trace["y_m"].astype(np.float64).ravel()
        shapely.prepare(area)
        is_inside = shapely.contains_xy(area, x, y)
        assert is_inside.all(), f"{name}: {(~is_inside).sum()} of {x.size} ticks ended outside"
        excursions += int(trace["lap_spoiled"].sum())
    return excursions


@pytest.mark.parametrize("name", [*BUILT_IN, *GENERATED[:1]])
def test_fifty_thousand_hostile_ticks_on_a_track_never_end_beyond_a_wall(name):
    assert assert_nobody_leaves(name, num_ticks=1000, num_cars=50, seed=3) > 1000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_million_hostile_ticks_never_end_beyond_a_wall():
    tracks = (*BUILT_IN, *GENERATED, 31)
    for index, name in enumerate(tracks):
        assert_nobody_leaves(name, num_ticks=10_000, num_cars=100, seed=1000 * index)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([*BUILT_IN, *GENERATED]),
    where=st.floats(0.0, 1.0, exclude_max=True),
    side=st.floats(-0.9, 0.9),
    turn_rad=st.floats(-3.2, 3.2),
    speed_mps=st.floats(0.0, 75.0),
    steer=st.floats(-1.0, 1.0),
    throttle=st.floats(0.0, 1.0),
)
def test_no_shot_at_a_wall_gets_through(name, where, side, turn_rad, speed_mps, steer, throttle):
    nodes = nodes_of(name)
    world = World([nodes])
    node = int(where * nodes.num_nodes)
    room_m = min(nodes.wall_left_m[node], nodes.wall_right_m[node]) - CAR.radius_m
    world.put(arc_m=where * nodes.length_m, left_m=side * room_m, turn_rad=turn_rad, speed_mps=speed_mps)
    trace = world.play(np.tile(np.array([steer, throttle, 0.0], F), (240, 1, 1)))[:, 0]
    area = drivable_area(nodes)
    assert shapely.contains_xy(area, trace["x_m"].astype(np.float64), trace["y_m"].astype(np.float64)).all()


# --- sliding along a wall ---


def hit_wall(angle_deg: float, speed_mps: float = 30.0, side: float = 1.0) -> tuple[float, float, World]:
    """Run into the wall of a straight at an angle; the fractions of speed kept in all and along the wall."""
    nodes = nodes_of("oval")
    world = World([nodes])
    room_m = nodes.wall_left_m[0] - CAR.radius_m
    world.put(arc_m=20.0, left_m=side * (room_m - 0.01), turn_rad=side * np.radians(angle_deg), speed_mps=speed_mps)
    world.step(COAST)
    me = world.states[0]
    course = float(me["yaw_rad"]) + np.arctan2(float(me["left_mps"]), float(me["forward_mps"]))
    kept_mps = float(np.hypot(me["forward_mps"], me["left_mps"]))
    return kept_mps / speed_mps, kept_mps * np.cos(course - heading_at(nodes, 0)) / speed_mps, world


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_steeper_the_impact_the_more_speed_is_lost_to_friction(side):
    angles_deg = np.arange(5.0, 91.0, 5.0)
    kept, along = np.array([hit_wall(angle, side=side)[:2] for angle in angles_deg]).T
    into_wall, along_wall = np.sin(np.radians(angles_deg)), np.cos(np.radians(angles_deg))
    slide = np.maximum(along_wall - CAR.wall_friction * into_wall, 0.0)
    assert kept == pytest.approx(slide, abs=0.02)
    assert along == pytest.approx(slide, abs=0.02)
    assert (np.diff(along) < 1e-3).all()
    assert (np.diff(kept) < 1e-3).all()
    assert (np.diff(kept[angles_deg <= 60.0]) < -0.01).all()
    # The wall stops the disc of the car, not its centre.
    lateral_m = hit_wall(60.0, side=side)[2].states["lateral_m"][0]
    assert side * lateral_m == pytest.approx(nodes_of("oval").wall_left_m[0] - CAR.radius_m, abs=1e-3)


def test_a_glancing_contact_keeps_most_of_the_speed_and_is_noted():
    kept, _, world = hit_wall(5.0)
    assert kept > 0.9
    assert world.infos["wallContact"][0]
    assert world.infos["wall"][0] == F(-0.002)
    world.put(arc_m=20.0, speed_mps=30.0)
    world.step(COAST)
    assert not world.infos["wallContact"][0]
    assert world.infos["wall"][0] == 0.0


def test_a_car_that_leans_on_the_wall_under_power_keeps_going():
    _, _, world = hit_wall(10.0, speed_mps=15.0)
    before_m = float(world.states["arc_m"][0])
    for _ in range(120):
        world.step([-0.1, 0.6, 0.0])
    assert world.states["arc_m"][0] - before_m > 20.0


# --- surfaces ---


def lost_in_a_second_mps(left_m: float, speed_mps: float, action: list[float]) -> float:
    world = World([nodes_of("oval")])
    world.put(arc_m=10.0, left_m=left_m, speed_mps=speed_mps)
    for _ in range(60):
        world.step(action)
    return speed_mps - float(world.infos["rawSpeed"][0])


def test_beside_the_road_the_car_is_dragged_down_and_brakes_hold_half_as_well():
    on_road, beside = (lost_in_a_second_mps(left_m, 20.0, COAST) for left_m in (0.0, 8.0))
    assert beside - on_road == pytest.approx(CAR.runoff_drag_mps2, rel=0.02)
    on_road, beside = (lost_in_a_second_mps(left_m, 25.0, [0.0, 0.0, 1.0]) for left_m in (0.0, 8.0))
    assert 0.4 < beside / on_road < 0.65


# --- starts ---


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_episode_starts_standing_on_the_line(name):
    world, nodes = World([nodes_of(name)]), nodes_of(name)
    me = world.states[0]
    assert [me["x_m"], me["y_m"]] == pytest.approx([nodes.x_m[0], nodes.y_m[0]], abs=1e-4)
    assert me["yaw_rad"] == pytest.approx(heading_at(nodes, 0), abs=1e-5)
    assert [me["forward_mps"], me["left_mps"], me["yaw_radps"], me["arc_m"], me["lateral_m"]] == [0.0] * 5
    assert [me["lap"], me["gate"], me["next_gate"], me["clock_runs"], me["tick"]] == [1, 0, 1, 1, 0]


def test_random_starts_cover_the_track_on_the_road_at_a_feasible_speed():
    nodes = nodes_of("track-01")
    world = World([nodes], num_cars=4000, start=START_RANDOM)
    states = world.states
    assert np.histogram(states["arc_m"], bins=20, range=(0.0, nodes.length_m))[0].min() > 120
    road_m = np.where(states["lateral_m"] > 0, nodes.road_left_m[states["node"]], nodes.road_right_m[states["node"]])
    assert (np.abs(states["lateral_m"]) < 0.65 * road_m).all()
    assert np.ptp(states["lateral_m"]) > nodes.road_left_m.min()
    # This world allows 15 m/s everywhere.
    assert states["forward_mps"].min() > 0.29 * 15.0
    assert states["forward_mps"].max() < 0.96 * 15.0
    along = np.arctan2(nodes.tangent_y, nodes.tangent_x)[states["node"]]
    askew = np.abs(np.angle(np.exp(1j * (states["yaw_rad"] - along))))
    assert 0.9 * START_HEADING_RAD < askew.max() < 1.001 * START_HEADING_RAD


def test_a_fraction_of_the_random_starts_have_spun_and_half_of_those_stand():
    nodes = nodes_of("track-01")
    random, with_spun = (
        World([nodes], num_cars=4000, start=START_RANDOM, spun_fraction=fraction).states for fraction in (0.0, 0.25)
    )
    has_spun = with_spun != random
    assert has_spun.mean() == pytest.approx(0.25, abs=0.02)
    me = with_spun[has_spun]
    stands = (me["forward_mps"] == 0.0) & (me["left_mps"] == 0.0) & (me["yaw_radps"] == 0.0)
    assert stands.mean() == pytest.approx(0.5, abs=0.05)
    along = np.arctan2(nodes.tangent_y, nodes.tangent_x)[me["node"]]
    askew = np.angle(np.exp(1j * (me["yaw_rad"] - along)))
    assert askew.min() < -3.0
    assert askew.max() > 3.0
    room_m = np.where(me["lateral_m"] > 0, nodes.wall_left_m[me["node"]], nodes.wall_right_m[me["node"]])
    fraction = np.abs(me["lateral_m"]) / room_m
    assert 0.9 < fraction.max() < 0.97
    # Those that slide move along the road; this world allows 15 m/s everywhere.
    velocity = (me["forward_mps"] + 1j * me["left_mps"]) * np.exp(1j * askew)
    assert np.allclose(velocity.imag, 0.0, atol=0.05)
    assert (velocity.real >= 0.0).all()
    assert 14.0 < velocity.real.max() < 15.01
    assert 1.9 < np.abs(me["yaw_radps"]).max() <= 2.0


def test_from_the_line_no_car_has_spun():
    lined_up, with_spun = (
        World([nodes_of("track-01")], 64, start=START_ON_LINE, spun_fraction=fraction).states for fraction in (0.0, 1.0)
    )
    assert np.array_equal(lined_up, with_spun)


def test_the_next_episode_starts_elsewhere_and_the_same_seed_in_the_same_place():
    world = World([nodes_of("track-01")], num_cars=8, start=START_RANDOM)
    first = world.states.copy()
    world.states["episode"] += 1
    world.reset()
    assert (np.abs(world.states["arc_m"] - first["arc_m"]) > 1e-3).all()
    world.states["episode"] -= 1
    world.reset()
    assert np.array_equal(world.states, first)


# --- observations ---


def test_observations_match_the_state():
    nodes = nodes_of("track-01")
    world = World([nodes])
    world.put(arc_m=250.0, left_m=-2.0, speed_mps=20.0)
    for _ in range(20):
        world.step([0.5, 0.3, 0.0])
    me, obs = world.states[0], world.batch.obs[0]
    assert obs[OBS_SPEED] == pytest.approx(np.hypot(me["forward_mps"], me["left_mps"]) / CAR.top_speed_mps, rel=1e-5)
    assert obs[OBS_YAW_RATE] == pytest.approx(me["yaw_radps"] / 5.0, rel=1e-5)
    assert obs[OBS_STEER] == me["steer"]
    assert obs[OBS_PROGRESS] == pytest.approx(me["arc_m"] / nodes.length_m, rel=1e-5)
    widest_m = max(nodes.wall_left_m.max(), nodes.wall_right_m.max())
    assert obs[OBS_OFFSET] == pytest.approx(abs(me["lateral_m"]) / widest_m, rel=1e-5)
    assert obs[OBS_YAW_RATE] < 0.0 < obs[OBS_STEER]


def test_observations_are_clipped_into_their_ranges():
    world = World([nodes_of("oval")])
    world.put(arc_m=10.0, speed_mps=2.0 * CAR.top_speed_mps)
    world.states["yaw_radps"], world.states["steer"] = 40.0, 1.0
    world.step([1.0, 0.0, 0.0])
    low, high = np.zeros(NUM_OBSERVATIONS), np.ones(NUM_OBSERVATIONS)
    low[[OBS_YAW_RATE, OBS_STEER]] = -1.0
    assert (world.batch.obs[0] >= low).all()
    assert (world.batch.obs[0] <= high).all()
    assert world.batch.obs[0, OBS_SPEED] == 1.0
    assert world.batch.obs[0, OBS_YAW_RATE] == 1.0


@pytest.mark.parametrize("beyond", [[7.0, 9.0, -3.0], np.finfo(F).max * np.array([1.0, 1.0, -1.0])])
def test_actions_out_of_range_are_clipped(beyond):
    worlds = [World([nodes_of("oval")]) for _ in range(2)]
    for _ in range(60):
        worlds[0].step(beyond)
        worlds[1].step([1.0, 1.0, 0.0])
    assert worlds[0].states[0] == worlds[1].states[0]

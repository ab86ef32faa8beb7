"""Rules and physics of a race: grid, contact, slipstream, order, fault, finish, retirement."""

from itertools import combinations

import numpy as np
import pytest
import shapely

from hotlap.sim.contact import DISC_OFFSET_M, DISC_RADIUS_M
from hotlap.sim.race import (
    AFTER_WINNER_S,
    FINISHED,
    RACING,
    RETIRE_TICKS,
    RETIRED,
    START_ROLLING,
)
from sim.kernels import CAR
from sim.race_worlds import RaceWorld, assert_same_bits, mirrored
from sim.worlds import World, drivable_area, nodes_of

COAST, BRAKE = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
OVAL = nodes_of("oval")  # straights of 300 m, half circles of 60 m; the line is on a straight


def straight_arc_m() -> float:
    """A place on a straight, 60 m from its ends or more."""
    bend = np.abs(OVAL.curvature_radpm) > 1e-3
    runs = [k for k in range(OVAL.num_nodes) if not bend[(np.arange(k - 70, k + 70)) % OVAL.num_nodes].any()]
    return runs[len(runs) // 2] * OVAL.step_m


STRAIGHT_M = straight_arc_m()


def side_by_side(*cars: dict, laps: int = 3) -> RaceWorld:
    """Cars on a straight, each with its place (relative to the middle) and speed."""
    world = RaceWorld(OVAL, len(cars), laps=laps)
    for number, car in enumerate(cars):
        world.put(car=number, **(car | {"arc_m": STRAIGHT_M + car["arc_m"]}))
    begin_from_here(world, laps_done=0)
    return world


def begin_from_here(world: RaceWorld, laps_done: int) -> None:
    """Begin the race with the cars where they were put."""
    world.entrants["arc_m"], world.entrants["laps_done"], world.entrants["position"] = (
        world.states["arc_m"],
        laps_done,
        0,
    )
    world.observe()


def worst_depth_m(world: World) -> float:
    """How deep the deepest two cars are in each other, from the states alone."""
    states = world.states
    discs = [
        np.stack([states["x_m"] + o * np.cos(states["yaw_rad"]), states["y_m"] + o * np.sin(states["yaw_rad"])], 1)
        for o in (-float(DISC_OFFSET_M), 0.0, float(DISC_OFFSET_M))
    ]
    pairs = combinations(range(world.num_cars), 2)
    gaps = [min(np.hypot(*(a[i] - b[j])) for a in discs for b in discs) for i, j in pairs]
    return 2.0 * float(DISC_RADIUS_M) - min(gaps)


# --- the grid ---


def test_the_grid_stands_two_by_two_behind_the_line():
    world = RaceWorld(OVAL, 8)
    world.reset(slots=range(8))
    behind_m = OVAL.length_m - world.states["arc_m"]
    assert behind_m == pytest.approx(np.repeat([8, 16, 24, 32], 2), abs=OVAL.step_m)
    assert (np.sign(world.states["lateral_m"]) == [1, -1] * 4).all()
    assert (world.states["forward_mps"] == 0.0).all()
    assert (world.entrants["laps_done"] == -1).all()
    assert list(world.entrants["position"]) == [1, 2, 3, 4, 5, 6, 7, 8]  # level cars in the order of their numbers
    assert worst_depth_m(world) < 0.0


def test_the_order_of_the_grid_is_drawn_from_the_seed_and_fair():
    world = RaceWorld(OVAL, 4, 3000)
    slots = np.zeros((4, 4), int)
    for race in world.entrants["position"].reshape(-1, 4) - 1:
        assert sorted(race) == [0, 1, 2, 3]
        slots[np.arange(4), race // 2 * 2] += 1
    rows = slots[:, [0, 2]]
    assert np.abs(rows / 3000 - 0.5).max() < 0.04  # each car in either row half of the time
    again = RaceWorld(OVAL, 4, 3000)
    assert_same_bits(world.states, again.states)


@pytest.mark.parametrize("name", ["oval", "track-01"])
def test_a_rolling_grid_is_anywhere_at_a_speed_that_is_feasible_for_all(name):
    world = RaceWorld(nodes_of(name), 8, 200, start=START_ROLLING)
    races = world.states.reshape(200, 8)
    assert (races["forward_mps"] == races["forward_mps"][:, :1]).all()
    assert (races["forward_mps"] > 3.0).all()
    leaders = races["arc_m"].max(axis=1)
    assert np.histogram(leaders, 4, (0.0, nodes_of(name).length_m))[0].min() > 20
    progress_m = world.entrants["laps_done"] * nodes_of(name).length_m + world.states["arc_m"]
    assert (np.ptp(progress_m.reshape(200, 8), axis=1) < 26.0).all()  # four rows, across the line too


# --- contact ---


def test_a_rear_end_hit_on_the_road_has_the_known_answer():
    """Both coast: what the tick does beside the impulse is what it does to each car alone."""
    cars = {"arc_m": 0.0, "speed_mps": 20.0}, {"arc_m": 4.4, "speed_mps": 10.0}
    world, alone = side_by_side(*cars), [side_by_side(car) for car in cars]
    for one in (world, *alone):
        one.step(COAST)
    drop = [20.0 - alone[0].states["forward_mps"][0], 10.0 - alone[1].states["forward_mps"][0]]
    closing = 10.0 - drop[0] + drop[1]
    mean = (30.0 - drop[0] - drop[1]) / 2.0
    # The wake of the car in front takes less than a thousandth of a m/s of drag away in a tick.
    assert world.states["forward_mps"] == pytest.approx([mean - 0.05 * closing, mean + 0.05 * closing], abs=1e-3)
    assert world.entrants["contact_mps"] == pytest.approx([closing] * 2, abs=1e-4)
    assert list(world.entrants["touched"]) == [2, 1]
    assert list(world.entrants["at_fault"]) == [1, 0]


def test_a_pile_of_32_cars_in_a_hairpin_settles():
    nodes = nodes_of("track-01")
    hairpin_m = float(np.argmax(np.abs(nodes.curvature_radpm))) * nodes.step_m
    world, rng = RaceWorld(nodes, 32), np.random.default_rng(1)
    for car in range(32):
        arc_m, left_m, turn_rad = hairpin_m + rng.uniform(-12, 12), rng.uniform(-5, 5), rng.uniform(-3, 3)
        world.put(arc_m=arc_m, left_m=left_m, turn_rad=turn_rad, speed_mps=rng.uniform(0, 25), car=car)
    area = drivable_area(nodes)
    assert worst_depth_m(world) > 1.0
    energy = np.inf
    for tick in range(180):
        world.step(BRAKE)
        moving = (world.states["forward_mps"] ** 2 + world.states["left_mps"] ** 2).sum()
        assert moving <= energy
        energy = moving + 1e-3  # the spin of a car that rolls becomes a little speed
        assert shapely.contains_xy(area, world.states["x_m"].astype(float), world.states["y_m"].astype(float)).all()
        if tick >= 60:
            assert worst_depth_m(world) < 0.05
    assert energy < 0.01


def test_a_mirrored_race_is_mirrored():
    """To the bit, as long as both are located by the same arithmetic."""
    nodes = nodes_of("track-01")
    here, there = RaceWorld(nodes, 6), RaceWorld(mirrored(nodes), 6)
    rng = np.random.default_rng(4)
    for car in range(6):
        arc_m, left_m, turn_rad = 200.0 + rng.uniform(0, 25), rng.uniform(-4, 4), rng.uniform(-0.5, 0.5)
        here.put(arc_m=arc_m, left_m=left_m, turn_rad=turn_rad, speed_mps=20.0, car=car)
    there.states[:] = here.states
    for name in ("y_m", "yaw_rad", "left_mps", "yaw_radps", "lateral_m", "steer"):
        there.states[name] *= -1.0
    touched = 0
    for _ in range(120):
        actions = rng.uniform([-0.3, 0.0, -1.0], [0.3, 1.0, 0.3], (6, 3))
        here.step(actions)
        there.step(actions * [-1.0, 1.0, 1.0])
        touched += int((here.entrants["contact_mps"] > 0.0).sum())
        for name, sign in {"x_m": 1, "y_m": -1, "yaw_rad": -1, "forward_mps": 1, "left_mps": -1, "arc_m": 1}.items():
            assert (there.states[name] == sign * here.states[name]).all(), name
    assert touched > 20


def test_the_order_of_cars_changes_only_the_order_of_sums():
    """Two cars that meet: exchanged numbers give exchanged results, but for the rounding of sums over discs."""
    cars = [{"arc_m": 0.0, "speed_mps": 25.0, "turn_rad": 0.1}, {"arc_m": 4.0, "left_m": 0.7, "speed_mps": 15.0}]
    one, two = side_by_side(*cars), side_by_side(*cars[::-1])
    for _ in range(60):
        one.step(COAST)
        two.step(COAST)
    for name in ("x_m", "y_m", "yaw_rad", "forward_mps", "left_mps"):
        assert one.states[name] == pytest.approx(two.states[name][::-1], abs=1e-3)


def test_cars_on_the_bridge_of_a_figure_eight_do_not_meet():
    nodes = nodes_of("eight")
    crossing = np.hypot(nodes.x_m[:, None] - nodes.x_m, nodes.y_m[:, None] - nodes.y_m)
    far = np.abs((np.arange(nodes.num_nodes)[:, None] - np.arange(nodes.num_nodes)) % nodes.num_nodes - 1) > 100
    over, under = np.unravel_index(np.where(far, crossing, np.inf).argmin(), crossing.shape)
    world = RaceWorld(nodes, 2)
    world.put(arc_m=float(over) * nodes.step_m, car=0)
    world.put(arc_m=float(under) * nodes.step_m, car=1)
    assert worst_depth_m(world) > 0.5
    before = world.states["x_m"].copy()
    world.step(COAST)
    assert (world.entrants["contact_mps"] == 0.0).all()
    assert (world.states["x_m"] == before).all()


def test_a_spin_from_contact_is_limited_as_at_walls():
    world = side_by_side(
        {"arc_m": 0.0, "left_m": -1.6, "speed_mps": 60.0, "turn_rad": 0.3}, {"arc_m": 3.5, "speed_mps": 0.0}
    )
    fastest = 0.0
    for _ in range(30):
        world.step(COAST)
        fastest = max(fastest, float(np.abs(world.states["yaw_radps"]).max()))
    assert 1.0 < fastest <= 4.0


# --- fault ---


@pytest.mark.parametrize(
    ("first", "second", "at_fault"),
    [
        # The car behind runs into the one in front.
        ({"arc_m": 0.0, "speed_mps": 30.0}, {"arc_m": 4.4, "speed_mps": 20.0}, [1, 0]),
        ({"arc_m": 4.4, "speed_mps": 20.0}, {"arc_m": 0.0, "speed_mps": 30.0}, [0, 1]),
        # It stays its fault where the one in front brakes.
        ({"arc_m": 0.0, "speed_mps": 30.0}, {"arc_m": 4.4, "speed_mps": 0.0}, [1, 0]),
        # Alongside: the one that moves over, left or right.
        (
            {"arc_m": 0.0, "left_m": -0.9, "speed_mps": 20.0, "turn_rad": 0.1},
            {"arc_m": 0.5, "left_m": 0.9, "speed_mps": 20.0},
            [1, 0],
        ),
        (
            {"arc_m": 0.0, "left_m": -0.9, "speed_mps": 20.0},
            {"arc_m": 0.5, "left_m": 0.9, "speed_mps": 20.0, "turn_rad": -0.1},
            [0, 1],
        ),
        # Both move over alike: both.
        (
            {"arc_m": 0.0, "left_m": -0.9, "speed_mps": 20.0, "turn_rad": 0.1},
            {"arc_m": 0.0, "left_m": 0.9, "speed_mps": 20.0, "turn_rad": -0.1},
            [1, 1],
        ),
    ],
)
def test_fault(first, second, at_fault):
    world = side_by_side(first, second)
    world.step(COAST)
    assert (world.entrants["contact_mps"] > 0.5).all()
    assert list(world.entrants["at_fault"]) == at_fault


def test_a_gentle_touch_is_nobodys_fault():
    world = side_by_side({"arc_m": 0.0, "speed_mps": 20.3}, {"arc_m": 4.4, "speed_mps": 20.0})
    world.step(COAST)
    assert (world.entrants["contact_mps"] > 0.0).all()
    assert (world.entrants["at_fault"] == 0).all()
    assert (world.entrants["touched"] == 0).all()


# --- slipstream ---


def test_a_car_in_the_wake_of_another_has_less_drag():
    behind = {"arc_m": 0.0, "speed_mps": 50.0}
    gains = {}
    for name, place in {"near": (8.0, 0.0), "far": (20.0, 0.0), "beside": (8.0, 2.5), "gone": (32.0, 0.0)}.items():
        world = side_by_side(behind, {"arc_m": place[0], "left_m": place[1], "speed_mps": 50.0})
        world.step(COAST)
        gains[name] = float(world.states["forward_mps"][0] - world.states["forward_mps"][1])
        assert world.entrants["slipstream"][1] == 0.0
        assert (world.entrants["slipstream"][0] > 0.0) == (name in ("near", "far"))
    drag_mps = 0.5 * 1.225 * CAR.drag_area_m2 / CAR.mass_kg * 50.0**2 / 60.0
    assert gains["near"] == pytest.approx(0.35 * (1.0 - 8.0 / 30.0) * drag_mps, rel=0.02)
    assert gains["far"] == pytest.approx(0.35 * (1.0 - 20.0 / 30.0) * drag_mps, rel=0.02)
    assert gains["beside"] == gains["gone"] == 0.0


# --- order, overtakes, finish ---


def test_passing_counts_once_and_names_the_car():
    world = side_by_side(
        {"arc_m": 0.0, "left_m": -3.0, "speed_mps": 40.0}, {"arc_m": 5.0, "left_m": 3.0, "speed_mps": 20.0}
    )
    passes = []
    for _ in range(40):
        world.step(COAST)
        passes.append((int(world.entrants["overtakes"][0]), int(world.entrants["passed"][0])))
        assert world.entrants["overtakes"][1] == 0
    assert sorted(passes)[-2:] == [(0, 0), (1, 2)]
    assert list(world.entrants["position"]) == [1, 2]


def drive_to_line(world: RaceWorld, distances_m: list[float], speed_mps: float, laps_done: int) -> None:
    """Put the cars this far before the line."""
    for car, distance_m in enumerate(distances_m):
        left_m = 4.0 - 8.0 * (car % 2)
        world.put(arc_m=OVAL.length_m - distance_m, left_m=left_m, speed_mps=speed_mps, car=car)
    begin_from_here(world, laps_done)


def test_the_finish_is_timed_to_a_fraction_of_a_tick():
    world = RaceWorld(OVAL, 2, laps=2)
    drive_to_line(world, [10.2, 20.0], 30.0, laps_done=1)
    while world.entrants["status"][1] == RACING:
        world.step(COAST)
    assert list(world.entrants["status"]) == [FINISHED, FINISHED]
    assert list(world.entrants["position"]) == [1, 2]
    assert world.entrants["race_time_s"] == pytest.approx([10.2 / 30.0, 20.0 / 30.0], abs=0.006)
    assert world.batch.terminated.all()
    assert not world.batch.truncated.any()


def test_a_race_ends_thirty_seconds_after_the_winner_and_he_has_left_the_road():
    world = RaceWorld(OVAL, 2, laps=1)
    drive_to_line(world, [1.0, 30.0], 20.0, laps_done=0)
    world.put(arc_m=OVAL.length_m - 400.0, car=1)
    ticks = 0
    while not world.batch.terminated[0]:
        world.step([0.0, 0.05, 0.0])
        ticks += 1
        if ticks == 10:
            finished = world.states[0].copy()
            assert world.field.poses["on_road"][0] == 0
    assert world.states[0] == finished
    assert ticks / 60 == pytest.approx(float(AFTER_WINNER_S) + 1.0 / 20.0, abs=0.04)
    assert world.batch.terminated.all()
    assert list(world.entrants["position"]) == [1, 2]


def test_a_car_that_stands_for_ten_seconds_retires_and_no_one_hits_it():
    world = side_by_side({"arc_m": 0.0, "speed_mps": 0.0}, {"arc_m": -60.0, "speed_mps": 0.0})
    for tick in range(RETIRE_TICKS):
        assert world.entrants["status"][0] == RACING, tick
        world.step([COAST, [0.0, 0.0, 0.0]])
        world.states["still_ticks"][1] = 0
    assert list(world.entrants["status"]) == [RETIRED, RACING]
    assert list(world.entrants["position"]) == [2, 1]  # though it is behind
    world.put(arc_m=STRAIGHT_M - 10.0, speed_mps=20.0, car=1)
    for _ in range(60):
        world.step(COAST)
    assert (world.entrants["contact_mps"] == 0.0).all()
    assert world.entrants["overtakes"][1] == 0


def test_backwards_over_the_line_and_forwards_again_is_no_lap():
    world = RaceWorld(OVAL, 1, laps=1)
    world.put(arc_m=3.0, turn_rad=np.pi, speed_mps=10.0)
    world.entrants["arc_m"] = world.states["arc_m"]
    for _ in range(60):
        world.step(COAST)
    assert world.entrants["laps_done"][0] == -1
    world.put(arc_m=float(world.states["arc_m"][0]), speed_mps=20.0)
    for _ in range(60):
        world.step(COAST)
    assert world.entrants["laps_done"][0] == 0
    assert world.entrants["status"][0] == RACING

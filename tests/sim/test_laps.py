"""Gates and laps: what counts, what does not, and how exactly laps are timed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.sim.rewards import START_RANDOM
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.geometry.node_builder import build_nodes
from sim.kernels import CAR, F, crossing_fractions
from sim.worlds import BUILT_IN, World, drive_laps, nodes_of, steady_driver
from tracks.shapes import circle

NUM_GATES = 30
COAST = [0.0, 0.0, 0.0]


def fraction_of(gate_m, from_m, to_m, length_m=1000.0, moved_m=None) -> float:
    """The fraction of a tick's way at which it crossed the gate; forwards unless `moved_m` is given."""
    moved_m = (to_m - from_m) % length_m if moved_m is None else moved_m
    fractions = np.zeros(1, F)
    rows = (np.array([value], F) for value in (gate_m, from_m, to_m, moved_m))
    crossing_fractions(*rows, F(length_m), fractions)
    return float(fractions[0])


def step_over(world: World, arc_m: float, speed_mps: float = 30.0) -> None:
    """Carry the car to just before a place on the lap and let it roll over it for a tick."""
    world.put(arc_m=arc_m - 0.2, speed_mps=speed_mps)
    world.step(COAST)


# --- one tick ---


@given(st.floats(0.001, 0.999), st.floats(1.0, 998.0), st.floats(0.1, 1.5))
def test_a_gate_is_crossed_at_its_fraction_of_the_way(fraction, from_m, way_m):
    assert fraction_of(from_m + fraction * way_m, from_m, from_m + way_m) == pytest.approx(fraction, abs=1e-3)


def test_a_gate_is_crossed_if_it_is_after_the_beginning_and_not_after_the_end_of_the_way():
    # Gate, from, to, and the fraction of the way; -1 if the gate was reached before or is still ahead.
    crossed = "100 99 101 0.5 | 100 99 100 1 | 0 999.5 0.5 0.5 | 0 999 0 1 | 999.5 999 0 0.5 | 0.25 999.5 0.5 0.75"
    missed = "100 100 101 -1 | 100 98 99 -1 | 100 101 102 -1 | 0 0 1 -1 | 1 999.5 0.5 -1"
    for row in f"{crossed} | {missed}".split("|"):
        gate_m, from_m, to_m, fraction = map(float, row.split())
        found = fraction_of(gate_m, from_m, to_m)
        assert (found < 0.0) if fraction < 0.0 else found == pytest.approx(fraction, abs=1e-3), row
    # Nothing is crossed backwards or standing.
    assert fraction_of(100.0, 101.0, 99.0, moved_m=-2.0) < 0.0
    assert fraction_of(100.0, 100.0, 100.0, moved_m=0.0) < 0.0


@given(st.lists(st.floats(0.0, 3.0), min_size=2, max_size=60), st.floats(0.0, 999.0))
def test_however_ticks_are_cut_a_gate_is_crossed_once(hops_m, start_m):
    places = (np.cumsum([start_m, *hops_m]).astype(F)) % F(1000.0)
    gate_m = places[len(places) // 2]
    crossed = 0
    for from_m, to_m in pairwise(places):
        if from_m != to_m:
            crossed += fraction_of(gate_m, from_m, to_m) >= 0.0
    assert crossed == (1 if (places[: len(places) // 2] != gate_m).any() else 0)


def test_a_lap_counts_even_if_a_tick_ends_a_hair_before_the_line():
    for name in (*BUILT_IN, 1, 3):
        nodes = nodes_of(name)
        world = World([nodes])
        for fraction in np.linspace(1.0 - 2e-4, 1.0, 41).astype(F):
            world.reset()
            world.put(arc_m=nodes.length_m - 0.01, speed_mps=30.0)
            me = world.states[0]
            me["share"], me["next_gate"] = fraction, 0
            me["arc_m"] = (F(nodes.num_nodes - 1) + fraction) * F(nodes.step_m)
            world.step(COAST)
            assert world.states["lap"][0] == 2, f"{name}: lost at fraction {fraction}"


# --- what counts ---


@pytest.mark.parametrize("name", [*BUILT_IN, "eight"])
def test_a_lap_passes_thirty_gates_in_order_and_a_standing_lap_counts(name):
    world = World([nodes_of(name)])
    driver = steady_driver(world)
    gates, arcs = [0], [0.0]
    while world.states["lap"][0] == 1:
        world.step(driver.act(world.batch.obs))
        if world.infos["checkpoint"][0] != gates[-1]:
            gates.append(int(world.infos["checkpoint"][0]))
            arcs.append(float(world.states["arc_m"][0]))
    assert gates == [*range(NUM_GATES), 0]
    apart_m = np.diff(arcs[:-1])
    assert apart_m == pytest.approx(nodes_of(name).length_m / NUM_GATES, abs=2.0)
    assert world.infos["lap"][0] == 2
    assert world.infos["lapTime"][0] == pytest.approx(world.states["tick"][0] / TICKS_PER_SECOND, abs=1.01 / 60)
    assert world.infos["lapClean"][0]


def test_all_gates_make_a_lap_and_one_left_out_never_does():
    nodes = nodes_of("oval")
    for left_out in (None, 1, 7, 29):
        world = World([nodes])
        for _ in range(3):
            for gate in [*range(1, NUM_GATES), 0]:
                if gate != left_out:
                    step_over(world, gate * nodes.length_m / NUM_GATES)
        assert world.states["lap"][0] == (4 if left_out is None else 1)


def test_going_round_the_wrong_way_never_counts():
    nodes = nodes_of("oval")
    world = World([nodes])
    for gate in [*range(NUM_GATES - 1, 0, -1), 0] * 3:
        world.put(arc_m=gate * nodes.length_m / NUM_GATES + 0.2, turn_rad=np.pi, speed_mps=30.0)
        world.step(COAST)
    assert world.states["lap"][0] == 1
    assert world.states["gate"][0] == 0


@pytest.mark.parametrize(("next_gate", "laps"), [(1, 1), (0, 2)])
def test_circling_round_the_line_completes_at_most_the_lap_that_was_due(next_gate, laps):
    world = World([nodes_of("oval")])
    world.put(arc_m=nodes_of("oval").length_m - 3.0, left_m=-6.0, speed_mps=5.0)
    world.states["next_gate"] = next_gate
    crossings, before = 0, world.states["arc_m"][0]
    for _ in range(1500):
        world.step([-1.0, 0.2 if world.states["forward_mps"][0] < 5.0 else 0.0, 0.0])
        after = world.states["arc_m"][0]
        crossings += before > 500.0 and after < 100.0
        before = after
    assert crossings >= 3
    assert world.states["lap"][0] == laps


def test_rolling_back_over_the_line_and_forward_again_makes_no_lap():
    world = World([nodes_of("oval")])
    world.put(arc_m=1.0)
    for _ in range(4):
        world.states["forward_mps"] = -8.0
        for _ in range(30):
            world.step(COAST)
        assert world.states["arc_m"][0] > 500.0
        world.states["forward_mps"] = 8.0
        for _ in range(30):
            world.step(COAST)
        assert world.states["arc_m"][0] < 100.0
    assert world.states["lap"][0] == 1


# --- the clock ---


def flying_lap_s(start_arc_m: float, radius_m: float = 40.0, speed_mps: float = 12.0) -> tuple[float, float]:
    """Time and mean speed of a flying lap of a circle, driven with hands and feet that move without any steps."""
    world = World([build_nodes(circle(radius_m, right=6.0, left=6.0))])
    world.put(arc_m=start_arc_m, speed_mps=speed_mps)
    world.states["next_gate"], world.states["clock_runs"] = 0, 0
    me, speeds_mps = world.states[0], []
    while np.isnan(world.infos["lapTime"][0]):
        askew_rad = np.angle(np.exp(1j * (me["yaw_rad"] - np.arctan2(me["y_m"], me["x_m"]) - np.pi / 2)))
        angle_rad = 1.1 * CAR.wheelbase_m / radius_m - 0.02 * me["lateral_m"] - 0.5 * askew_rad
        world.step([-angle_rad / 0.25, 0.05 + 0.5 * (speed_mps - me["forward_mps"]), 0.0])
        if me["clock_runs"]:
            speeds_mps.append(np.hypot(me["forward_mps"], me["left_mps"]) * radius_m / (radius_m - me["lateral_m"]))
    return float(world.infos["lapTime"][0]), float(np.mean(speeds_mps))


def test_starting_half_a_tick_earlier_changes_a_flying_lap_by_under_two_milliseconds():
    half_a_tick_m = 12.0 / TICKS_PER_SECOND / 2
    (time_s, speed_mps), (shifted_s, _) = (flying_lap_s(100.0 - back_m) for back_m in (0.0, half_a_tick_m))
    assert abs(shifted_s - time_s) < 0.002
    # And it is the time that circumference and speed give.
    assert time_s == pytest.approx(2.0 * np.pi * 40.0 / speed_mps, rel=0.001)


def test_lap_times_sum_to_the_time_from_the_start_to_the_last_crossing():
    nodes = nodes_of("oval")
    world = World([nodes])
    laps = drive_laps(world, 3)
    me = world.states[0]
    # Where in the last tick the line was crossed, by the distance beyond it now and the speed.
    beyond_s = float(me["arc_m"]) / float(me["forward_mps"])
    assert sum(time_s for time_s, _ in laps) == pytest.approx(me["tick"] / TICKS_PER_SECOND - beyond_s, abs=5e-4)
    assert me["lap"] == 4


def test_a_known_speed_gives_a_known_lap_time():
    # Carried from gate to gate at 30 m/s, with the clock set by hand to the ticks a whole lap would take.
    nodes = nodes_of("oval")
    world = World([nodes])
    world.put(arc_m=nodes.length_m - 0.2, speed_mps=30.0)
    world.states["next_gate"], world.states["tick"], world.states["lap_start_tick"] = 0, 1000, 100
    world.states["lap_start_share"] = 0.25
    world.step(COAST)
    # 900 ticks, plus the 0.2 m of 0.5 m in the last tick, less the quarter tick the lap began late.
    assert world.infos["lapTime"][0] == pytest.approx((900 + 0.2 / 0.5 - 0.25) / 60, abs=1e-4)


def test_from_a_random_start_the_first_crossing_starts_the_clock():
    nodes = nodes_of("oval")
    world = World([nodes], start=START_RANDOM)
    assert world.states["clock_runs"][0] == 0
    driver = steady_driver(world)
    crossed_at: list[int] = []
    before = world.states["arc_m"][0]
    for _ in range(6000):
        world.step(driver.act(world.batch.obs))
        after = world.states["arc_m"][0]
        if after < before - 100.0:
            crossed_at.append(int(world.states["tick"][0]))
            assert np.isnan(world.infos["lapTime"][0]) == (len(crossed_at) == 1)
            assert world.infos["lap"][0] == len(crossed_at)
        if len(crossed_at) == 2:
            break
        before = after
    ticks = crossed_at[1] - crossed_at[0]
    assert world.infos["lapTime"][0] == pytest.approx(ticks / TICKS_PER_SECOND, abs=1 / TICKS_PER_SECOND)


# --- clean laps ---


@pytest.mark.parametrize("left_m", [7.0, -7.0, 20.0])
def test_a_lap_is_spoiled_by_runoff_or_wall_and_the_next_one_is_clean_again(left_m):
    nodes = nodes_of("oval")
    world = World([nodes])
    driver = steady_driver(world)
    laps: list[bool] = []
    has_strayed = False
    while len(laps) < 2:
        world.step(driver.act(world.batch.obs))
        if not has_strayed and world.states["gate"][0] == 12:
            arc_m, speed_mps = float(world.states["arc_m"][0]), float(world.states["forward_mps"][0])
            # 20 m is beyond the wall: the car is put back and the contact noted.
            world.put(arc_m=arc_m, left_m=left_m, speed_mps=speed_mps)
            world.step(COAST)
            assert world.infos["wallContact"][0] == (left_m > 12.0)
            world.put(arc_m=arc_m, speed_mps=speed_mps)
            has_strayed = True
        if not np.isnan(world.infos["lapTime"][0]):
            laps.append(bool(world.infos["lapClean"][0]))
    assert laps == [False, True]


def test_the_edge_of_the_road_is_still_road():
    nodes = nodes_of("oval")
    for left_m, is_off in ((5.9, False), (6.1, True), (-5.9, False), (-6.1, True)):
        world = World([nodes])
        world.put(arc_m=50.0, left_m=left_m)
        world.step(COAST)
        assert bool(world.states["lap_spoiled"][0]) == is_off
        assert (world.infos["offTrack"][0] != 0.0) == is_off

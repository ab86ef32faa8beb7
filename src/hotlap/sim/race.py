"""Several cars on one road: grid, contact, slipstream, order, fault, finish and retirement.

A tick of a race has four phases, and every car ends one before any begins the next: drive (as a car alone does), count
contacts, settle (contacts, slipstream, walls, laps), rank. In each a car writes only what is its own, and reads of
others only what an earlier phase wrote. So the cars of a race may be computed in any order, or at once on a GPU.
Impulses are summed in the order of the cars' numbers, and each pair's is computed from its lower number's side.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import kernel
from hotlap.sim.contact import (
    DEPTH_SLOP_M,
    POSE_DTYPE,
    PUSH_FRACTION,
    find_impulse,
    find_touch,
    gap_along,
    may_touch,
)
from hotlap.sim.laps import crossing_fraction
from hotlap.sim.maths import arc_tangent, clamp, sin_cos
from hotlap.sim.ribbon import arc_length, locate, place
from hotlap.sim.rng import uniform
from hotlap.sim.road_view import tangent_at
from hotlap.sim.vehicle import TICK_S, TICKS_PER_SECOND
from hotlap.sim.world import MAX_WALL_SPIN_RADPS, begin_episode, move, relocate, settle

F = np.float32
U = np.uintp  # unsigned indices: numba skips its check for negative ones
M = np.uint32  # a mask of cars has a bit for each
ZERO, HALF, ONE = F(0.0), F(0.5), F(1.0)
NO_CARS, BIT = M(0), M(1)

MAX_CARS_PER_RACE = 32  # the bits of a mask of cars
START_GRID, START_ROLLING, START_MIXED = 0, 1, 2  # mixed: drawn for each race, and how far apart the rows are too
RACING, FINISHED, RETIRED = 0, 1, 2
DRAWN_SLOT = -1

# The grid: two by two, the first row this far behind the line.
GRID_ROW_M = F(8.0)
GRID_WIDTH = F(0.45)  # of the distance from the centreline to the road's edge
ROLLING_PACE = F(0.8)  # of the speed that is feasible for every row
MIXED_GRID = F(0.25)  # of mixed starts
MIXED_MAX_ROW_M = F(120.0)
MIXED_START_DRAW, MIXED_ROW_DRAW = 98, 99
GRID_DRAW = 100  # the first random number of the grid's order; a car's own start uses the numbers before

RETIRE_TICKS = 10 * TICKS_PER_SECOND  # a car that stands as long is out of the race
AFTER_WINNER_S = F(30.0)

# Fault: only of contacts that close in faster than this; alongside is nearer along the road than this.
FAULT_MPS = F(0.5)
ALONGSIDE_M = F(2.2)

# The wake of a car: its length and half-width, from its centre, and the fraction of the drag that it takes away.
WAKE_FROM_M, WAKE_TO_M, WAKE_HALF_WIDTH_M = F(3.0), F(30.0), F(2.0)
WAKE_DRAG = F(0.35)

RACE_RULES_DTYPE = np.dtype(
    [("num_cars", np.int32), ("laps", np.int32), ("start", np.int32), ("max_ticks", np.int32)], align=True
)

# A car's part in its race. The columns from `contact_mps` on are of one step; masks have a bit for each car.
ENTRANT_DTYPE = np.dtype(
    [
        ("status", np.int32),
        ("laps_done", np.int32),  # crossings of the line, forwards less backwards; -1 behind it on the grid
        ("arc_m", np.float32),
        ("from_arc_m", np.float32),
        ("moved_m", np.float32),
        ("race_time_s", np.float32),  # of a car that finished
        ("position", np.int32),
        ("ahead_of", np.uint32),
        ("slot", np.int32),  # wanted in the next race, DRAWN_SLOT to draw it
        ("tick", np.int32),  # of the race
        ("is_over", np.int32),
        ("contact_mps", np.float32),  # closing speed of the hardest contact; zero without one
        ("at_fault", np.int32),
        ("touched", np.uint32),
        ("passed", np.uint32),
        ("overtakes", np.int32),
        ("slipstream", np.float32),
    ],
    align=True,
)


class Field(NamedTuple):
    """The cars of all races, race by race: what they look like to each other, and their part in the race."""

    poses: NDArray[np.void]
    entrants: NDArray[np.void]
    final_entrants: NDArray[np.void]  # at the end of a race, for cars of races that were begun anew on this step


def make_field(num_cars: int) -> Field:
    """Room for `num_cars` cars of any number of races."""
    entrants = np.zeros(num_cars, ENTRANT_DTYPE)
    entrants["slot"] = DRAWN_SLOT
    return Field(np.zeros(num_cars, POSE_DTYPE), entrants, entrants.copy())


def race_rules(num_cars: int, laps: int, start: int, max_ticks: int) -> NDArray[np.void]:
    """The rules of a race as the one-element record array that kernels take."""
    rules = np.zeros(1, RACE_RULES_DTYPE)
    rules["num_cars"], rules["laps"], rules["start"], rules["max_ticks"] = num_cars, laps, start, max_ticks
    return rules


@kernel
def drawn_slot(me, car, num_cars):
    """The car's slot on the grid, drawn from the seed of the race: the rank of its random number."""
    own = uniform(me.seed, me.episode, GRID_DRAW + car)
    slot = 0
    for other in range(num_cars):
        drawn = uniform(me.seed, me.episode, GRID_DRAW + other)
        if drawn < own or (drawn == own and other < car):
            slot += 1
    return slot


@kernel
def join_race(me, entrant, car, race, tracks, nodes, rules):
    """Put a car into its slot for a new race; alone it starts as it does without a race."""
    begin_episode(me, tracks, nodes, rules)
    entrant.status, entrant.laps_done = RACING, 0
    if race.num_cars > 1:
        slot = drawn_slot(me, car, race.num_cars) if entrant.slot == DRAWN_SLOT else entrant.slot
        entrant.laps_done = take_slot(me, slot, race, tracks[me.track], nodes)
    entrant.slot = DRAWN_SLOT
    entrant.arc_m, entrant.from_arc_m, entrant.moved_m = me.arc_m, me.arc_m, ZERO
    entrant.race_time_s = F(np.nan)
    entrant.position, entrant.ahead_of, entrant.tick, entrant.is_over = 0, NO_CARS, 0, 0


@kernel
def take_slot(me, slot, race, track, nodes):
    """Move a car that began its episode to a slot of the grid; returns its laps done, -1 behind the line.

    A rolling grid is anywhere on the road; the laps count from its first car's.
    """
    lead, row_m = 0, GRID_ROW_M
    is_rolling = race.start == START_ROLLING
    if race.start == START_MIXED:
        is_rolling = uniform(me.seed, me.episode, MIXED_START_DRAW) >= MIXED_GRID
    if is_rolling:
        lead = min(int(uniform(me.seed, me.episode, 0) * F(track.num_nodes)), track.num_nodes - 1)
        if race.start == START_MIXED:
            # Mostly close together; never farther than fits into a lap.
            share = uniform(me.seed, me.episode, MIXED_ROW_DRAW)
            widest_m = min(MIXED_MAX_ROW_M, track.length_m / F((race.num_cars + 1) // 2 + 1))
            row_m += share * share * max(widest_m - GRID_ROW_M, ZERO)
    back = int(F(slot // 2 + 1) * row_m / track.step_m)
    node = lead - back
    laps_done = 0
    while node < 0:  # a short lap may be shorter than the grid
        node += track.num_nodes
        laps_done -= 1
    here = nodes[U(track.first_node + node)]
    left_m = GRID_WIDTH * here.road_left_m if slot % 2 == 0 else -GRID_WIDTH * here.road_right_m
    me.x_m, me.y_m = place(track, nodes, node, ZERO, left_m)
    me.yaw_rad = arc_tangent(here.tangent_y, here.tangent_x)
    me.forward_mps, me.left_mps, me.yaw_radps = ZERO, ZERO, ZERO
    if is_rolling:
        slowest_mps = nodes[U(track.first_node + lead)].start_speed_mps
        if race.start == START_MIXED:
            slowest_mps = here.start_speed_mps
        for row in range((race.num_cars + 1) // 2 if race.start == START_ROLLING else 0):
            behind = (lead - int(F(row + 1) * GRID_ROW_M / track.step_m)) % track.num_nodes
            slowest_mps = min(slowest_mps, nodes[U(track.first_node + behind)].start_speed_mps)
        me.forward_mps = ROLLING_PACE * slowest_mps
        me.yaw_radps = me.forward_mps * here.curvature_radpm
    me.node, me.share, me.lateral_m = locate(track, nodes, node, me.x_m, me.y_m)
    me.arc_m = arc_length(track, me.node, me.share)
    me.next_gate, me.clock_runs = 0, 0  # the lap's clock starts at the line
    return laps_done


@kernel
def show(me, entrant, pose, tracks, nodes):
    """Write what the others see of a car."""
    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    pose.x_m, pose.y_m, pose.yaw_rad, pose.sin_yaw, pose.cos_yaw = me.x_m, me.y_m, me.yaw_rad, sin_yaw, cos_yaw
    pose.vx_mps = me.forward_mps * cos_yaw - me.left_mps * sin_yaw
    pose.vy_mps = me.forward_mps * sin_yaw + me.left_mps * cos_yaw
    pose.yaw_radps, pose.lateral_m = me.yaw_radps, me.lateral_m
    pose.arc_m = arc_length(tracks[me.track], me.node, me.share)
    tangent_x, tangent_y = tangent_at(tracks[me.track], nodes, me.node, me.share)
    pose.across_mps = pose.vy_mps * tangent_x - pose.vx_mps * tangent_y
    pose.on_road = 1 if entrant.status == RACING else 0


@kernel
def drive_alone(me, entrant, pose, action, tracks, nodes, cars):
    """Phase 1: a car's tick up to its contacts, as if it were alone."""
    entrant.tick += 1
    if entrant.status == RACING:
        entrant.from_arc_m = me.arc_m
        entrant.moved_m = move(me, tracks[me.track], nodes, action[0], action[1], action[2], cars[0])
    show(me, entrant, pose, tracks, nodes)


@kernel
def count_touching(i, first, last, poses, length_m):
    """Phase 2: the number of cars that car i touches, of those from `first` up to `last`."""
    found = 0
    for j in range(first, last):
        if j != i:
            a, b = poses[U(min(i, j))], poses[U(max(i, j))]
            if may_touch(a, b, length_m) and find_touch(a, b)[0] > ZERO:
                found += 1
    poses[U(i)].num_touching = found


@kernel
def meet_cars(i, first, last, me, entrant, poses, track, nodes, car):
    """Sum what others do to car i: impulses, the depth it gives way by, and the fault; moves it and its place."""
    own = poses[U(i)]
    dvx, dvy, spin_radps, shift_x, shift_y = ZERO, ZERO, ZERO, ZERO, ZERO
    for j in range(first, last):
        if j == i or not may_touch(own, poses[U(j)], track.length_m):
            continue
        low, high = poses[U(min(i, j))], poses[U(max(i, j))]
        touch = find_touch(low, high)
        if touch[0] <= ZERO:
            continue
        jx, jy, closing_mps = find_impulse(low, high, touch, car)
        sign = ONE if i > j else -ONE
        jx, jy = sign * jx, sign * jy
        dvx, dvy = dvx + jx * car.per_mass, dvy + jy * car.per_mass
        spin_radps += ((touch[3] - own.x_m) * jy - (touch[4] - own.y_m) * jx) * car.per_yaw_inertia
        give_m = sign * PUSH_FRACTION * max(touch[0] - DEPTH_SLOP_M, ZERO)
        shift_x, shift_y = shift_x + give_m * touch[1], shift_y + give_m * touch[2]
        entrant.contact_mps = max(entrant.contact_mps, closing_mps)
        if closing_mps > FAULT_MPS:
            entrant.touched |= BIT << M(j - first)
            if is_at_fault(own, poses[U(j)], track.length_m):
                entrant.at_fault = 1
    if dvx != ZERO or dvy != ZERO or spin_radps != ZERO:
        vx, vy = own.vx_mps + dvx, own.vy_mps + dvy
        me.forward_mps, me.left_mps = vx * own.cos_yaw + vy * own.sin_yaw, vy * own.cos_yaw - vx * own.sin_yaw
        me.yaw_radps = clamp(me.yaw_radps + spin_radps, -MAX_WALL_SPIN_RADPS, MAX_WALL_SPIN_RADPS)
    if shift_x != ZERO or shift_y != ZERO:
        me.x_m, me.y_m = me.x_m + shift_x, me.y_m + shift_y
        entrant.moved_m += relocate(me, track, nodes)


@kernel
def is_at_fault(own, other, length_m):
    """Whether a contact is this car's fault: the car behind, or alongside the one that moved over faster, or both."""
    gap_m = gap_along(own.arc_m, other.arc_m, length_m)
    if abs(gap_m) >= ALONGSIDE_M:
        return gap_m > ZERO
    side = ONE if other.lateral_m > own.lateral_m else -ONE
    return side * own.across_mps >= -side * other.across_mps


@kernel
def find_slipstream(i, first, last, poses):
    """How deep car i is in the wake of another, 0 to 1: full behind it, less with distance and offset."""
    own, deepest = poses[U(i)], ZERO
    for j in range(first, last):
        other = poses[U(j)]
        if j == i or other.on_road == 0:
            continue
        dx, dy = other.x_m - own.x_m, other.y_m - own.y_m
        behind_m = dx * other.cos_yaw + dy * other.sin_yaw
        if behind_m > WAKE_FROM_M and behind_m < WAKE_TO_M:
            offset_m = abs(dy * other.cos_yaw - dx * other.sin_yaw)
            if offset_m < WAKE_HALF_WIDTH_M:
                depth = (ONE - behind_m / WAKE_TO_M) * (ONE - offset_m / WAKE_HALF_WIDTH_M)
                deepest = max(deepest, depth)
    return deepest


@kernel
def settle_in_race(i, first, last, me, entrant, poses, ribbons, cars, rules, race, info):
    """Phase 3: contacts, slipstream, walls, laps, finish and retirement of car i; returns its reward of the tick."""
    tracks, nodes, portals = ribbons
    track, car = tracks[me.track], cars[0]
    if last - first > 1:
        if poses[U(i)].num_touching > 0:
            meet_cars(i, first, last, me, entrant, poses, track, nodes, car)
        wake = find_slipstream(i, first, last, poses)
        entrant.slipstream = max(entrant.slipstream, wake)
        if wake > ZERO and me.forward_mps > ZERO:
            me.forward_mps += wake * WAKE_DRAG * car.drag_per_m * me.forward_mps * me.forward_mps * TICK_S
    from_arc_m, moved_m = entrant.from_arc_m, entrant.moved_m
    reward, _, _ = settle(me, from_arc_m, moved_m, tracks, nodes, portals, cars, rules, info)
    entrant.arc_m = me.arc_m
    if me.arc_m - from_arc_m < -HALF * track.length_m:
        entrant.laps_done += 1
        if entrant.laps_done >= race.laps:
            fraction = max(crossing_fraction(ZERO, from_arc_m, me.arc_m, moved_m, track.length_m), ZERO)
            entrant.status, entrant.race_time_s = FINISHED, (F(entrant.tick - 1) + fraction) * TICK_S
    elif me.arc_m - from_arc_m > HALF * track.length_m:
        entrant.laps_done -= 1
    if entrant.status == RACING and me.still_ticks >= RETIRE_TICKS:
        entrant.status = RETIRED
    return reward


@kernel
def is_ahead(a, b):
    """Whether entrant a is ahead of entrant b; neither is where they are exactly level."""
    if a.status == FINISHED or b.status == FINISHED:
        if a.status == b.status:
            return a.race_time_s < b.race_time_s
        return a.status == FINISHED
    if a.status != b.status:
        return b.status == RETIRED
    return a.laps_done > b.laps_done or (a.laps_done == b.laps_done and a.arc_m > b.arc_m)


@kernel
def rank(i, first, last, entrants, race):
    """Phase 4: position of car i, the cars that it passed in this tick, and whether the race is over."""
    own, was_ahead_of = entrants[U(i)], entrants[U(i)].ahead_of
    position, ahead_of, num_racing, winner_s = 1, NO_CARS, 0, F(np.inf)
    for j in range(first, last):
        other = entrants[U(j)]
        if other.status == RACING:
            num_racing += 1
        elif other.status == FINISHED:
            winner_s = min(winner_s, other.race_time_s)
        if j == i:
            continue
        if is_ahead(own, other):
            ahead_of |= BIT << M(j - first)
        elif is_ahead(other, own) or j < i:
            position += 1
    if own.position > 0 and own.status == RACING:  # the first order of a race has no overtakes
        for j in range(first, last):
            bit = BIT << M(j - first)
            if ahead_of & bit and not was_ahead_of & bit and entrants[U(j)].status == RACING:
                own.overtakes += 1
                own.passed |= bit
    own.position, own.ahead_of = position, ahead_of
    is_late = F(own.tick) * TICK_S - winner_s >= AFTER_WINNER_S
    own.is_over = 1 if num_racing == 0 or is_late or own.tick >= race.max_ticks else 0

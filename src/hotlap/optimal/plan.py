"""A solved lap as points along the track, the settings it was solved with, and guesses derived from it."""

from dataclasses import dataclass, replace

import numpy as np

from hotlap.optimal.collocation import DEGREE, Floats
from hotlap.optimal.mesh import collocation_points_m
from hotlap.optimal.model import NUM_STATES, Control, State
from hotlap.optimal.solver import Solution

# Intervals of driving time, tried in turn until a finer one changes the lap by less than the tolerance.
INTERVALS_S = (0.20, 0.13, 0.085, 0.055)
TOLERANCE = 5e-4

# How fast a guess accelerates: limited by traction, then by engine power less drag.
RUN_UP_MPS2 = 6.0
RUN_UP_WPKG = 120.0

# The guess blends into the flying lap by this power of its fraction of the flying lap's speed.
BLEND_POWER = 4


@dataclass(frozen=True)
class Plan:
    """A lap or a part of one: states at points along the track, controls between them."""

    arc_m: Floats  # (num_points,) increasing; the last point of a flying lap is on the start line
    states: Floats  # (num_points, 9)
    controls: Floats  # (num_points, 3) held up to this point
    time_s: float
    mesh_change: float  # relative change of the lap at the last refinement; NaN where there was none


@dataclass(frozen=True)
class LapSettings:
    """Margins to the limits of road, grip and steering, and the meshes to solve on."""

    margin_m: float = 0.0  # to the road's edge
    max_slip_fraction: float | None = None  # of the slip of peak grip; None: no limit
    steering_fraction: float = 1.0  # of the maximum steering rate
    intervals_s: tuple[float, ...] = INTERVALS_S  # with one mesh alone the lap is not refined


# Margins everywhere and few intervals: solved reliably without a warm start, and a good warm start itself.
ROUGH_SETTINGS = LapSettings(margin_m=0.15, max_slip_fraction=0.9, steering_fraction=0.85, intervals_s=(0.40,))


def make_plan(edges_m: Floats, found: Solution, mesh_change: float = np.nan) -> Plan:
    """The plan of a solution on the mesh with these interval edges."""
    return Plan(
        arc_m=collocation_points_m(edges_m).ravel(),
        states=found.states.reshape(-1, NUM_STATES),
        controls=np.repeat(found.controls, DEGREE, axis=0),
        time_s=found.time_s,
        mesh_change=float(mesh_change),
    )


def reachable_speed(state: Floats, metres: Floats) -> Floats:
    """Approximate top speed (m/s) of a car in `state` after driving so many metres."""
    begin_mps = float(state[State.FORWARD])
    switch_mps = max(begin_mps, RUN_UP_WPKG / RUN_UP_MPS2)
    switch_m = (switch_mps**2 - begin_mps**2) / (2.0 * RUN_UP_MPS2)
    slow_mps = np.sqrt(begin_mps**2 + 2.0 * RUN_UP_MPS2 * np.minimum(metres, switch_m))
    # At constant power the cube of the speed grows linearly with distance.
    fast_mps = np.cbrt(switch_mps**3 + 3.0 * RUN_UP_WPKG * np.maximum(metres - switch_m, 0.0))
    speed_mps: Floats = np.where(metres < switch_m, slow_mps, fast_mps)
    return speed_mps


def guess_from_flying(flying: Plan, lap_m: float, from_m: float, state: Floats) -> Plan:
    """A guess, one lap long, for a car in `state` at `from_m`: it accelerates and blends into the flying lap."""
    arc_m = np.concatenate([flying.arc_m, flying.arc_m + lap_m])
    is_ahead = (arc_m > from_m) & (arc_m <= from_m + lap_m)
    arc_m = arc_m[is_ahead]
    there, controls = (np.tile(column, (2, 1))[is_ahead] for column in (flying.states, flying.controls))
    speed_mps = np.minimum(there[:, State.FORWARD], reachable_speed(state, arc_m - from_m))
    fraction = (speed_mps / there[:, State.FORWARD])[:, None] ** BLEND_POWER
    states = state + fraction * (there - state)
    states[:, State.FORWARD] = speed_mps
    begin = np.zeros(controls.shape[1])
    begin[[Control.THROTTLE, Control.BRAKE]] = state[[State.THROTTLE, State.BRAKE]]
    return replace(flying, arc_m=arc_m, states=states, controls=begin + fraction * (controls - begin))

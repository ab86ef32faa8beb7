"""A lap as the optimiser found it, what it was asked for, and the same lap from another beginning, as a guess."""

from dataclasses import dataclass, replace

import numpy as np

from hotlap.optimal.collocation import DEGREE, Floats
from hotlap.optimal.mesh import points_of
from hotlap.optimal.model import NUM_STATES, Control, State
from hotlap.optimal.solver import Solution

# Intervals of driving time, tried in turn until a finer one changes the lap by less than the tolerance.
INTERVALS_S = (0.20, 0.13, 0.085, 0.055)
TOLERANCE = 5e-4

# How a guess gathers speed: as fast as the wheels hold, then as fast as the engine can, less the air's share.
RUN_UP_MPS2 = 6.0
RUN_UP_WPKG = 120.0

# It resembles the flying lap by the power of how much of its speed it has.
LIKENESS_POWER = 4


@dataclass(frozen=True)
class Plan:
    """A lap, or a piece of one: states at points along the track, controls between them."""

    arc_m: Floats  # (num_points,) increasing; the last point of a flying lap is the line again
    states: Floats  # (num_points, 9)
    controls: Floats  # (num_points, 3) held up to this point
    time_s: float
    mesh_change: float  # relative change of the lap at the last refinement; NaN where there was none


@dataclass(frozen=True)
class Aims:
    """What a lap is solved for: the whole road, grip and wheel, or a little less of each; and on which meshes."""

    margin_m: float = 0.0  # kept to the road's edge
    most_slip: float | None = None  # share of the slip at which a tyre grips most; None: no limit
    steering_share: float = 1.0  # of the speed at which the wheel can be turned
    intervals_s: tuple[float, ...] = INTERVALS_S  # a lap on one mesh alone is taken as it is


# Something of everything kept in hand, on few intervals: easily found from nothing, and a good place to go on from.
ROUGH_AIMS = Aims(margin_m=0.15, most_slip=0.9, steering_share=0.85, intervals_s=(0.40,))


def plan_of(edges_m: Floats, found: Solution, mesh_change: float = np.nan) -> Plan:
    """A solution on the mesh with these edges, as a plan."""
    return Plan(
        arc_m=points_of(edges_m).ravel(),
        states=found.states.reshape(-1, NUM_STATES),
        controls=np.repeat(found.controls, DEGREE, axis=0),
        time_s=found.time_s,
        mesh_change=float(mesh_change),
    )


def run_up(state: Floats, metres: Floats) -> Floats:
    """About how fast (m/s) a car in `state` can be so many metres on."""
    begin_mps, switch_mps = (
        float(state[State.FORWARD]),
        max(float(state[State.FORWARD]), RUN_UP_WPKG / RUN_UP_MPS2),
    )
    switch_m = (switch_mps**2 - begin_mps**2) / (2.0 * RUN_UP_MPS2)
    slow_mps = np.sqrt(begin_mps**2 + 2.0 * RUN_UP_MPS2 * np.minimum(metres, switch_m))
    # At constant power the cube of the speed grows with the way.
    fast_mps = np.cbrt(switch_mps**3 + 3.0 * RUN_UP_WPKG * np.maximum(metres - switch_m, 0.0))
    speed_mps: Floats = np.where(metres < switch_m, slow_mps, fast_mps)
    return speed_mps


def catch_up(flying: Plan, lap_m: float, from_m: float, state: Floats) -> Plan:
    """The flying lap as a car may drive it that is in `state` at `from_m`; a guess, one lap long.

    The car gathers speed until it has the flying lap's, and comes to drive like it.
    """
    arc_m = np.concatenate([flying.arc_m, flying.arc_m + lap_m])
    is_ahead = (arc_m > from_m) & (arc_m <= from_m + lap_m)
    arc_m = arc_m[is_ahead]
    there, controls = (np.tile(column, (2, 1))[is_ahead] for column in (flying.states, flying.controls))
    speed_mps = np.minimum(there[:, State.FORWARD], run_up(state, arc_m - from_m))
    share = (speed_mps / there[:, State.FORWARD])[:, None] ** LIKENESS_POWER
    states = state + share * (there - state)
    states[:, State.FORWARD] = speed_mps
    begin = np.zeros(controls.shape[1])
    begin[[Control.THROTTLE, Control.BRAKE]] = state[[State.THROTTLE, State.BRAKE]]
    return replace(flying, arc_m=arc_m, states=states, controls=begin + share * (controls - begin))

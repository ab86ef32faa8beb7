"""The approach: the fastest way from any position and speed on the track into the flying lap."""

import numpy as np

from hotlap.optimal.collocation import Floats
from hotlap.optimal.mesh import cut_evenly, make_road_profile, resample_guess
from hotlap.optimal.model import State
from hotlap.optimal.plan import LapSettings, Plan, guess_from_flying, make_plan, reachable_speed
from hotlap.optimal.solver import solve
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import CarParameters

# Driving time allowed to converge to the flying lap once the car could be as fast as it. Tried in turn: on a straight a
# car cannot catch up, so the approach may have to extend into the next corner.
SETTLING_S = (3.0, 7.0, 11.0)

# Tolerances of the final state against the flying lap; at the limit of grip the feedback corrects little more.
_END_TOLERANCE = np.array([0.01, 0.002, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01, 10.0])

# An approach that exists is found in 30 to 110 iterations.
MAX_ITERATIONS = 200


def solve_approach(
    nodes: RibbonNodes,
    flying: Plan,
    from_m: float,
    state: Floats,
    settings: LapSettings,
    car: CarParameters | None = None,
) -> Plan | None:
    """The fastest way from `state` (9,) at `from_m` into `flying`; its arc lengths keep growing past the start line.

    None where none is found: the car may be too fast for the corner ahead, off the road, or at walking pace.
    """
    car = car or CarParameters()
    guess = guess_from_flying(flying, nodes.length_m, from_m, state)
    arc_m, speed_mps = np.concatenate([[from_m], guess.arc_m]), guess.states[:, State.FORWARD]
    clock_s = np.concatenate([[0.0], np.cumsum(np.diff(arc_m) / speed_mps)])
    has_caught = reachable_speed(state, guess.arc_m - from_m) > speed_mps
    caught_s = clock_s[1:][np.argmax(has_caught)] if has_caught.any() else clock_s[-1]
    for settling_s in SETTLING_S:
        num_points = int(np.searchsorted(clock_s, caught_s + settling_s)) + 1
        edges_m = cut_evenly(arc_m[:num_points], clock_s[:num_points], settings.intervals_s[0], 0.0)
        end = np.array(
            [np.interp(edges_m[-1], flying.arc_m, column, period=nodes.length_m) for column in flying.states.T]
        )
        found = solve(
            make_road_profile(nodes, edges_m, car, settings.margin_m),
            resample_guess(guess.arc_m, guess.states, guess.controls, edges_m),
            car,
            max_slip_fraction=settings.max_slip_fraction,
            steering_fraction=settings.steering_fraction,
            start=state,
            end=(end - _END_TOLERANCE, end + _END_TOLERANCE),
            is_warm_start=True,
            max_iterations=MAX_ITERATIONS,
        )
        if found.is_solved:
            return make_plan(edges_m, found)
    return None

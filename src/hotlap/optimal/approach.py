"""The fastest way from wherever a car is into a flying lap."""

import numpy as np

from hotlap.optimal.collocation import Floats
from hotlap.optimal.mesh import cut_evenly, lay_road, transfer
from hotlap.optimal.model import State
from hotlap.optimal.plan import Aims, Plan, catch_up, plan_of, run_up
from hotlap.optimal.solver import solve
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.vehicle import CarParameters

# Time for the last of a deviation to be driven out, once the car could be as fast as the flying lap. Tried in turn: on
# a straight nobody catches up, so the way may have to reach into the bend after it.
SETTLING_S = (3.0, 7.0, 11.0)

# How near the flying lap the way has to end, state by state; the feedback at the limit of grip forgives little more.
_NEAR_ENOUGH = np.array([0.01, 0.002, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01, 10.0])

# A way that can be found at all is found in 30 to 110 iterations.
MOST_ITERATIONS = 200


def solve_joining(
    nodes: RibbonNodes, flying: Plan, from_m: float, state: Floats, aims: Aims, car: CarParameters | None = None
) -> Plan | None:
    """The fastest way from `state` (9,) at `from_m` into `flying`; its arc lengths go on growing over the line.

    None where none is found: the car may be too fast for the bend ahead, off the road, or at walking pace.
    """
    car = car or CarParameters()
    guess = catch_up(flying, nodes.length_m, from_m, state)
    arc_m, speed_mps = np.concatenate([[from_m], guess.arc_m]), guess.states[:, State.FORWARD]
    clock_s = np.concatenate([[0.0], np.cumsum(np.diff(arc_m) / speed_mps)])
    has_caught = run_up(state, guess.arc_m - from_m) > speed_mps
    caught_s = clock_s[1:][np.argmax(has_caught)] if has_caught.any() else clock_s[-1]
    for settling_s in SETTLING_S:
        upto = int(np.searchsorted(clock_s, caught_s + settling_s)) + 1
        edges_m = cut_evenly(arc_m[:upto], clock_s[:upto], aims.intervals_s[0], 0.0)
        columns = [np.interp(edges_m[-1], flying.arc_m, one, period=nodes.length_m) for one in flying.states.T]
        end = np.array(columns)
        found = solve(
            lay_road(nodes, edges_m, car, aims.margin_m),
            transfer(guess.arc_m, guess.states, guess.controls, edges_m),
            car,
            most_slip=aims.most_slip,
            steering_share=aims.steering_share,
            start=state,
            end=(end - _NEAR_ENOUGH, end + _NEAR_ENOUGH),
            is_near=True,
            max_iterations=MOST_ITERATIONS,
        )
        if found.is_solved:
            return plan_of(edges_m, found)
    return None

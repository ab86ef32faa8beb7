"""Solve a track's minimum-time laps: flying and standing, refined until the mesh no longer matters."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotlap.errors import OptimalError
from hotlap.optimal.collocation import DEGREE, Floats, Guess, Solution, solve
from hotlap.optimal.launch import Launch, launch
from hotlap.optimal.mesh import cut, first_guess, guess_speed, lay_road, points_of, transfer
from hotlap.optimal.model import NUM_STATES, State
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.vehicle import CarParameters

# Intervals of driving time, tried in turn until a finer one changes the lap by less than the tolerance.
INTERVALS_S = (0.20, 0.13, 0.085, 0.055)
TOLERANCE = 5e-4

# How quickly the first guess of a standing lap gathers speed.
RUN_UP_MPS2 = 6.0


@dataclass(frozen=True)
class Plan:
    """A lap as the optimiser found it: states at points along the track, controls between them."""

    arc_m: Floats  # (num_points,) increasing; the last point of a flying lap is the line again
    states: Floats  # (num_points, 9)
    controls: Floats  # (num_points, 3) held up to this point
    time_s: float
    mesh_change: float  # relative change of the lap at the last refinement
    solve_s: float


@dataclass(frozen=True)
class Aims:
    """What a lap is solved for: the whole road, grip and wheel, or a little less of each."""

    margin_m: float = 0.0  # kept to the road's edge
    most_slip: float | None = None  # share of the slip at which a tyre grips most; None: no limit
    steering_share: float = 1.0  # of the speed at which the wheel can be turned


def solve_flying(nodes: RibbonNodes, aims: Aims | None = None, car: CarParameters | None = None) -> Plan:
    """The fastest flying lap; an OptimalError with the solver's word if there is none to be found."""
    aims, car = aims or Aims(), car or CarParameters()
    began = time.perf_counter()
    speed_mps = guess_speed(nodes, car)
    edges_m = cut(nodes, speed_mps, INTERVALS_S[0])
    found = _solve(nodes, edges_m, first_guess(nodes, edges_m, car, speed_mps), aims, car)
    for interval_s in INTERVALS_S[1:]:
        finer_m = cut(nodes, speed_mps, interval_s)
        guess = transfer(edges_m, found.states, found.controls, finer_m)
        finer = _solve(nodes, finer_m, guess, aims, car, is_near=True)
        change = abs(finer.time_s / found.time_s - 1.0)
        edges_m, found = finer_m, finer
        if change < TOLERANCE:
            return _plan(edges_m, found, change, time.perf_counter() - began)
    raise OptimalError(
        f"the optimal lap still changes by {100.0 * change:.3f} % on the finest mesh; it is not trusted. "
        "Is the track's line rough? `hotlap tracks import` smooths it."
    )


def _solve(
    nodes: RibbonNodes, edges_m: Floats, guess: Guess, aims: Aims, car: CarParameters, is_near: bool = False
) -> Solution:
    road = lay_road(nodes, edges_m, aims.margin_m)
    limits: dict[str, Any] = {"most_slip": aims.most_slip, "steering_share": aims.steering_share}
    found = solve(road, guess, car, **limits, is_near=is_near)
    if not found.is_solved and is_near:
        found = solve(road, guess, car, **limits)
    if not found.is_solved:
        raise OptimalError(
            f"the optimal lap did not converge on {len(edges_m) - 1} intervals: {found.status} after "
            f"{found.iterations} iterations. Is the track narrower than a car, or kinked?"
        )
    return found


def solve_standing(nodes: RibbonNodes, aims: Aims | None = None, car: CarParameters | None = None) -> Plan:
    """The fastest lap from rest on the line: the simulator's own full-throttle launch, then the optimum from there."""
    aims, car = aims or Aims(), car or CarParameters()
    began = time.perf_counter()
    start: Launch = launch(car)
    run_up_m = np.arange(nodes.num_nodes) * nodes.step_m
    reachable_mps = np.sqrt(start.state[State.FORWARD] ** 2 + 2.0 * RUN_UP_MPS2 * run_up_m)
    speed_mps: Floats = np.minimum(guess_speed(nodes, car), reachable_mps)
    edges_m = cut(nodes, speed_mps, INTERVALS_S[1], from_m=start.distance_m)
    guess = first_guess(nodes, edges_m, car, speed_mps)
    road = lay_road(nodes, edges_m, aims.margin_m)
    found = solve(road, guess, car, most_slip=aims.most_slip, steering_share=aims.steering_share, start=start.state)
    if not found.is_solved:
        raise OptimalError(f"the optimal standing lap did not converge: {found.status}.")
    plan = _plan(edges_m, found, np.nan, time.perf_counter() - began)
    return Plan(plan.arc_m, plan.states, plan.controls, start.time_s + found.time_s, plan.mesh_change, plan.solve_s)


def _plan(edges_m: Floats, found: Solution, change: float, solve_s: float) -> Plan:
    return Plan(
        arc_m=points_of(edges_m).ravel(),
        states=found.states.reshape(-1, NUM_STATES),
        controls=np.repeat(found.controls, DEGREE, axis=0),
        time_s=found.time_s,
        mesh_change=float(change),
        solve_s=solve_s,
    )

"""Solve a track's minimum-time laps: flying and standing, refined until the mesh no longer matters."""

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from hotlap.errors import OptimalError
from hotlap.optimal.collocation import Floats, Guess
from hotlap.optimal.launch import Launch, launch
from hotlap.optimal.mesh import cut, first_guess, guess_speed, lay_road, transfer
from hotlap.optimal.plan import ROUGH_AIMS, TOLERANCE, Aims, Plan, catch_up, plan_of, run_up
from hotlap.optimal.solver import Solution, solve
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.vehicle import CarParameters

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Task:
    """A lap to be solved: on which road, in which car, what for, at about which speeds, and from where."""

    nodes: RibbonNodes
    car: CarParameters
    aims: Aims
    speed_mps: Floats  # (num_nodes,) a quick estimate
    start: Launch | None = None  # None: the lap ends as it began


def solve_flying(
    nodes: RibbonNodes, aims: Aims | None = None, car: CarParameters | None = None, *, near: Plan | None = None
) -> Plan:
    """The fastest flying lap; an OptimalError with the solver's word if there is none to be found.

    `near`, a flying lap of the same track solved for other aims, saves the search for one to begin with.
    """
    car = car or CarParameters()
    task = _Task(nodes, car, aims or Aims(), guess_speed(nodes, car))
    return _settle(task, near or _rough(task))


def solve_standing(
    nodes: RibbonNodes, aims: Aims | None = None, car: CarParameters | None = None, *, near: Plan | None = None
) -> Plan:
    """The fastest lap from rest on the line: the simulator's own full-throttle launch, then the optimum from there.

    `near`, a lap of the same track, flying or standing, saves the search for one: most of it is the same.
    """
    car = car or CarParameters()
    start = launch(car)
    task = _Task(nodes, car, aims or Aims(), guess_speed(nodes, car))
    flying = near or _rough(task)
    guess = catch_up(flying, nodes.length_m, start.distance_m, start.state) if flying else None
    reachable_mps = run_up(start.state, np.arange(nodes.num_nodes, dtype=np.float64) * nodes.step_m)
    return _settle(replace(task, speed_mps=np.minimum(task.speed_mps, reachable_mps), start=start), guess)


def _rough(task: _Task) -> Plan | None:
    """A lap to begin with; None if not even that can be found."""
    try:
        return _settle(replace(task, aims=ROUGH_AIMS), None)
    except OptimalError as error:
        _log.info("no rough lap to begin with: %s", error)
        return None


def _settle(task: _Task, near: Plan | None) -> Plan:
    """Solve on ever finer meshes, each from the solution before, until the lap no longer changes."""
    change, before_s = math.nan, math.nan
    from_m, launch_s = (task.start.distance_m, task.start.time_s) if task.start else (0.0, 0.0)
    for interval_s in task.aims.intervals_s:
        edges_m = cut(task.nodes, task.speed_mps, interval_s, from_m)
        found = _solve(task, edges_m, near)
        change, before_s = abs(found.time_s / before_s - 1.0), found.time_s
        near = plan_of(edges_m, found, change)
        if change < TOLERANCE or len(task.aims.intervals_s) == 1:
            return replace(near, time_s=launch_s + found.time_s)
    raise OptimalError(
        f"the optimal lap still changes by {100.0 * change:.3f} % on the finest mesh; it is not trusted. "
        "Is the track's line rough? `hotlap tracks import` smooths it."
    )


def _solve(task: _Task, edges_m: Floats, near: Plan | None) -> Solution:
    """Solve from what is near, more patiently from there if that fails, and from nothing at all in the end."""
    if near:
        guess = transfer(near.arc_m, near.states, near.controls, edges_m)
        for is_near in (True, False):
            found = _attempt(task, edges_m, guess, is_near)
            if found.is_solved:
                return found
    found = _attempt(task, edges_m, first_guess(task.nodes, edges_m, task.car, task.speed_mps), is_near=False)
    if not found.is_solved:
        raise OptimalError(
            f"the optimal {'standing ' if task.start else ''}lap did not converge on {len(edges_m) - 1} intervals: "
            f"{found.status} after {found.iterations} iterations. Is the track narrower than a car, or kinked?"
        )
    return found


def _attempt(task: _Task, edges_m: Floats, guess: Guess, is_near: bool) -> Solution:
    found = solve(
        lay_road(task.nodes, edges_m, task.car, task.aims.margin_m),
        guess,
        task.car,
        most_slip=task.aims.most_slip,
        steering_share=task.aims.steering_share,
        start=task.start.state if task.start else None,
        is_near=is_near,
    )
    _log.debug("%d intervals: %s after %d iterations", len(edges_m) - 1, found.status, found.iterations)
    return found

"""Solve a track's minimum-time laps, flying and standing, on finer meshes until the lap time no longer changes."""

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from hotlap.errors import OptimalError
from hotlap.optimal.collocation import Floats, Guess
from hotlap.optimal.launch import Launch, launch
from hotlap.optimal.mesh import cut_lap, estimate_speed, first_guess, make_road_profile, resample_guess
from hotlap.optimal.plan import (
    ROUGH_SETTINGS,
    TOLERANCE,
    LapSettings,
    Plan,
    guess_from_flying,
    make_plan,
    reachable_speed,
)
from hotlap.optimal.solver import Solution, solve
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import CarParameters

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Task:
    """The lap to solve: road, car, settings, estimated speeds and start."""

    nodes: RibbonNodes
    car: CarParameters
    settings: LapSettings
    speed_mps: Floats  # (num_nodes,) estimate
    start: Launch | None = None  # None: a flying lap, which ends in the state in which it begins


def solve_flying(
    nodes: RibbonNodes,
    settings: LapSettings | None = None,
    car: CarParameters | None = None,
    *,
    warm_start: Plan | None = None,
) -> Plan:
    """The fastest flying lap; an OptimalError with the solver's status if none is found.

    `warm_start`, a flying lap of the same track solved with other settings, saves solving a rough lap first.
    """
    car = car or CarParameters()
    task = _Task(nodes, car, settings or LapSettings(), estimate_speed(nodes, car))
    return _refine(task, warm_start or _solve_rough(task))


def solve_standing(
    nodes: RibbonNodes,
    settings: LapSettings | None = None,
    car: CarParameters | None = None,
    *,
    warm_start: Plan | None = None,
) -> Plan:
    """The fastest lap from rest on the line: the simulator's own full-throttle launch, then the optimum from there.

    `warm_start`, a flying or standing lap of the same track, saves solving a rough lap first.
    """
    car = car or CarParameters()
    start = launch(car)
    task = _Task(nodes, car, settings or LapSettings(), estimate_speed(nodes, car))
    flying = warm_start or _solve_rough(task)
    guess = guess_from_flying(flying, nodes.length_m, start.distance_m, start.state) if flying else None
    reachable_mps = reachable_speed(start.state, np.arange(nodes.num_nodes, dtype=np.float64) * nodes.step_m)
    return _refine(replace(task, speed_mps=np.minimum(task.speed_mps, reachable_mps), start=start), guess)


def _solve_rough(task: _Task) -> Plan | None:
    """A lap with margins on a coarse mesh, as a warm start; None if the solver does not find one."""
    try:
        return _refine(replace(task, settings=ROUGH_SETTINGS), None)
    except OptimalError as error:
        _log.info("no rough lap as a warm start: %s", error)
        return None


def _refine(task: _Task, warm_start: Plan | None) -> Plan:
    """Solve on finer and finer meshes, each from the solution before, until the lap time no longer changes."""
    change, before_s = math.nan, math.nan
    from_m, launch_s = (task.start.distance_m, task.start.time_s) if task.start else (0.0, 0.0)
    for interval_s in task.settings.intervals_s:
        edges_m = cut_lap(task.nodes, task.speed_mps, interval_s, from_m)
        found = _solve(task, edges_m, warm_start)
        change, before_s = abs(found.time_s / before_s - 1.0), found.time_s
        warm_start = make_plan(edges_m, found, change)
        if change < TOLERANCE or len(task.settings.intervals_s) == 1:
            return replace(warm_start, time_s=launch_s + found.time_s)
    raise OptimalError(
        f"the optimal lap still changes by {100.0 * change:.3f} % on the finest mesh, so it is refused. "
        "Is the centreline rough? `hotlap tracks import` smooths it."
    )


def _solve(task: _Task, edges_m: Floats, warm_start: Plan | None) -> Solution:
    """Solve from the warm start; if that fails with default solver options; if that fails too from the centreline."""
    if warm_start:
        guess = resample_guess(warm_start.arc_m, warm_start.states, warm_start.controls, edges_m)
        for is_warm_start in (True, False):
            found = _attempt(task, edges_m, guess, is_warm_start)
            if found.is_solved:
                return found
    found = _attempt(task, edges_m, first_guess(task.nodes, edges_m, task.car, task.speed_mps), is_warm_start=False)
    if not found.is_solved:
        raise OptimalError(
            f"the optimal {'standing ' if task.start else ''}lap did not converge on {len(edges_m) - 1} intervals: "
            f"{found.status} after {found.iterations} iterations. Is the track narrower than a car, or kinked?"
        )
    return found


def _attempt(task: _Task, edges_m: Floats, guess: Guess, is_warm_start: bool) -> Solution:
    found = solve(
        make_road_profile(task.nodes, edges_m, task.car, task.settings.margin_m),
        guess,
        task.car,
        max_slip_fraction=task.settings.max_slip_fraction,
        steering_fraction=task.settings.steering_fraction,
        start=task.start.state if task.start else None,
        is_warm_start=is_warm_start,
    )
    _log.debug("%d intervals: %s after %d iterations", len(edges_m) - 1, found.status, found.iterations)
    return found

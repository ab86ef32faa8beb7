"""A driver that follows an optimal lap: proof that the optimum can be driven in the simulator at 60 Hz."""

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError
from hotlap.optimal.approach import solve_joining
from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.model import NUM_STATES, Control, State
from hotlap.optimal.plan import ROUGH_AIMS, Plan
from hotlap.optimal.plan_table import PlanTable, PlanTables, close, tabulate
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.vehicle import TICK_S, TICKS_PER_SECOND, CarParameters

Floats = NDArray[np.float64]

_log = logging.getLogger(__name__)

# What is kept in hand for a driver that decides 60 times a second: a hand's breadth of road, slip short of the peak,
# some of the wheel's speed. A plan that catches a slide with all of that leaves nothing to correct with: the car spins.
# One mesh will do, for the drive is the proof; on a coarser one the car strays further from the plan.
FOLLOWER_AIMS = replace(ROUGH_AIMS, intervals_s=(0.13,))

# At the limit of grip the linear feedback promises more than pedals can give, so corrections are bounded.
MOST_CORRECTION = np.array([8.0, 0.4, 0.2])  # of steering rate, throttle and brake

# From rest the plan is another for the first half of the lap; by then the two have become one.
STANDING_SHARE = 0.6

# How a car is driven that has no plan: slowly along the centreline, with a try for a plan every second.
CALM = CasualHabits(reaction_s=0.0, grip_share=0.5, steer_tremble=0.0, pedal_tremble=0.0)
SLOWEST_MPS = 4.5  # below, the optimiser's equations do not hold

_BODY = ("forward_mps", "left_mps", "yaw_radps", "steer", "throttle", "brake", "shift_n")
_NO_PLAN, _LAP = -1, 0  # otherwise the number of the plan by which a car comes into the lap


def solve_followed(nodes: RibbonNodes, near: tuple[Plan, Plan] | None = None) -> tuple[Plan, Plan]:
    """The flying and the standing lap that the driver follows; `near`, the track's optimal ones, saves time."""
    flying = solve_flying(nodes, FOLLOWER_AIMS, near=near[0] if near else None)
    return flying, solve_standing(nodes, FOLLOWER_AIMS, near=near[1] if near else flying)


class OptimalDriver:
    """Follows its own optimal lap, solved with a small margin to the edge and the grip.

    From rest on the line it comes into it by a standing lap; from anywhere else each car has a way of its own solved,
    which takes about a second.
    """

    name = "optimal"

    def __init__(self, flying: Plan | None = None, standing: Plan | None = None) -> None:
        self._flying, self._standing = flying, standing

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Solve the track's laps, or take the plans given, and work out the feedback."""
        if len(fleet.tracks) != 1:
            raise DriverError(f"the optimal driver drives one track at a time, got {len(fleet.tracks)}.")
        self._fleet, self._nodes, self._car = fleet, fleet.tracks[0].nodes, CarParameters()
        headings = np.arctan2(self._nodes.tangent_y, self._nodes.tangent_x)
        self._headings = np.unwrap(np.concatenate([headings, headings[:1]]))
        self._calm = CasualDriver(CALM)
        self._calm.begin(fleet, seed)
        self._tick = 0

        self._lap = self._flying or solve_flying(self._nodes, FOLLOWER_AIMS)
        tables = [close(tabulate(self._lap, self._nodes), self._nodes.length_m)]
        # Each car's plan, where the car took it up, and where the lap takes over.
        self._plan = np.full(fleet.num_cars, _NO_PLAN)
        self._from_m, self._until_m = np.zeros(fleet.num_cars), np.full(fleet.num_cars, np.inf)
        self._launch_m = np.zeros(fleet.num_cars)
        on_line = fleet.states["clock_runs"] == 1
        if on_line.any():
            standing = self._standing or solve_standing(self._nodes, FOLLOWER_AIMS, near=self._lap)
            tables.append(tabulate(standing, self._nodes))
            self._plan[on_line], self._until_m[on_line] = len(tables) - 1, STANDING_SHARE * self._nodes.length_m
            self._launch_m[on_line] = standing.arc_m[0]
        self._lay_out(tables)

    def _lay_out(self, tables: list[PlanTable]) -> None:
        self._tables, self._plans = tables, PlanTables(tables)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The plan's controls at this place, corrected by what the car deviates."""
        states = self._fleet.states
        arc_m = states["arc_m"].astype(np.float64)
        actual = self._actual(arc_m)
        if self._tick % TICKS_PER_SECOND == 0 and (self._plan == _NO_PLAN).any():
            self._find_ways(arc_m, actual)
        self._tick += 1
        at_m = self._take_over(arc_m)

        plan = np.maximum(self._plan, _LAP)
        planned, _, gains = self._plans.read(plan, at_m)
        # A command acts over the tick to come, so the plan's controls are read half a tick ahead.
        _, controls, _ = self._plans.read(plan, at_m + 0.5 * float(TICK_S) * states["forward_mps"])
        correction = -np.einsum("nij,nj->ni", gains, actual - planned)
        controls = controls + np.clip(correction, -MOST_CORRECTION, MOST_CORRECTION)
        steer = self._steering(actual[:, State.STEER], controls[:, Control.STEER_RATE])
        action = np.stack([steer, controls[:, Control.THROTTLE], controls[:, Control.BRAKE]], axis=1)
        action[at_m < self._launch_m] = [0.0, 1.0, 0.0]
        without = self._plan == _NO_PLAN
        if without.any():
            action[without] = self._calm.act(obs)[without]
        clipped: NDArray[np.float32] = np.clip(action, [-1.0, 0.0, 0.0], 1.0).astype(np.float32)
        return clipped

    def _find_ways(self, arc_m: Floats, actual: Floats) -> None:
        """Look for a way into the lap for every car that has none and is fast enough."""
        tables = list(self._tables)
        for car in np.flatnonzero((self._plan == _NO_PLAN) & (actual[:, State.FORWARD] >= SLOWEST_MPS)):
            way = solve_joining(self._nodes, self._lap, float(arc_m[car]), actual[car], FOLLOWER_AIMS)
            if way is None:
                _log.info("car %d finds no way into the lap from %.0f m yet", car, arc_m[car])
                continue
            tables.append(tabulate(way, self._nodes))
            self._plan[car], self._from_m[car], self._until_m[car] = len(tables) - 1, arc_m[car], way.arc_m[-1]
        self._lay_out(tables)

    def _take_over(self, arc_m: Floats) -> Floats:
        """Put the cars that came to the end of their way on the lap; arc lengths as their plans count them."""
        lap_m = self._nodes.length_m
        at_m = self._from_m + (arc_m - self._from_m) % lap_m
        done = at_m >= self._until_m
        self._plan[done], self._from_m[done], self._until_m[done], self._launch_m[done] = _LAP, 0.0, np.inf, 0.0
        at_m[done] %= lap_m
        return at_m

    def _steering(self, steer: Floats, rate: Floats) -> Floats:
        """The command that turns the wheel at `rate`: held for a tick, it loses pull as the wheel follows it."""
        tick_s, limit = float(TICK_S), self._car.steering_rate_per_s
        reach_s = tick_s / (1.0 - np.exp(-tick_s / self._car.steering_lag_s))
        command: Floats = steer + reach_s * np.clip(rate, -limit, limit)
        return command

    def _actual(self, arc_m: Floats) -> Floats:
        """The cars' states as the plan has them, (num_cars, 9)."""
        states = self._fleet.states
        actual = np.empty((len(arc_m), NUM_STATES))
        actual[:, State.LATERAL] = states["lateral_m"]
        road_rad = np.interp(arc_m / self._nodes.step_m, np.arange(len(self._headings)), self._headings)
        turn = states["yaw_rad"].astype(np.float64) - road_rad
        actual[:, State.HEADING] = (turn + np.pi) % (2.0 * np.pi) - np.pi
        for column, name in enumerate(_BODY, start=State.FORWARD):
            actual[:, column] = states[name]
        return actual

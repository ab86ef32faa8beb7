"""`OptimalDriver`: follows an optimal lap, which shows that it can be driven in the simulator at 60 Hz."""

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError
from hotlap.optimal.approach import solve_approach
from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.model import NUM_STATES, Control, State
from hotlap.optimal.plan import ROUGH_SETTINGS, Plan
from hotlap.optimal.plan_table import PlanTable, PlanTables, close_lap, make_table
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import TICK_S, TICKS_PER_SECOND

Floats = NDArray[np.float64]

_log = logging.getLogger(__name__)

# The margins of a driver that acts 60 times a second: to the road's edge, to the peak slip and to the steering rate.
# A plan at all limits leaves no room for corrections, and the car spins. One mesh is enough, since the drive itself
# verifies the plan; on a coarser mesh the car deviates more from it.
FOLLOWER_SETTINGS = replace(ROUGH_SETTINGS, intervals_s=(0.13,))

# At the limit of grip the linear feedback asks for more than the controls can give, so corrections are bounded.
MAX_CORRECTION = np.array([8.0, 0.4, 0.2])  # of steering rate, throttle and brake

# From a standing start the standing lap is followed for this fraction of the lap; by then it equals the flying lap.
STANDING_FRACTION = 0.6

# A car without a plan drives slowly along the centreline; every second a plan is tried.
SLOW_HABITS = CasualHabits(reaction_s=0.0, grip_share=0.5, steer_noise=0.0, pedal_noise=0.0)
MIN_SPEED_MPS = 4.5  # the optimiser's equations do not hold below

_BODY = ("forward_mps", "left_mps", "yaw_radps", "steer", "throttle", "brake", "shift_n")
_NO_PLAN, _LAP = -1, 0  # any other number is the plan of an approach to the lap


def solve_followed(nodes: RibbonNodes, warm_start: tuple[Plan, Plan] | None = None) -> tuple[Plan, Plan]:
    """The flying and the standing lap that the driver follows; `warm_start`, the track's optimal ones, saves time."""
    flying = solve_flying(nodes, FOLLOWER_SETTINGS, warm_start=warm_start[0] if warm_start else None)
    return flying, solve_standing(nodes, FOLLOWER_SETTINGS, warm_start=warm_start[1] if warm_start else flying)


class OptimalDriver:
    """Follows an optimal lap that is solved with a small margin to the road's edge and the grip.

    From the start line it follows a standing lap first. From anywhere else an approach to the lap is solved for each
    car, which takes about a second.
    """

    name = "optimal"

    def __init__(self, flying: Plan | None = None, standing: Plan | None = None) -> None:
        self._flying, self._standing = flying, standing

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Solve the track's laps, or use the given plans, and compute the feedback."""
        if len(fleet.tracks) != 1:
            raise DriverError(f"the optimal driver drives one track at a time, got {len(fleet.tracks)}.")
        domain = fleet.settings.domain
        if domain.is_drawn:
            raise DriverError(f"the optimal driver plans for one car, got cars that differ: {domain}.")
        self._fleet, self._nodes, self._car = fleet, fleet.tracks[0].nodes, domain.car
        headings = np.arctan2(self._nodes.tangent_y, self._nodes.tangent_x)
        self._headings = np.unwrap(np.concatenate([headings, headings[:1]]))
        self._slow_driver = CasualDriver(SLOW_HABITS)
        self._slow_driver.begin(fleet, seed)
        self._tick = 0

        self._lap = self._flying or solve_flying(self._nodes, FOLLOWER_SETTINGS, self._car)
        tables = [close_lap(make_table(self._lap, self._nodes, self._car), self._nodes.length_m)]
        # Each car's plan, and the arc lengths where it begins and where the flying lap takes over.
        self._plan = np.full(fleet.num_cars, _NO_PLAN)
        self._from_m, self._until_m = np.zeros(fleet.num_cars), np.full(fleet.num_cars, np.inf)
        self._launch_m = np.zeros(fleet.num_cars)
        on_line = fleet.states["clock_runs"] == 1
        if on_line.any():
            standing = self._standing or solve_standing(self._nodes, FOLLOWER_SETTINGS, self._car, warm_start=self._lap)
            tables.append(make_table(standing, self._nodes, self._car))
            self._plan[on_line], self._until_m[on_line] = len(tables) - 1, STANDING_FRACTION * self._nodes.length_m
            self._launch_m[on_line] = standing.arc_m[0]
        self._set_tables(tables)

    def _set_tables(self, tables: list[PlanTable]) -> None:
        self._tables, self._plans = tables, PlanTables(tables)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The plan's controls at the car's place, plus feedback on its deviation."""
        states = self._fleet.states
        arc_m = states["arc_m"].astype(np.float64)
        actual = self._actual(arc_m)
        if self._tick % TICKS_PER_SECOND == 0 and (self._plan == _NO_PLAN).any():
            self._solve_approaches(arc_m, actual)
        self._tick += 1
        at_m = self._switch_to_lap(arc_m)

        plan = np.maximum(self._plan, _LAP)
        planned, _, gains = self._plans.read(plan, at_m)
        # A command acts over the tick to come, so the plan's controls are read half a tick ahead.
        _, controls, _ = self._plans.read(plan, at_m + 0.5 * float(TICK_S) * states["forward_mps"])
        correction = -np.einsum("nij,nj->ni", gains, actual - planned)
        controls = controls + np.clip(correction, -MAX_CORRECTION, MAX_CORRECTION)
        steer = self._steering(actual[:, State.STEER], controls[:, Control.STEER_RATE])
        action = np.stack([steer, controls[:, Control.THROTTLE], controls[:, Control.BRAKE]], axis=1)
        action[at_m < self._launch_m] = [0.0, 1.0, 0.0]
        has_no_plan = self._plan == _NO_PLAN
        if has_no_plan.any():
            action[has_no_plan] = self._slow_driver.act(obs)[has_no_plan]
        clipped: NDArray[np.float32] = np.clip(action, [-1.0, 0.0, 0.0], 1.0).astype(np.float32)
        return clipped

    def _solve_approaches(self, arc_m: Floats, actual: Floats) -> None:
        """Solve an approach to the lap for every car that has no plan and is fast enough."""
        tables = list(self._tables)
        for car in np.flatnonzero((self._plan == _NO_PLAN) & (actual[:, State.FORWARD] >= MIN_SPEED_MPS)):
            start = float(arc_m[car]), actual[car]
            approach = solve_approach(self._nodes, self._lap, *start, FOLLOWER_SETTINGS, self._car)
            if approach is None:
                _log.info("no approach to the lap found for car %d at %.0f m", car, arc_m[car])
                continue
            tables.append(make_table(approach, self._nodes, self._car))
            self._plan[car], self._from_m[car], self._until_m[car] = len(tables) - 1, arc_m[car], approach.arc_m[-1]
        self._set_tables(tables)

    def _switch_to_lap(self, arc_m: Floats) -> Floats:
        """Switch cars at the end of their approach to the flying lap; returns arc lengths along the plans."""
        lap_m = self._nodes.length_m
        at_m = self._from_m + (arc_m - self._from_m) % lap_m
        done = at_m >= self._until_m
        self._plan[done], self._from_m[done], self._until_m[done], self._launch_m[done] = _LAP, 0.0, np.inf, 0.0
        at_m[done] %= lap_m
        return at_m

    def _steering(self, steer: Floats, rate: Floats) -> Floats:
        """The steering command that gives `rate` over one tick, in which the actuator's lag reduces the rate."""
        tick_s, limit = float(TICK_S), self._car.steering_rate_per_s
        reach_s = tick_s / (1.0 - np.exp(-tick_s / self._car.steering_lag_s))
        command: Floats = steer + reach_s * np.clip(rate, -limit, limit)
        return command

    def _actual(self, arc_m: Floats) -> Floats:
        """The cars' states in the plan's variables, (num_cars, 9)."""
        states = self._fleet.states
        actual = np.empty((len(arc_m), NUM_STATES))
        actual[:, State.LATERAL] = states["lateral_m"]
        road_rad = np.interp(arc_m / self._nodes.step_m, np.arange(len(self._headings)), self._headings)
        turn = states["yaw_rad"].astype(np.float64) - road_rad
        actual[:, State.HEADING] = (turn + np.pi) % (2.0 * np.pi) - np.pi
        for column, name in enumerate(_BODY, start=State.FORWARD):
            actual[:, column] = states[name]
        return actual

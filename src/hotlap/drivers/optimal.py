"""A driver that follows an optimal lap: proof that the optimum can be driven in the simulator at 60 Hz."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError
from hotlap.optimal.feedback import feedback_gains
from hotlap.optimal.lap import Aims, Plan, solve_flying, solve_standing
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State
from hotlap.sim.vehicle import TICK_S, CarParameters

Floats = NDArray[np.float64]

# What is kept in hand for a driver that decides 60 times a second: a hand's breadth of road, slip short of the peak,
# some of the wheel's speed. A plan that catches a slide with all of that leaves nothing to correct with: the car spins.
FOLLOWER_AIMS = Aims(margin_m=0.15, most_slip=0.9, steering_share=0.85)

# At the limit of grip the linear feedback promises more than pedals can give, so corrections are bounded.
MOST_CORRECTION = np.array([8.0, 0.4, 0.2])  # of steering rate, throttle and brake

# From rest the plan is another for the first half of the lap; by then the two have become one.
STANDING_SHARE = 0.6

_BODY = ("forward_mps", "left_mps", "yaw_radps", "steer", "throttle", "brake", "shift_n")


class OptimalDriver:
    """Follows its own optimal lap, solved with a small margin to the edge and the grip, from rest on the line."""

    name = "optimal"

    def __init__(self, flying: Plan | None = None, standing: Plan | None = None) -> None:
        self._flying, self._standing = flying, standing

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Solve the track's laps, or take the plans given, and work out the feedback."""
        if len(fleet.tracks) != 1:
            raise DriverError(f"the optimal driver drives one track at a time, got {len(fleet.tracks)}.")
        if not fleet.states["clock_runs"].all():
            raise DriverError("the optimal driver begins at rest on the line. Use --start line.")
        self._fleet = fleet
        self._nodes = fleet.tracks[0].nodes
        self._car = CarParameters()
        flying = self._flying or solve_flying(self._nodes, FOLLOWER_AIMS)
        standing = self._standing or solve_standing(self._nodes, FOLLOWER_AIMS)
        self._launch_m = float(standing.arc_m[0])
        self._standing_table = self._tabulate(standing)
        self._flying_table = _close(*self._tabulate(flying), self._nodes.length_m)
        headings = np.arctan2(self._nodes.tangent_y, self._nodes.tangent_x)
        self._headings = np.unwrap(np.concatenate([headings, headings[:1]]))

    def _tabulate(self, plan: Plan) -> tuple[Floats, Floats]:
        """Arc lengths and rows of states, controls and gains."""
        gains = feedback_gains(plan, self._nodes, self._car)
        return plan.arc_m, np.concatenate([plan.states, plan.controls, gains.reshape(len(gains), -1)], axis=1)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The plan's controls at this place, corrected by what the car deviates."""
        states = self._fleet.states
        arc_m = states["arc_m"].astype(np.float64)
        plan = self._read(arc_m)
        # A command acts over the tick to come, so the plan's controls are read half a tick ahead.
        ahead = self._read(arc_m + 0.5 * float(TICK_S) * states["forward_mps"])
        planned = ahead[:, NUM_STATES : NUM_STATES + NUM_CONTROLS]
        gains = plan[:, NUM_STATES + NUM_CONTROLS :].reshape(-1, NUM_CONTROLS, NUM_STATES)
        correction = -np.einsum("nij,nj->ni", gains, self._actual(arc_m) - plan[:, :NUM_STATES])
        controls = planned + np.clip(correction, -MOST_CORRECTION, MOST_CORRECTION)
        steer = self._steering(states["steer"].astype(np.float64), controls[:, Control.STEER_RATE])
        action = np.stack([steer, controls[:, Control.THROTTLE], controls[:, Control.BRAKE]], axis=1)
        action[self._is_first_lap() & (arc_m < self._launch_m)] = [0.0, 1.0, 0.0]
        clipped: NDArray[np.float32] = np.clip(action, [-1.0, 0.0, 0.0], 1.0).astype(np.float32)
        return clipped

    def _steering(self, steer: Floats, rate: Floats) -> Floats:
        """The command that turns the wheel at `rate`: held for a tick, it loses pull as the wheel follows it."""
        tick_s, limit = float(TICK_S), self._car.steering_rate_per_s
        reach_s = tick_s / (1.0 - np.exp(-tick_s / self._car.steering_lag_s))
        command: Floats = steer + reach_s * np.clip(rate, -limit, limit)
        return command

    def _is_first_lap(self) -> NDArray[np.bool_]:
        first: NDArray[np.bool_] = self._fleet.states["lap"] == 1
        return first

    def _read(self, arc_m: Floats) -> Floats:
        """The plans' rows at arc lengths, linear in between; (num_cars, columns)."""
        arc_m = arc_m % self._nodes.length_m
        from_rest = self._is_first_lap() & (arc_m < STANDING_SHARE * self._nodes.length_m)
        standing, flying = _interpolate(*self._standing_table, arc_m), _interpolate(*self._flying_table, arc_m)
        return np.where(from_rest[:, None], standing, flying)

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


def _close(arc_m: Floats, table: Floats, lap_m: float) -> tuple[Floats, Floats]:
    """A flying lap's table, continued over the line at both ends."""
    arcs_m = np.concatenate([[arc_m[-1] - lap_m], arc_m, [arc_m[0] + lap_m]])
    return arcs_m, np.concatenate([table[-1:], table, table[:1]])


def _interpolate(arcs_m: Floats, table: Floats, at_m: Floats) -> Floats:
    """Rows of a table at arc lengths, linear in between, the end rows held beyond."""
    at = np.clip(np.searchsorted(arcs_m, at_m, side="right") - 1, 0, len(arcs_m) - 2)
    share = np.clip((at_m - arcs_m[at]) / (arcs_m[at + 1] - arcs_m[at]), 0.0, 1.0)[:, None]
    rows: Floats = table[at] * (1.0 - share) + table[at + 1] * share
    return rows

"""A driver that follows an optimal lap: proof that the optimum can be driven in the simulator at 60 Hz."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError
from hotlap.optimal.feedback import feedback_gains
from hotlap.optimal.lap import Aims, Plan, solve_flying, solve_standing
from hotlap.optimal.mesh import UNDERSTEER_S2PM, along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State
from hotlap.sim.vehicle import GRAVITY_MPS2, TICK_S, TICKS_PER_SECOND, CarParameters

Floats = NDArray[np.float64]

# What is kept in hand for a driver that decides 60 times a second.
FOLLOWER_AIMS = Aims(margin_m=0.15, grip=0.99)

MOST_CORRECTION = np.array([8.0, 0.4, 0.2])  # of steering rate, throttle and brake

# Feedback holds near the plan. A car that is slower or farther off than this first chases the line, at a share of the
# plan's speed that grows until it can join.
CHASE_BELOW_PACE, JOIN_ABOVE_PACE = 0.90, 0.95
CHASE_BEYOND_M, JOIN_WITHIN_M = 1.2, 0.6
CHASE_BEYOND_RAD, JOIN_WITHIN_RAD = 0.25, 0.10
CHASE_INSIDE_M = 0.5  # how far from the edge the line is chased
CHASE_PACE, CHASE_PACE_PER_S = 0.82, 0.015
CHASE_GRIP_SHARE = 0.85

# From rest the plan is another for the first half of the lap; by then the two have become one.
STANDING_SHARE = 0.6

_BODY = ("forward_mps", "left_mps", "yaw_radps", "steer", "throttle", "brake", "shift_n")


class OptimalDriver:
    """Follows its own optimal lap, solved with a small margin to the edge and the grip."""

    name = "optimal"

    def __init__(self, flying: Plan | None = None, standing: Plan | None = None) -> None:
        self._flying, self._standing = flying, standing

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Solve the track's laps, or take the plans given, and work out the feedback."""
        if len(fleet.tracks) != 1:
            raise DriverError(f"the optimal driver drives one track at a time, got {len(fleet.tracks)}.")
        self._fleet = fleet
        self._nodes = fleet.tracks[0].nodes
        self._car = CarParameters()
        flying = self._flying or solve_flying(self._nodes, FOLLOWER_AIMS)
        standing = self._standing or solve_standing(self._nodes, FOLLOWER_AIMS)
        # Car by car, row 0 of the tables is the standing lap's plan and row 1 the flying lap's.
        self._launch_m = float(standing.arc_m[0])
        tabulated = (self._tabulate(standing, is_closed=False), self._tabulate(flying, is_closed=True))
        self._arcs, self._tables = zip(*tabulated, strict=True)
        self._chase_ticks = np.zeros(fleet.num_cars)
        self._chases = np.zeros(fleet.num_cars, np.bool_)
        headings = np.arctan2(self._nodes.tangent_y, self._nodes.tangent_x)
        self._headings = np.unwrap(np.concatenate([headings, headings[:1]]))

    def _tabulate(self, plan: Plan, *, is_closed: bool) -> tuple[Floats, Floats]:
        """Arc lengths and rows (states, controls, gains), a flying lap's continued beyond both ends."""
        gains = feedback_gains(plan, self._nodes, self._car)
        table = np.concatenate([plan.states, plan.controls, gains.reshape(len(gains), -1)], axis=1)
        if not is_closed:
            return plan.arc_m, table
        lap_m = self._nodes.length_m
        arc_m = np.concatenate([[plan.arc_m[-1] - lap_m], plan.arc_m, [plan.arc_m[0] + lap_m]])
        return arc_m, np.concatenate([table[-1:], table, table[:1]])

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The plan's controls at this place, corrected by what the car deviates; or the way back to the plan."""
        arc_m = self._fleet.states["arc_m"].astype(np.float64)
        plan = self._read(arc_m)
        actual = self._actual(arc_m)
        deviation = actual - plan[:, :NUM_STATES]
        self._choose(actual, plan, deviation)
        action = np.where(self._chases[:, None], self._chase(arc_m, actual, plan), self._follow(arc_m, plan, deviation))
        action[self._launches(arc_m)] = [0.0, 1.0, 0.0]
        return np.clip(action, [-1.0, 0.0, 0.0], 1.0).astype(np.float32)

    def _choose(self, actual: Floats, plan: Floats, deviation: Floats) -> None:
        """Which cars chase the line: those far off it, until they are well on it."""
        pace = actual[:, State.FORWARD] / plan[:, State.FORWARD]
        off_m, turned = np.abs(deviation[:, State.LATERAL]), np.abs(deviation[:, State.HEADING])
        lost = (pace < CHASE_BELOW_PACE) | (off_m > CHASE_BEYOND_M) | (turned > CHASE_BEYOND_RAD)
        found = (pace > JOIN_ABOVE_PACE) & (off_m < JOIN_WITHIN_M) & (turned < JOIN_WITHIN_RAD)
        launches = self._launches(self._fleet.states["arc_m"].astype(np.float64))
        self._chases = ~launches & (lost | (self._chases & ~found))
        self._chase_ticks = np.where(self._chases, self._chase_ticks + 1, 0)

    def _follow(self, arc_m: Floats, plan: Floats, deviation: Floats) -> Floats:
        """The plan and its feedback. A command acts over the tick to come, so the plan is read half a tick ahead."""
        states = self._fleet.states
        ahead = self._read(arc_m + 0.5 * float(TICK_S) * states["forward_mps"])
        planned = ahead[:, NUM_STATES : NUM_STATES + NUM_CONTROLS]
        gains = plan[:, NUM_STATES + NUM_CONTROLS :].reshape(-1, NUM_CONTROLS, NUM_STATES)
        # At the limit of grip the linear model promises more than pedals can give, so their corrections are bounded.
        wanted = -np.einsum("nij,nj->ni", gains, deviation)
        controls = planned + np.clip(wanted, -MOST_CORRECTION, MOST_CORRECTION)
        limit = self._car.steering_rate_per_s
        steer = states["steer"] + self._car.steering_lag_s * np.clip(controls[:, Control.STEER_RATE], -limit, limit)
        return np.stack([steer, controls[:, Control.THROTTLE], controls[:, Control.BRAKE]], axis=1)

    def _chase(self, arc_m: Floats, actual: Floats, plan: Floats) -> Floats:
        """Pure pursuit of the planned line, as fast as the plan and no faster than the grip allows."""
        car, states = self._car, self._fleet.states
        speed_mps = np.hypot(actual[:, State.FORWARD], actual[:, State.LEFT])
        target_m = arc_m + 11.0 + 0.7 * speed_mps
        x_m, y_m = self._place(target_m)
        dx, dy = x_m - states["x_m"], y_m - states["y_m"]
        yaw_rad = states["yaw_rad"].astype(np.float64)
        left_m = dy * np.cos(yaw_rad) - dx * np.sin(yaw_rad)
        curvature = 2.0 * left_m / np.maximum(dx * dx + dy * dy, 1.0)
        share = 1.0 / (1.0 + (speed_mps / car.steering_scale_mps) ** 2)
        lock = car.steering_fast_rad + (car.steering_slow_rad - car.steering_fast_rad) * share
        steer = -curvature * (car.wheelbase_m + UNDERSTEER_S2PM * speed_mps**2) / lock
        bend = speed_mps * actual[:, State.YAW] / (CHASE_GRIP_SHARE * car.friction * GRAVITY_MPS2)
        spare = np.sqrt(np.maximum(1.0 - bend * bend, 0.0))
        wanted_mps = np.minimum(plan[:, State.FORWARD], self._read(arc_m + 0.3 * speed_mps)[:, State.FORWARD])
        share = np.minimum(CHASE_PACE + CHASE_PACE_PER_S * self._chase_ticks / TICKS_PER_SECOND, 1.0)
        error_mps = share * wanted_mps - speed_mps
        return np.stack([steer, np.minimum(0.5 * error_mps, spare), np.minimum(-0.3 * error_mps, 0.7)], axis=1)

    def _read(self, arc_m: Floats) -> Floats:
        """The plan's rows at arc lengths, linear in between; (num_cars, columns)."""
        arc_m = arc_m % self._nodes.length_m
        from_rest = self._is_first_lap() & (arc_m < STANDING_SHARE * self._nodes.length_m)
        rows = [_interpolate(arcs, table, arc_m) for arcs, table in zip(self._arcs, self._tables, strict=True)]
        return np.where(from_rest[:, None], *rows)

    def _is_first_lap(self) -> NDArray[np.bool_]:
        """Which cars are on a lap that began at rest."""
        states = self._fleet.states
        first: NDArray[np.bool_] = (states["lap"] == 1) & (states["clock_runs"] > 0) & (states["lap_start_tick"] == 0)
        return first

    def _launches(self, arc_m: Floats) -> NDArray[np.bool_]:
        """Which cars are on their first metres from rest, straight ahead with full throttle."""
        return self._is_first_lap() & (arc_m < self._launch_m)

    def _place(self, arc_m: Floats) -> tuple[Floats, Floats]:
        """World position of the planned line at arc lengths, kept a little inside the road."""
        nodes = self._nodes
        left_m = along_track(nodes.road_left_m, nodes, arc_m) - CHASE_INSIDE_M
        right_m = along_track(nodes.road_right_m, nodes, arc_m) - CHASE_INSIDE_M
        lateral_m = np.clip(self._read(arc_m)[:, State.LATERAL], -right_m, left_m)
        centre_x, centre_y = along_track(nodes.x_m, nodes, arc_m), along_track(nodes.y_m, nodes, arc_m)
        return (
            centre_x - lateral_m * along_track(nodes.tangent_y, nodes, arc_m),
            centre_y + lateral_m * along_track(nodes.tangent_x, nodes, arc_m),
        )

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


def _interpolate(arcs_m: Floats, table: Floats, at_m: Floats) -> Floats:
    """Rows of a table at arc lengths, linear in between, the last ones held beyond the ends."""
    at = np.clip(np.searchsorted(arcs_m, at_m, side="right") - 1, 0, len(arcs_m) - 2)
    share = np.clip((at_m - arcs_m[at]) / (arcs_m[at + 1] - arcs_m[at]), 0.0, 1.0)[:, None]
    rows: Floats = table[at] * (1.0 - share) + table[at + 1] * share
    return rows

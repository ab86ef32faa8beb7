"""`CasualDriver`: a model of a casual human driver, the baseline for "faster than a casual human".

It is not a recording of people. It reacts a quarter of a second late, steers towards a point of the centreline ahead
(pure pursuit), aims at speeds that use about 70 % of the grip, brakes early, and its controls have noise. It uses no
racing line. In a race it sees the others (`eyes.py`). `docs/casual-driver.md` describes its limits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.eyes import open_eyes
from hotlap.envs.fleet import Fleet
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import TICKS_PER_SECOND, CarParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CasualHabits:
    """The parameters of the casual driver."""

    reaction_s: float = 0.25
    grip_share: float = 0.70
    look_ahead_m: float = 7.0
    look_ahead_s: float = 0.80
    brake_early_s: float = 0.40  # how far ahead it looks for a lower target speed
    understeer_s2pm: float = 0.0012  # extra steering per squared speed
    throttle_per_mps: float = 0.35
    brake_per_mps: float = 0.15
    max_brake: float = 0.60
    throttle_lift_per_steer: float = 0.5
    steer_noise: float = 0.03
    pedal_noise: float = 0.05
    noise_s: float = 0.30  # correlation time of the noise


class CasualDriver:
    """Drives every car of a fleet as a person might who has driven such a car a few times."""

    name = "casual"

    def __init__(self, habits: CasualHabits | None = None) -> None:
        self.habits = habits or CasualHabits()
        self._car = CarParameters()

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Compute the tracks' target speeds and clear the memory."""
        self._fleet = fleet
        tracks = fleet.tracks
        counts = np.array([track.nodes.num_nodes for track in tracks])
        self._first = np.concatenate([[0], np.cumsum(counts)[:-1]])[fleet.states["track"]]
        self._count = counts[fleet.states["track"]]
        self._step_m = np.array([track.nodes.step_m for track in tracks])[fleet.states["track"]]
        self._x_m = np.concatenate([track.nodes.x_m for track in tracks])
        self._y_m = np.concatenate([track.nodes.y_m for track in tracks])
        self._curvature_radpm = np.concatenate([track.nodes.curvature_radpm for track in tracks])
        self._tangent_x = np.concatenate([track.nodes.tangent_x for track in tracks])
        self._tangent_y = np.concatenate([track.nodes.tangent_y for track in tracks])
        self._target_mps = np.concatenate(
            [
                speed_profile(track.nodes.curvature_radpm, track.nodes.step_m, self._car, self.habits.grip_share)
                for track in tracks
            ]
        )
        delay = round(self.habits.reaction_s * TICKS_PER_SECOND)
        self._history = [self._observe()] * (delay + 1)  # a ring buffer
        self._next = 0
        self._noise = SmoothNoise(fleet.num_cars, seed, self.habits.noise_s)
        self._ahead_s = np.linspace(0.0, self.habits.brake_early_s, 4)[:, None]
        self._eyes = open_eyes(fleet)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions from the state of the cars one reaction time ago."""
        self._history[self._next] = self._observe()
        self._next = (self._next + 1) % len(self._history)
        x_m, y_m, yaw_rad, speed_mps, arc_m = self._extrapolate(*self._history[self._next])
        noise = self._noise.next()
        steer = self._steering(x_m, y_m, yaw_rad, speed_mps, arc_m) + self.habits.steer_noise * noise[:, 0]
        target_mps = self._target(arc_m, speed_mps)
        if self._eyes:
            target_mps = self._eyes.look(target_mps, self._bend(arc_m, speed_mps))
        error_mps = target_mps - speed_mps
        throttle = error_mps * self.habits.throttle_per_mps + self.habits.pedal_noise * noise[:, 1]
        brake = -error_mps * self.habits.brake_per_mps + self.habits.pedal_noise * noise[:, 1]
        lift = 1.0 - self.habits.throttle_lift_per_steer * np.minimum(np.abs(steer), 1.0)
        # Bounds by `minimum` and `maximum`: for a few cars `clip` takes twice as long.
        action = np.empty((len(steer), 3), np.float32)
        action[:, 0] = np.minimum(np.maximum(steer, -1.0), 1.0)
        action[:, 1] = np.where(error_mps > 0.0, np.minimum(np.maximum(throttle, 0.0), lift), 0.0)
        action[:, 2] = np.where(error_mps < -0.5, np.minimum(np.maximum(brake, 0.0), self.habits.max_brake), 0.0)
        return action

    def _observe(self) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Position, heading, speed, yaw rate and arc length of every car."""
        states = self._fleet.states
        speed_mps = np.hypot(states["forward_mps"].astype(np.float64), states["left_mps"])
        return (
            states["x_m"].astype(np.float64),
            states["y_m"].astype(np.float64),
            states["yaw_rad"].astype(np.float64),
            speed_mps,
            states["yaw_radps"].astype(np.float64),
            states["arc_m"].astype(np.float64),
        )

    def _extrapolate(
        self, x_m: Floats, y_m: Floats, yaw_rad: Floats, speed_mps: Floats, yaw_radps: Floats, arc_m: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """The state one reaction time later at constant speed and yaw rate: people anticipate."""
        delay_s = self.habits.reaction_s
        middle_rad = yaw_rad + 0.5 * delay_s * yaw_radps
        distance_m = delay_s * speed_mps
        return (
            x_m + distance_m * np.cos(middle_rad),
            y_m + distance_m * np.sin(middle_rad),
            yaw_rad + delay_s * yaw_radps,
            speed_mps,
            arc_m + distance_m,
        )

    def _node(self, arc_m: Floats) -> NDArray[np.int64]:
        """Index of the node at this arc length of each car's track."""
        node: NDArray[np.int64] = self._first + (arc_m / self._step_m).astype(np.int64) % self._count
        return node

    def _target(self, arc_m: Floats, speed_mps: Floats) -> Floats:
        """The lowest target speed between here and `brake_early_s` ahead."""
        nodes = self._node(arc_m + self._ahead_s * speed_mps)  # (4, num_cars)
        target_mps: Floats = np.minimum.reduce(self._target_mps[nodes])
        return target_mps

    def _bend(self, arc_m: Floats, speed_mps: Floats) -> Floats:
        """The curvature of the sharpest bend between here and a second ahead."""
        found = self._curvature_radpm[self._node(arc_m + np.linspace(0.0, 1.0, 5)[:, None] * speed_mps)]
        sharpest: Floats = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)[0]
        return sharpest

    def _steering(self, x_m: Floats, y_m: Floats, yaw_rad: Floats, speed_mps: Floats, arc_m: Floats) -> Floats:
        """Pure pursuit: the arc through a point of the centreline ahead, as a steering input (positive right)."""
        habits, car = self.habits, self._car
        ahead_m = habits.look_ahead_m + habits.look_ahead_s * speed_mps
        node = self._node(arc_m + ahead_m)
        dx, dy = self._x_m[node] - x_m, self._y_m[node] - y_m
        if self._eyes:  # beside the centreline
            dx, dy = dx - self._tangent_y[node] * self._eyes.offset_m, dy + self._tangent_x[node] * self._eyes.offset_m
        left_m = dy * np.cos(yaw_rad) - dx * np.sin(yaw_rad)
        curvature = 2.0 * left_m / np.maximum(dx * dx + dy * dy, 1.0)
        angle = curvature * (car.wheelbase_m + habits.understeer_s2pm * speed_mps * speed_mps)
        steer: Floats = -angle / car.full_lock_rad(speed_mps * speed_mps)
        return steer


class SmoothNoise:
    """Smooth noise of unit variance, two channels per car; car i's noise depends only on the seed and i."""

    BLOCK_TICKS = 60  # drawn at once; it does not change the numbers

    def __init__(self, num_cars: int, seed: int, memory_s: float) -> None:
        self._generators = [np.random.default_rng([seed % 2**64, car]) for car in range(num_cars)]
        self._keep = float(np.exp(-1.0 / (memory_s * TICKS_PER_SECOND)))
        self._fresh = np.sqrt(1.0 - self._keep * self._keep)
        self._value = np.zeros((num_cars, 2))
        self._tick = self.BLOCK_TICKS

    def next(self) -> Floats:
        """The next tick's noise, (num_cars, 2)."""
        if self._tick == self.BLOCK_TICKS:
            self._block = np.stack([one.standard_normal((self.BLOCK_TICKS, 2)) for one in self._generators])
            self._tick = 0
        self._value = self._keep * self._value + self._fresh * self._block[:, self._tick]
        self._tick += 1
        return self._value

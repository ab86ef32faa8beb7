"""`CasualDriver`: a model of a casual human driver, the baseline for "faster than a casual human".

It is not a recording of people. It reacts a quarter of a second late, steers towards a point of the centreline ahead
(pure pursuit), aims at speeds that use about 70 % of the grip, brakes early, and its controls have noise. It uses no
racing line. In a race it sees the others (`eyes.py`). `docs/casual-driver.md` describes its limits.
"""

from dataclasses import asdict, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.casual_kernels import (
    ADVICE_DTYPE,
    AIM_DTYPE,
    CAR_TRAITS,
    NUM_NODE_COLUMNS,
    ROAD_DTYPE,
    SEEN_DTYPE,
    decide,
    find_aims,
    observe,
)
from hotlap.drivers.eyes import open_eyes
from hotlap.envs.fleet import Fleet
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import TICKS_PER_SECOND, CarParameters
from hotlap.sim.world import NUM_ACTIONS, STATE_DTYPE

Floats = NDArray[np.float64]
Records = NDArray[np.void]


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

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Compute the tracks' target speeds and clear the memory."""
        self._fleet, self._car = fleet, fleet.settings.domain.car
        self._traits = _pack_traits(self.habits, self._car)
        self._roads = _pack_roads(fleet)
        self._points = np.concatenate([self._points_of(track.nodes) for track in fleet.tracks])
        delay = round(self.habits.reaction_s * TICKS_PER_SECOND)
        self._history = np.zeros((delay + 1, fleet.num_cars), SEEN_DTYPE)  # a ring buffer
        for seen in self._history:
            observe(fleet.states, seen)
        self._next = 0
        self._noise = SmoothNoise(fleet.num_cars, seed, self.habits.noise_s)
        self._ahead_s = np.linspace(0.0, self.habits.brake_early_s, 4)
        self._eyes, self._aims = open_eyes(fleet), np.zeros(fleet.num_cars, AIM_DTYPE)
        self._advice = np.zeros(fleet.num_cars, ADVICE_DTYPE)
        self._advice["max_speed_mps"] = np.inf

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions from the state of the cars one reaction time ago."""
        observe(self._fleet.states, self._history[self._next])
        self._next = (self._next + 1) % len(self._history)
        seen, noise = self._history[self._next], self._noise.next()
        road = self._roads, self._points, self._ahead_s, self._traits
        if self._eyes:
            find_aims(seen, *road, self._aims)
            self._advice["max_speed_mps"] = self._eyes.look(self._aims["speed_mps"], self._aims["curvature_radpm"])
            self._advice["offset_m"], self._advice["lock"] = self._eyes.offset_m, self._eyes.lock
        actions = np.empty((len(seen), NUM_ACTIONS), np.float32)
        decide(seen, noise, *road, self._advice, actions)
        return actions

    def _points_of(self, nodes: RibbonNodes) -> Floats:
        """Place, target speed, direction and curvature of every node of a track, (num_nodes, NUM_NODE_COLUMNS)."""
        target_mps = speed_profile(nodes.curvature_radpm, nodes.step_m, self._car, self.habits.grip_share)
        columns = nodes.x_m, nodes.y_m, target_mps, nodes.tangent_x, nodes.tangent_y, nodes.curvature_radpm
        return np.stack(columns, axis=1)


TRAITS_DTYPE = np.dtype([(name, np.float64) for name in (*(one.name for one in fields(CasualHabits)), *CAR_TRAITS)])


def _pack_traits(habits: CasualHabits, car: CarParameters) -> Records:
    """The numbers of a driver and its car, (1,)."""
    traits = np.zeros(1, TRAITS_DTYPE)
    for name, value in (asdict(habits) | {name: getattr(car, name) for name in CAR_TRAITS}).items():
        traits[name] = value
    return traits


def _pack_roads(fleet: Fleet) -> Records:
    """Where the nodes of each car's track are among those of all tracks, (num_cars,)."""
    roads = np.zeros(len(fleet.tracks), ROAD_DTYPE)
    roads["num_nodes"] = [track.nodes.num_nodes for track in fleet.tracks]
    roads["step_m"] = [track.nodes.step_m for track in fleet.tracks]
    roads["first_node"][1:] = np.cumsum(roads["num_nodes"])[:-1]
    of_cars: Records = roads[fleet.states["track"]]
    return of_cars


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


def warm_up() -> None:
    """Compile what the casual driver needs, or load it from the disk cache, before it drives."""
    states, seen, roads = (np.zeros(0, dtype) for dtype in (STATE_DTYPE, SEEN_DTYPE, ROAD_DTYPE))
    speed_profile(np.zeros(2), 1.0, CarParameters(), 1.0)
    observe(states, seen)
    road = roads, np.zeros((0, NUM_NODE_COLUMNS)), np.zeros(4), np.zeros(1, TRAITS_DTYPE)
    find_aims(seen, *road, np.zeros(0, AIM_DTYPE))
    decide(seen, np.zeros((0, 2)), *road, np.zeros(0, ADVICE_DTYPE), np.zeros((0, NUM_ACTIONS), np.float32))

"""`CasualDriver`: a model of a casual human driver, the baseline for "faster than a casual human".

It is not a recording of people. It reacts a quarter of a second late, steers towards a point of the centreline ahead
(pure pursuit), aims at speeds that use about 70 % of the grip, brakes early, and its controls have noise. It uses no
racing line. `docs/casual-driver.md` describes its limits.
"""

from dataclasses import asdict, dataclass, fields
from math import cos, hypot, sin

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.sim.compilation import entry_point, kernel
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import TICKS_PER_SECOND, CarParameters
from hotlap.sim.world import NUM_ACTIONS, STATE_DTYPE

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
        self._traits = _pack_traits(self.habits, self._car)
        self._roads = _pack_roads(fleet)
        self._points = np.concatenate([self._points_of(track.nodes) for track in fleet.tracks])
        delay = round(self.habits.reaction_s * TICKS_PER_SECOND)
        self._history = np.zeros((delay + 1, fleet.num_cars), _SEEN_DTYPE)  # a ring buffer
        for seen in self._history:
            _observe(fleet.states, seen)
        self._next = 0
        self._noise = SmoothNoise(fleet.num_cars, seed, self.habits.noise_s)
        self._ahead_s = np.linspace(0.0, self.habits.brake_early_s, 4)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions from the state of the cars one reaction time ago."""
        _observe(self._fleet.states, self._history[self._next])
        self._next = (self._next + 1) % len(self._history)
        seen, noise = self._history[self._next], self._noise.next()
        actions = np.empty((len(seen), NUM_ACTIONS), np.float32)
        _decide(seen, noise, self._roads, self._points, self._ahead_s, self._traits, actions)
        return actions

    def _points_of(self, nodes: RibbonNodes) -> Floats:
        """Position and target speed of every node of a track, (num_nodes, 3)."""
        target_mps = speed_profile(nodes.curvature_radpm, nodes.step_m, self._car, self.habits.grip_share)
        return np.stack([nodes.x_m, nodes.y_m, target_mps], axis=1)


# --- compiled, one car after the other: for a few cars NumPy takes twenty times as long ---

_SEEN_DTYPE = np.dtype([(name, np.float64) for name in ("x_m", "y_m", "yaw_rad", "speed_mps", "yaw_radps", "arc_m")])
_ROAD_DTYPE = np.dtype([("first_node", np.int64), ("num_nodes", np.int64), ("step_m", np.float64)])
_OF_THE_CAR = ("wheelbase_m", "steering_slow_rad", "steering_fast_rad", "steering_scale_mps")
_TRAITS_DTYPE = np.dtype([(name, np.float64) for name in (*(one.name for one in fields(CasualHabits)), *_OF_THE_CAR)])


def _pack_traits(habits: CasualHabits, car: CarParameters) -> NDArray[np.void]:
    """The numbers of a driver and its car, (1,)."""
    traits = np.zeros(1, _TRAITS_DTYPE)
    for name, value in asdict(habits).items():
        traits[name] = value
    for name in _OF_THE_CAR:
        traits[name] = getattr(car, name)
    return traits


def _pack_roads(fleet: Fleet) -> NDArray[np.void]:
    """Where the nodes of each car's track are among those of all tracks, (num_cars,)."""
    roads = np.zeros(len(fleet.tracks), _ROAD_DTYPE)
    roads["num_nodes"] = [track.nodes.num_nodes for track in fleet.tracks]
    roads["step_m"] = [track.nodes.step_m for track in fleet.tracks]
    roads["first_node"][1:] = np.cumsum(roads["num_nodes"])[:-1]
    return roads[fleet.states["track"]]


@entry_point()
def _observe(states, seen):
    """Fill position, heading, speed, yaw rate and arc length of every car."""
    for i in range(states.shape[0]):
        state, one = states[i], seen[i]
        one.x_m, one.y_m, one.yaw_rad = state.x_m, state.y_m, state.yaw_rad
        one.speed_mps = hypot(np.float64(state.forward_mps), np.float64(state.left_mps))
        one.yaw_radps, one.arc_m = state.yaw_radps, state.arc_m


@kernel
def _node(road, arc_m):
    """Index of the node at this arc length of a car's track."""
    return road.first_node + np.int64(arc_m / road.step_m) % road.num_nodes


@kernel
def _target(road, points, ahead_s, speed_mps, arc_m):
    """The lowest target speed between here and `brake_early_s` ahead."""
    lowest_mps = np.inf
    for k in range(ahead_s.shape[0]):
        lowest_mps = min(lowest_mps, points[_node(road, arc_m + ahead_s[k] * speed_mps), 2])
    return lowest_mps


@kernel
def _steering(road, points, traits, x_m, y_m, yaw_rad, speed_mps, arc_m):
    """Pure pursuit: the arc through a point of the centreline ahead, as a steering input (positive right)."""
    ahead_m = traits.look_ahead_m + traits.look_ahead_s * speed_mps
    goal = points[_node(road, arc_m + ahead_m)]
    dx, dy = goal[0] - x_m, goal[1] - y_m
    left_m = dy * cos(yaw_rad) - dx * sin(yaw_rad)
    curvature = 2.0 * left_m / max(dx * dx + dy * dy, 1.0)
    angle = curvature * (traits.wheelbase_m + traits.understeer_s2pm * speed_mps * speed_mps)
    share = 1.0 / (1.0 + speed_mps * speed_mps / (traits.steering_scale_mps * traits.steering_scale_mps))
    full_lock_rad = traits.steering_fast_rad + (traits.steering_slow_rad - traits.steering_fast_rad) * share
    return -angle / full_lock_rad


@entry_point()
def _decide(seen, noise, roads, points, ahead_s, traits, actions):
    """Fill the action of every car from what was seen one reaction time ago."""
    habits = traits[0]
    for i in range(seen.shape[0]):
        one, road = seen[i], roads[i]
        # The state one reaction time later at constant speed and yaw rate: people anticipate.
        speed_mps = one.speed_mps
        middle_rad = one.yaw_rad + 0.5 * habits.reaction_s * one.yaw_radps
        distance_m = habits.reaction_s * speed_mps
        x_m, y_m = one.x_m + distance_m * cos(middle_rad), one.y_m + distance_m * sin(middle_rad)
        yaw_rad, arc_m = one.yaw_rad + habits.reaction_s * one.yaw_radps, one.arc_m + distance_m
        steer = _steering(road, points, habits, x_m, y_m, yaw_rad, speed_mps, arc_m) + habits.steer_noise * noise[i, 0]
        error_mps = _target(road, points, ahead_s, speed_mps, arc_m) - speed_mps
        shake = habits.pedal_noise * noise[i, 1]
        throttle = error_mps * habits.throttle_per_mps + shake
        brake = -error_mps * habits.brake_per_mps + shake
        lift = 1.0 - habits.throttle_lift_per_steer * min(abs(steer), 1.0)
        actions[i, 0] = min(max(steer, -1.0), 1.0)
        actions[i, 1] = min(max(throttle, 0.0), lift) if error_mps > 0.0 else 0.0
        actions[i, 2] = min(max(brake, 0.0), habits.max_brake) if error_mps < -0.5 else 0.0


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
    states, seen, roads = (np.zeros(0, dtype) for dtype in (STATE_DTYPE, _SEEN_DTYPE, _ROAD_DTYPE))
    speed_profile(np.zeros(2), 1.0, CarParameters(), 1.0)
    _observe(states, seen)
    actions = np.zeros((0, NUM_ACTIONS), np.float32)
    _decide(seen, np.zeros((0, 2)), roads, np.zeros((0, 3)), np.zeros(4), np.zeros(1, _TRAITS_DTYPE), actions)

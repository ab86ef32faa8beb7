"""Cars of the simulator that drive segments for `gradient_driver`: what they did, as its learner needs it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from differentiable_car import Roads
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet, make_engine
from hotlap.envs.settings import MAX_COUNT, EpisodeRules, RacerSettings, RewardRules
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.sim.rays import NUM_RAYS
from hotlap.sim.world import OBS_OFFSET

STUCK_MPS = 1.0
MAX_HARD, MIN_HARD = 4000, 100  # starts that are kept, and from how many on they are used


@dataclass(frozen=True)
class Segment:
    """What cars did in the simulator: where they began, what they saw of walls, and which touched one."""

    states: NDArray[np.void]
    walls: Tensor  # (decisions + 1, cars, NUM_RAYS + 1): rays, and the distance from the centreline as observed
    noise: Tensor  # (decisions, cars, axes)
    has_touched: Tensor  # (decisions, cars)


class HardStarts:
    """States from before cars left the road or touched a wall, which come again as starts."""

    def __init__(self) -> None:
        self._states: list[NDArray[np.void]] = []

    def __len__(self) -> int:
        return sum(map(len, self._states))

    def remember(self, states: NDArray[np.void]) -> None:
        """Keep these states; the oldest ones go."""
        self._states = [np.concatenate([*self._states, states])[-MAX_HARD:]]

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.void]:
        """Some of the states."""
        drawn: NDArray[np.void] = self._states[0][rng.integers(len(self), size=count)]
        return drawn


class Group:
    """Cars on some roads, in the simulator and as tensors."""

    def __init__(self, driver: PackedDriver, tracks: Sequence[str], num_cars: int, spun_fraction: float) -> None:
        endless = EpisodeRules(
            max_ticks=MAX_COUNT, stillness_timeout_ticks=MAX_COUNT, start="random", spun_fraction=spun_fraction
        )
        settings = RacerSettings(RewardRules(progress_length_m=0.0, progress_time_s=1.0), endless)
        self._driver, self._num_stuck, self._num_segments = driver, *np.zeros((2, num_cars), np.int64)
        self.fleet = Fleet(tracks, settings, num_cars, make_engine(num_cars), driver.observation)
        self._memory = make_memory(driver.packed, num_cars)
        self._all_roads = Roads.of(self.fleet.scenario.ribbons, torch.device("cpu"))
        self._set_roads()
        self._hard, self._went_wrong = HardStarts(), np.zeros(num_cars, np.bool_)
        self._begun, self._begun_before = self.fleet.states.copy(), self.fleet.states.copy()

    def _set_roads(self) -> None:
        """Find the road of every car: a hard start may be on another."""
        self.roads = self._all_roads.on(torch.as_tensor(self.fleet.states["track"].astype(np.int64)))
        self.length_m = self.roads.num_nodes * self.roads.step_m

    def begin(self, rng: np.random.Generator) -> None:
        """Put all cars to random starts."""
        self.fleet.seed(rng.integers(1, 1 << 40, self.fleet.num_cars).astype(np.uint64))
        self.fleet.reset()

    def drive(self, numbers: NDArray[np.float32], noise: Tensor) -> Segment:
        """Drive one segment with these numbers of the policy and this noise."""
        fleet, packed = self.fleet, self._driver.packed._replace(numbers=numbers)
        self._set_roads()
        self._begun_before, self._begun = self._begun, fleet.states.copy()
        walls, touched, left = [self._walls()], [], []
        for noises in noise.numpy():
            decide_cars(packed, fleet.batch.obs, self._memory)
            actions = with_noise(self._memory.actions, noises)
            fleet.step(actions, autoreset=False, repeat=self._driver.action_repeat)
            walls.append(self._walls())
            touched.append(fleet.batch.infos["wall"] < 0.0)
            left.append(fleet.batch.infos["offTrack"] < 0.0)
        self._went_wrong = np.any([*touched, *left], axis=0)
        return Segment(self._begun, torch.as_tensor(np.stack(walls)), noise, torch.as_tensor(np.stack(touched)))

    def renew(self, fraction: float, hard_fraction: float, rng: np.random.Generator) -> None:
        """New starts for a fraction of the cars and for those that stand, hard ones for another fraction."""
        fleet, states = self.fleet, self.fleet.states
        self._num_segments += 1
        self._num_stuck = np.where(states["forward_mps"] < STUCK_MPS, self._num_stuck + 1, 0)
        # At the beginning of a segment it may have been too late, so the one before it counts.
        self._hard.remember(self._begun_before[self._went_wrong & (self._num_segments > 1)])
        chosen = (rng.uniform(size=len(states)) < fraction) | (self._num_stuck > 1)
        fleet.next_episode()
        fleet.reset(mask=chosen)
        if len(self._hard) >= MIN_HARD:
            hard = rng.uniform(size=len(states)) < hard_fraction
            drawn, state, chosen = self._hard.draw(int(hard.sum()), rng), fleet.get_state(), chosen | hard
            for name in set(drawn.dtype.names or ()) - {"seed", "episode"}:
                state[name][hard] = drawn[name]
            fleet.set_state(state)
        self._num_stuck[chosen] = 0
        self._num_segments[chosen] = 0

    def _walls(self) -> NDArray[np.float32]:
        obs = self.fleet.batch.obs
        return np.concatenate([obs[:, :NUM_RAYS], obs[:, OBS_OFFSET : OBS_OFFSET + 1]], 1)


def with_noise(actions: NDArray[np.float32], noise: NDArray[np.float32]) -> NDArray[np.float32]:
    """Actions with noise of (steering, throttle, brake), or of (steering, pedal axis): throttle less brake."""
    if noise.shape[1] == actions.shape[1]:
        moved: NDArray[np.float32] = np.clip(actions + noise, [-1.0, 0.0, 0.0], 1.0).astype(np.float32)
        return moved
    axes = np.stack([actions[:, 0], actions[:, 1] - actions[:, 2]], 1)
    steer, pedals = np.clip(axes + noise, -1.0, 1.0).astype(np.float32).T
    return np.stack([steer, np.maximum(pedals, 0.0), np.maximum(-pedals, 0.0)], 1)

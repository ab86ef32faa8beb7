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


@dataclass(frozen=True)
class Segment:
    """What cars did in the simulator: where they began, what they saw of walls, and which touched one."""

    states: NDArray[np.void]
    walls: Tensor  # (decisions + 1, cars, NUM_RAYS + 1): rays, and the distance from the centreline as observed
    noise: Tensor  # (decisions, cars, axes)
    has_touched: Tensor  # (decisions, cars)


class Group:
    """Cars on some roads, in the simulator and as tensors."""

    def __init__(self, driver: PackedDriver, tracks: Sequence[str], num_cars: int, spun_fraction: float) -> None:
        endless = EpisodeRules(
            max_ticks=MAX_COUNT, stillness_timeout_ticks=MAX_COUNT, start="random", spun_fraction=spun_fraction
        )
        settings = RacerSettings(RewardRules(progress_length_m=0.0, progress_time_s=1.0), endless)
        self._driver, self._num_stuck = driver, np.zeros(num_cars, np.int64)
        self.fleet = Fleet(tracks, settings, num_cars, make_engine(num_cars), driver.observation)
        self._memory = make_memory(driver.packed, num_cars)
        roads = Roads.of(self.fleet.scenario.ribbons, torch.device("cpu"))
        self.roads = roads.on(torch.as_tensor(self.fleet.states["track"].astype(np.int64)))
        self.length_m = self.roads.num_nodes * self.roads.step_m

    def begin(self, rng: np.random.Generator) -> None:
        """Put all cars to random starts."""
        self.fleet.seed(rng.integers(1, 1 << 40, self.fleet.num_cars).astype(np.uint64))
        self.fleet.reset()

    def drive(self, numbers: NDArray[np.float32], noise: Tensor) -> Segment:
        """Drive one segment with these numbers of the policy and this noise."""
        fleet, packed = self.fleet, self._driver.packed._replace(numbers=numbers)
        states, walls, touched = fleet.states.copy(), [self._walls()], []
        for noises in noise.numpy():
            decide_cars(packed, fleet.batch.obs, self._memory)
            actions = with_noise(self._memory.actions, noises)
            fleet.step(actions, autoreset=False, repeat=self._driver.action_repeat)
            walls.append(self._walls())
            touched.append(fleet.batch.infos["wall"] < 0.0)
        return Segment(states, torch.as_tensor(np.stack(walls)), noise, torch.as_tensor(np.stack(touched)))

    def renew(self, fraction: float, rng: np.random.Generator) -> None:
        """New starts for a fraction of the cars and for those that stand."""
        states = self.fleet.states
        self._num_stuck = np.where(states["forward_mps"] < STUCK_MPS, self._num_stuck + 1, 0)
        chosen = (rng.uniform(size=len(states)) < fraction) | (self._num_stuck > 1)
        self._num_stuck[chosen] = 0
        self.fleet.next_episode()
        self.fleet.reset(mask=chosen)

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

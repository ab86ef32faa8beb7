"""`PackedDriver`: drives a fleet with a policy that is packed for compiled code. Needs no learning library."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.spaces import ObservationName
from hotlap.sim.policy_forward import NUM_ACTIONS, PackedPolicy, decide_cars, make_memory, pack_policy
from hotlap.sim.world import NUM_OBSERVATIONS


class PackedDriver:
    """Drives with the simulator's own kernels: the same lap, to the bit, on every machine, alone or among others."""

    def __init__(self, packed: PackedPolicy, action_repeat: int, name: str) -> None:
        self.name = name
        self.packed = packed
        self.action_repeat = action_repeat
        uses_road = packed.shape["num_observations"][0] > NUM_OBSERVATIONS
        self.observation: ObservationName = "road" if uses_road else "rays"

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Clear the memory; a policy is deterministic, so the seed is not used."""
        self._memory = make_memory(self.packed, fleet.num_cars)
        self._tick = 0

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """A new action every `action_repeat` ticks, held in between."""
        if self._tick % self.action_repeat == 0:
            decide_cars(self.packed, np.ascontiguousarray(obs), self._memory)
        self._tick += 1
        return self._memory.actions.copy()


def warm_up() -> None:
    """Compile the policy's kernel, or load it from the disk cache, before the first decision."""
    layer = np.zeros((NUM_ACTIONS, NUM_OBSERVATIONS), np.float32), np.zeros(NUM_ACTIONS, np.float32)
    bounds = np.zeros(NUM_ACTIONS, np.float32), np.ones(NUM_ACTIONS, np.float32)
    policy = pack_policy([layer], activation="tanh", bounds=bounds)
    decide_cars(policy, np.zeros((0, NUM_OBSERVATIONS), np.float32), make_memory(policy, 0))

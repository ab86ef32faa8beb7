"""`PackedDriver`: drives a fleet with a trained model, packed for compiled code. Needs no learning library."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.spaces import ObservationName, observation_with
from hotlap.models.actor import pack_model
from hotlap.models.model_file import ModelFile
from hotlap.sim.policy_forward import PackedPolicy, decide_cars, make_memory, pack_policy
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS


class PackedDriver:
    """Drives with the action repeat and observation stack that the model was trained with.

    The simulator's own kernels decide: the same lap, to the bit, on every machine, alone or among others.
    """

    def __init__(self, packed: PackedPolicy, action_repeat: int, name: str) -> None:
        self.name = name
        self.packed = packed
        self.action_repeat = action_repeat
        self.observation: ObservationName = observation_with(int(packed.shape["num_observations"][0]))

    @classmethod
    def from_model(cls, model: ModelFile, name: str | None = None) -> "PackedDriver":
        """The driver of a racer's model, named after its file unless it has another name."""
        return cls(pack_model(model), model.card.action_repeat, model.path.stem if name is None else name)

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

"""`LearnedDriver`: drives a fleet with a trained model of the racer."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.spaces import action_space
from hotlap.errors import DriverError
from hotlap.models.model_file import ModelCard, ModelFile
from hotlap.models.policy import LearnedPolicy
from hotlap.sim.policy_forward import decide_cars, make_memory

Obs = NDArray[np.float32]


class LearnedDriver:
    """Drives a fleet with a trained model, with the action repeat and observation stack it was trained with.

    The simulator's own kernels compute its actions, so a model drives the same lap, to the bit, on every machine, alone
    or among other cars.
    """

    def __init__(self, policy: LearnedPolicy, card: ModelCard, name: str) -> None:
        self.name = name
        self.packed = policy.pack(card)
        self.action_repeat = card.action_repeat

    @classmethod
    def from_file(cls, model: ModelFile) -> "LearnedDriver":
        """The driver of a model file."""
        if not model.card.is_racer:
            raise DriverError(
                f"{model.path}: is a model of {model.card.environment}; it cannot drive. Use a racer model."
            )
        policy = LearnedPolicy.from_file(
            model, stacked_observation_space(model.card.stack, model.card.lap_fourier), action_space()
        )
        return cls(policy, model.card, model.path.stem)

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Clear the memory; a learned driver is deterministic, so the seed is not used."""
        self._memory = make_memory(self.packed, fleet.num_cars)
        self._tick = 0

    def act(self, obs: Obs) -> NDArray[np.float32]:
        """A new action every `action_repeat` ticks, held in between."""
        if self._tick % self.action_repeat == 0:
            decide_cars(self.packed, np.ascontiguousarray(obs), self._memory)
        self._tick += 1
        return self._memory.actions.copy()

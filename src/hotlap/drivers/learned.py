"""`LearnedDriver`: drives a fleet with a trained model of the racer."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.observations import ObservationStack, stacked_observation_space
from hotlap.envs.spaces import NUM_ACTIONS, action_space
from hotlap.errors import DriverError
from hotlap.models.model_file import ModelCard, ModelFile
from hotlap.models.policy import LearnedPolicy

Obs = NDArray[np.float32]


class LearnedDriver:
    """Drives a fleet with a trained model, with the action repeat and observation stack it was trained with."""

    def __init__(self, policy: LearnedPolicy, card: ModelCard, name: str) -> None:
        self.name = name
        self._policy = policy
        self._repeat, self._depth, self._lap_fourier = card.action_repeat, card.stack, card.lap_fourier

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
        """Clear the observation stack; a learned driver is deterministic, so the seed is not used."""
        obs = fleet.batch.obs
        self._stack = ObservationStack(fleet.num_cars, self._depth, obs.shape[1], self._lap_fourier)
        self._actions = np.zeros((fleet.num_cars, NUM_ACTIONS), np.float32)
        self._tick = 0

    def act(self, obs: Obs) -> NDArray[np.float32]:
        """A new action every `action_repeat` ticks, held in between."""
        if self._tick % self._repeat == 0:
            if self._tick == 0:
                self._stack.begin(obs)
            else:
                self._stack.push(obs)
            self._actions = self._policy.act(self._stack.value)
        self._tick += 1
        return self._actions

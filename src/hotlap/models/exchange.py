"""What all exchange of models with other programs needs: the spaces a model was made for, and files written whole."""

from typing import Any

from gymnasium import spaces

from hotlap.envs.gym_registry import make_env
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.spaces import action_space
from hotlap.models.model_file import ModelCard


def spaces_of(card: ModelCard) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """What the policy of a model sees, stack and waves included, and what it may do.

    The card has them as text only, so an environment that is not ours is made for a moment.
    """
    if card.is_racer:
        return stacked_observation_space(card.stack, card.lap_fourier), action_space()
    env = make_env(card.environment, card.env_args)
    try:
        return env.observation_space, env.action_space
    finally:
        env.close()

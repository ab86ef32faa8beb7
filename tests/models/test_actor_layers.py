"""The layers of an actor are found in the order in which they are applied."""

import numpy as np
import pytest

from hotlap.models.actor_layers import ACTORS, actor_layers
from hotlap.models.algorithms import ALGORITHMS


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_layers_come_in_order_whatever_their_numbers(algorithm):
    names = ACTORS[algorithm]
    layers = [f"{names.hidden}.{number}" for number in (0, 2, 10)] + [names.output]
    weights = {
        f"{layer}.{part}": np.array([place]) for place, layer in enumerate(layers) for part in ("weight", "bias")
    }
    weights |= {"critic.qf0.0.weight": np.array([9]), f"x{names.hidden}.1.weight": np.array([9])}
    shuffled = dict(sorted(weights.items(), reverse=True))
    assert [(int(w[0]), int(b[0])) for w, b in actor_layers(shuffled, algorithm)] == [(k, k) for k in range(4)]


@pytest.mark.parametrize("algorithm", ACTORS)
def test_the_names_are_those_of_the_library(algorithm):
    from gymnasium.spaces import Box

    box = Box(-1.0, 1.0, (3,), np.float32)
    policy = ALGORITHMS[algorithm].policies["MlpPolicy"](box, box, lambda _: 1e-3)
    weights = {name: array.numpy() for name, array in policy.state_dict().items()}
    shapes = [weight.shape for weight, _ in actor_layers(weights, algorithm)]
    widths = ACTORS[algorithm].default_widths
    assert shapes == list(zip((*widths, 3), (3, *widths), strict=True))

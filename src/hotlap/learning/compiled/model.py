"""The compiled PPO's weights as a model file, with the names and the card that every command knows."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.registration import RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUTS, action_space
from hotlap.learning.compiled.layout import (
    BIAS_1,
    BIAS_2,
    FIRST_VALUE,
    LOG_STD,
    NUM_AXES,
    NUM_SEEN,
    SEEN_COUNT,
    SEEN_SQUARES,
    SEEN_SUMS,
    SIZE,
    WEIGHT_2,
    WEIGHT_3,
)
from hotlap.learning.compiled.learner import CompiledPPO, CompiledRecipe
from hotlap.models.model_file import PEDAL_AXIS, Arrays, ModelCard, ModelFile, PolicySettings
from hotlap.models.space_data import space_data
from hotlap.sim.version import PHYSICS_VERSION

# Where the numbers of each array of the model lie in the weights: first number, rows, columns of a row that are kept.
Place = tuple[int, int, int]
TRAINED_ON = "compiled PPO"


def _network(name: str, head: str, first: int, num_outputs: int) -> dict[str, Place]:
    """The places of a network's weights (outputs, inputs) and biases (outputs,), whose rows have no columns."""
    return {
        f"mlp_extractor.{name}.0.weight": (first, SIZE, NUM_SEEN),
        f"mlp_extractor.{name}.0.bias": (first + BIAS_1, SIZE, 0),
        f"mlp_extractor.{name}.2.weight": (first + WEIGHT_2, SIZE, SIZE),
        f"mlp_extractor.{name}.2.bias": (first + BIAS_2, SIZE, 0),
        f"{head}.weight": (first + WEIGHT_3, num_outputs, SIZE),
        f"{head}.bias": (first + WEIGHT_3 + num_outputs * SIZE, num_outputs, 0),
    }


PLACES: dict[str, Place] = {
    **_network("policy_net", "mlp_extractor.policy_net.4", 0, NUM_AXES),
    **_network("value_net", "value_net", FIRST_VALUE, 1),
}


def fixed_arrays() -> dict[str, NDArray[np.float32]]:
    """The layer that makes steering, throttle and brake of the two axes; it is not trained."""
    return {
        "action_net.weight": np.ascontiguousarray(np.array(PEDAL_AXIS, np.float32).T),
        "action_net.bias": np.zeros(len(PEDAL_AXIS[0]), np.float32),
    }


def model_weights(weights: NDArray[np.float32]) -> Arrays:
    """The weights by stable-baselines3's names."""
    found: Arrays = dict(fixed_arrays())
    for name, (first, num_rows, num_columns) in PLACES.items():
        rows = weights[first : first + num_rows * (SIZE if num_columns else 1)]
        found[name] = rows.reshape(num_rows, SIZE)[:, :num_columns].copy() if num_columns else rows.copy()
    # The brake's noise is the throttle's.
    found["log_std"] = weights[[LOG_STD, LOG_STD + 1, LOG_STD + 1]]
    return found


def model_normalizer(statistics: NDArray[np.float64]) -> Arrays:
    """Mean and variance of the observations."""
    count = statistics[SEEN_COUNT]
    mean = statistics[SEEN_SUMS : SEEN_SUMS + NUM_SEEN] / count
    variance = np.maximum(statistics[SEEN_SQUARES : SEEN_SQUARES + NUM_SEEN] / count - mean * mean, 0.0)
    return {"obs_mean": mean, "obs_var": variance, "obs_count": np.asarray(count)}


def make_card(
    recipe: CompiledRecipe, *, seed: int = 0, step: int = 0, track: str | None = None, digest: str | None = None
) -> ModelCard:
    """The card of a model after `step` decisions on a track."""
    text = json.dumps(asdict(recipe), sort_keys=True)
    return ModelCard(
        algorithm="ppo",
        environment=RACER_ID,
        seed=seed,
        step=step,
        config_digest=hashlib.sha256(text.encode()).hexdigest(),
        weights_digest="",
        policy=PolicySettings("MlpPolicy", (SIZE, SIZE), "tanh", recipe.log_std_init, action_head="pedal_axis"),
        observation_space=space_data(stacked_observation_space(1, 0, "road")),
        action_space=space_data(action_space()),
        physics=PHYSICS_VERSION,
        observation_layout=OBSERVATION_LAYOUTS["road"],
        track=track,
        track_digest=digest,
        action_repeat=recipe.action_repeat,
        clip_obs=recipe.clip_obs,
        trained_on=TRAINED_ON,
    )


def make_model(path: Path, learner: CompiledPPO, track: str | None = None, digest: str | None = None) -> ModelFile:
    """The model that a learner has just now."""
    card = make_card(learner.recipe, seed=learner.seed, step=learner.num_decisions, track=track, digest=digest)
    return ModelFile(path, card, model_weights(learner.weights), model_normalizer(learner.arrays.statistics))

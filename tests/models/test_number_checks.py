"""Numbers with which a policy gives no action are refused, and those just within pass."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box

from hotlap.errors import ModelError
from hotlap.models.number_checks import (
    LARGEST,
    refuse_bad_statistics,
    refuse_not_finite,
    refuse_other_types,
    refuse_overflow,
)

PATH = Path("model.zip")
STATISTICS = {"obs_mean": np.zeros(2), "obs_var": np.ones(2), "obs_count": np.array(5.0)}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value):
    refuse_not_finite(PATH, {"w": np.zeros(2)})
    with pytest.raises(ModelError, match=r"model\.zip: 'w' is not finite"):
        refuse_not_finite(PATH, {"w": np.array([0.0, value])})


def test_weights_are_float32_and_statistics_float64():
    refuse_other_types(PATH, {"w": np.zeros(2, np.float32)}, STATISTICS)
    with pytest.raises(ModelError, match="'w' is float64; it must be float32"):
        refuse_other_types(PATH, {"w": np.zeros(2)}, STATISTICS)
    with pytest.raises(ModelError, match="'obs_var' is int64; it must be float64"):
        refuse_other_types(PATH, {}, {"obs_var": np.zeros(2, np.int64)})


@pytest.mark.parametrize(("name", "value"), [("obs_var", -1e-9), ("obs_count", -1.0), ("obs_mean", 1e39)])
def test_a_normalizer_divides_by_roots_of_what_is_not_negative(name, value):
    refuse_bad_statistics(PATH, {**STATISTICS, "obs_mean": np.array([-3.0, LARGEST])})
    with pytest.raises(ModelError, match=f"'{name}' must be from"):
        refuse_bad_statistics(PATH, {**STATISTICS, name: np.array([value])})


def network(scale):
    """Two inputs, two hidden neurons and an action, all weights alike and no bias."""
    shapes = {"mlp_extractor.policy_net.0": (2, 2), "action_net": (1, 2)}
    weights = {f"{name}.weight": np.full(shape, scale, np.float32) for name, shape in shapes.items()}
    return weights | {f"{name}.bias": np.zeros(shape[0], np.float32) for name, shape in shapes.items()}


def check(scale, activation, clip_obs=None):
    space = Box(-1.0, 1.0, (2,), np.float32)
    refuse_overflow(
        PATH, network(scale), "ppo", activation=activation, observations=space, clip_obs=clip_obs, statistics=STATISTICS
    )


def test_sums_that_may_overflow_are_refused_and_a_bounded_activation_bounds_them():
    check(1e18, "relu")  # at most (2 * 1e18) ** 2 = 4e36
    check(1e38, "tanh")  # at most 2e38, then 2e38 again
    with pytest.raises(ModelError, match=r"its weights are too large: a layer may reach 4e\+40"):
        check(1e20, "relu")
    with pytest.raises(ModelError, match="too large"):
        check(2e38, "tanh")
    check(1e19, "relu", clip_obs=0.1)
    with pytest.raises(ModelError, match="too large"):
        check(1e19, "relu")


def test_weights_that_are_no_perceptron_are_left_to_who_builds_it():
    refuse_overflow(
        PATH, {}, "sac", activation=None, observations=Box(-1.0, 1.0, (2,), np.float32), clip_obs=None, statistics={}
    )

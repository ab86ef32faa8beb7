"""A model packed without a learning library is the policy that the library's network packs to."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.learned import LearnedDriver
from hotlap.errors import ModelError
from hotlap.models.actor import pack_model
from hotlap.models.actor_layers import ACTORS
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import PolicySettings, read_model
from hotlap.models.policy import activation_name
from hotlap.models.shipped_models import find_shipped


def test_it_gives_the_bits_of_the_learned_driver(any_racer):
    model = read_model(any_racer.path)
    for ours, theirs in zip(pack_model(model), LearnedDriver.from_file(model).packed, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", ["champion", "generalist"])
def test_so_do_the_models_that_come_with_the_package(name):
    model = read_model(find_shipped(name, "track-01"))
    assert model.card.policy.action_head == "pedal_axis"
    for ours, theirs in zip(pack_model(model), LearnedDriver.from_file(model).packed, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_the_default_activation_is_that_of_the_library(racer, algorithm):
    card = replace(read_model(racer.path).card, algorithm=algorithm, policy=PolicySettings())
    assert ACTORS[algorithm].default_activation == activation_name(card)


def test_a_model_that_does_not_fit_is_refused(racer):
    model = read_model(racer.path)
    layer = "action_net.weight"
    for weights in (
        {name: array for name, array in model.weights.items() if name != layer},
        {**model.weights, layer: model.weights[layer][:, :-1]},
        {**model.weights, layer: model.weights[layer].ravel()},
    ):
        with pytest.raises(ModelError, match=r"do not fit|must be"):
            pack_model(replace(model, weights=weights))
    with pytest.raises(ModelError, match="it cannot drive"):
        pack_model(replace(model, card=replace(model.card, environment="CartPole-v1")))
    with pytest.raises(ModelError, match="normalizer does not fit"):
        pack_model(replace(model, normalizer={**model.normalizer, "obs_mean": np.zeros(3)}))

"""A racer's features as arguments of stable-baselines3's policies, and back."""

import numpy as np
import pytest

from hotlap.errors import ConfigError
from hotlap.models.model_file import read_model
from hotlap.models.sb3_racer import ARGUMENTS, CLASS, card_fields, feature_arguments, find_features
from hotlap.models.shipped_models import find_shipped


@pytest.fixture(scope="module")
def champion():
    return read_model(find_shipped("champion", "track-01"))


def test_what_was_written_is_found_again(champion):
    found = find_features(feature_arguments(champion))
    assert found.clip_obs == champion.card.clip_obs
    for name, array in found.normalizer.items():
        np.testing.assert_array_equal(array, champion.normalizer[name])
    fields = card_fields(found.about)
    assert {name: getattr(champion.card, name) for name in fields} == fields
    assert found.about.action_head == champion.card.policy.action_head


def test_other_policies_have_no_such_features():
    assert find_features({}) is None
    assert find_features({CLASS: dict}) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda given: given.pop("about"), "are not those that an export writes"),
        (lambda given: given["about"].update(stack="two"), "stack"),
        (lambda given: given["about"].update(wheels=3), "wheels"),
        (lambda given: given["normalizer"].update(floor=1e-3), "its floor must be 1e-08, got 0.001"),
        (lambda given: given["normalizer"].update(mean=["x"]), "are not those that an export writes"),
    ],
)
def test_what_was_changed_is_refused(champion, change, words):
    arguments = feature_arguments(champion)
    arguments[ARGUMENTS] = {**arguments[ARGUMENTS], "about": dict(arguments[ARGUMENTS]["about"])}
    change(arguments[ARGUMENTS])
    with pytest.raises(ConfigError, match=words):
        find_features(arguments)

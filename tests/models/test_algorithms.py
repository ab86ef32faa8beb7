"""What is known of each algorithm is what stable-baselines3 has."""

import inspect

import pytest

from hotlap.models.actor_layers import ACTORS
from hotlap.models.algorithms import ALGORITHMS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_library_knows_the_same_policies_and_settings(name):
    algorithm = ALGORITHMS[name]
    assert algorithm.name == name
    assert algorithm.sb3_class.__name__ == name.upper()
    assert {
        kind: policy for kind, policy in algorithm.sb3_class.policy_aliases.items() if kind in algorithm.policies
    } == (dict(algorithm.policies))
    assert ("buffer_size" in inspect.signature(algorithm.sb3_class).parameters) == algorithm.is_off_policy


def test_every_algorithm_has_an_actor():
    assert set(ALGORITHMS) == set(ACTORS)

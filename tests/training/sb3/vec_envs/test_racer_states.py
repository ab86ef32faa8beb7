"""Saved states of our cars as a VecEnv: what continues bit-identically, and what is refused."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

from hotlap.errors import StateError
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from training.sb3.vec_envs.racer_cars import F, actions_at, drive, racer


def same_state(one: RacerVecEnv, other: RacerVecEnv) -> bool:
    a, b = one.get_state(), other.get_state()
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("stack", "repeat"), [(1, 1), (3, 2)])
def test_a_restored_environment_continues_bit_identically(stack, repeat):
    env = racer(5, stack=stack, action_repeat=repeat)
    drive(env, 0, 50)
    state = env.get_state()
    other = racer(5, 99, stack=stack, action_repeat=repeat)
    other.set_state(state)
    for column in state.values():  # set_state must have copied it
        column[...] = 0
    ends = 0
    for step in range(50, 200):
        ours, theirs = env.step(actions_at(step, 5)), other.step(actions_at(step, 5))
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_array_equal(a, b)
        for car in np.flatnonzero(ours[2]):
            ends += 1
            assert ours[3][car]["episode"]["r"] == theirs[3][car]["episode"]["r"]
            assert ours[3][car]["episode"]["l"] == theirs[3][car]["episode"]["l"]
    assert ends > 5
    np.testing.assert_array_equal(env.reset(), other.reset())
    assert same_state(env, other)


def test_a_state_is_a_flat_dict_of_arrays():
    for name, column in racer(2).get_state().items():
        assert isinstance(name, str)
        assert isinstance(column, np.ndarray)
        assert column.dtype.kind in "fiub"


@pytest.mark.parametrize("seeded", [False, True])
def test_pending_seeds_and_starts_are_saved(seeded):
    env, other = racer(3, None), racer(3)
    if seeded:
        env.seed(17)
        env.set_options([{"start": "line"}, {"start": "random"}, {}])
    other.set_state(env.get_state())
    assert same_state(env, other)
    if not seeded:
        with pytest.raises(gym.error.ResetNeeded):
            other.step(actions_at(0, 3))
        assert not np.array_equal(env.reset(), other.reset())
        return
    np.testing.assert_array_equal(env.reset(), other.reset())
    np.testing.assert_array_equal(env.reset(), other.reset())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("returns", np.zeros(3, F), "column 'returns' must be float64 of shape .3,., got float32"),
        ("returns", np.full(3, np.nan), "returns must be finite"),
        ("lengths", np.zeros(4, np.int64), "column 'lengths'"),
        ("lengths", np.full(3, -1), "lengths not negative"),
        ("is_reset", np.array(1), "column 'is_reset' must be bool"),
        ("seeds", np.zeros(3, np.int64), "column 'seeds'"),
        ("starts", np.full(3, 3, np.int8), "'starts' must be from -1 to 1"),
        ("starts", np.full(3, -2, np.int8), "'starts' must be from -1 to 1"),
        ("stack", np.zeros((3, 28), F), "the stack must be"),
        ("world.node", np.full(3, -1, np.int32), "column 'node' must not be negative"),
        ("boost", np.zeros(3), "columns are not those of this version"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(name, value, words):
    env, twin = racer(3), racer(3)
    other = racer(3, 5)
    drive(other, 0, 30)
    with pytest.raises(StateError, match=words):
        env.set_state({**other.get_state(), name: value})
    assert same_state(env, twin)


def test_a_state_of_other_cars_or_no_state_is_refused():
    env = racer(3)
    for state in (None, {}, racer(4).get_state(), racer(3, stack=2).get_state(), env.fleet.get_state()):
        with pytest.raises(StateError):
            env.set_state(state)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_is_independent(clone):
    env = racer(3, stack=2)
    drive(env, 0, 40)
    twin = clone(env)
    before = env.get_state()
    drive(twin, 40, 140)
    assert all(np.array_equal(column, env.get_state()[name]) for name, column in before.items())
    drive(env, 40, 140)
    np.testing.assert_array_equal(env.reset(), twin.reset())
    assert same_state(env, twin)

"""Stacked observations: oldest first, zeros before the first, as in stable-baselines3's VecFrameStack."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from hotlap.envs.observations import MAX_STACK, ObservationStack, stacked_observation_space
from hotlap.envs.spaces import observation_space
from hotlap.errors import ConfigError, StateError

F = np.float32
ALL_CARS = np.ones(2, np.bool_)


def rows(*values: float) -> np.ndarray:
    """One observation for each car: the value and ten times the value."""
    return np.array([[value, 10 * value] for value in values], F)


class Scripted(gym.Env):
    """Random observations; an episode has `length` steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (3,), F)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, seed: int, length: int) -> None:
        self.rng, self.length, self.tick = np.random.default_rng(seed), length, 0

    def look(self) -> np.ndarray:
        return self.rng.uniform(-1.0, 1.0, 3).astype(F)

    def reset(self, *, seed=None, options=None):
        self.tick = 0
        return self.look(), {}

    def step(self, action):
        self.tick += 1
        return self.look(), 0.0, self.tick >= self.length, False, {}


def test_the_newest_is_last_and_zeros_come_before_the_first():
    stack = ObservationStack(2, 3, 2)
    stack.begin(rows(1, 2))
    assert stack.value.tolist() == [[0, 0, 0, 0, 1, 10], [0, 0, 0, 0, 2, 20]]
    for value in (3, 4, 5):
        stack.push(rows(value, -value))
    assert stack.value.tolist() == [[3, 30, 4, 40, 5, 50], [-3, -30, -4, -40, -5, -50]]
    assert stack.value.dtype == F


def test_only_the_masked_cars_are_cleared():
    stack = ObservationStack(2, 2, 2)
    stack.begin(rows(1, 2))
    stack.push(rows(3, 4))
    stack.begin(rows(5, 6), mask=np.array([False, True]))
    assert stack.value.tolist() == [[1, 10, 3, 30], [0, 0, 6, 60]]
    stack.begin(rows(7, 8), mask=~ALL_CARS)
    assert stack.value.tolist() == [[1, 10, 3, 30], [0, 0, 6, 60]]
    stack.begin(rows(7, 8))
    assert stack.value.tolist() == [[0, 0, 7, 70], [0, 0, 8, 80]]


def test_a_stack_of_one_is_the_observation():
    stack = ObservationStack(2, 1, 2)
    stack.begin(rows(1, 2))
    stack.push(rows(3, 4))
    np.testing.assert_array_equal(stack.value, rows(3, 4))


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_it_equals_vec_frame_stack(depth):
    lengths = (3, 5, 50)
    theirs = VecFrameStack(DummyVecEnv([lambda c=c, n=n: Scripted(c, n) for c, n in enumerate(lengths)]), depth)
    plain = DummyVecEnv([lambda c=c, n=n: Scripted(c, n) for c, n in enumerate(lengths)])
    stack = ObservationStack(3, depth, 3)
    stack.begin(plain.reset())
    np.testing.assert_array_equal(stack.value, theirs.reset())
    ends = 0
    for _ in range(60):
        expected, _, dones, expected_infos = theirs.step([0, 0, 0])
        obs, _, _, infos = plain.step([0, 0, 0])
        last = obs.copy()
        for car in np.flatnonzero(dones):
            last[car] = infos[car]["terminal_observation"]
        stack.push(last)
        for car in np.flatnonzero(dones):
            np.testing.assert_array_equal(stack.value[car], expected_infos[car]["terminal_observation"])
            ends += 1
        stack.begin(obs, dones)
        np.testing.assert_array_equal(stack.value, expected)
    assert ends == 20 + 12 + 1


def test_returned_arrays_are_copies():
    stack = ObservationStack(2, 2, 2)
    obs = rows(1, 2)
    stack.begin(obs)
    first = stack.value
    obs[:] = 9.0
    first[0] = -1.0
    stack.push(rows(3, 4))
    assert stack.value.tolist() == [[1, 10, 3, 30], [2, 20, 4, 40]]
    assert first.tolist() == [[-1, -1, -1, -1], [0, 0, 2, 20]]


def test_a_restored_stack_continues_alike():
    one, other = ObservationStack(2, 3, 2), ObservationStack(2, 3, 2)
    one.begin(rows(1, 2))
    one.push(rows(3, 4))
    state = one.get_state()
    other.set_state(state)
    state["stack"][:] = 7.0
    for stack in (one, other):
        stack.push(rows(5, 6))
    np.testing.assert_array_equal(one.value, other.value)
    assert one.value[0].tolist() == [1, 10, 3, 30, 5, 50]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (None, "one array called 'stack'"),
        ({}, "one array called 'stack'"),
        ({"stack": np.zeros((2, 6), F), "more": np.zeros(2)}, "one array called 'stack'"),
        ({"stack": np.zeros((2, 4), F)}, r"float32 of shape \(2, 6\), got float32 of shape \(2, 4\)"),
        ({"stack": np.zeros((3, 6), F)}, r"shape \(2, 6\)"),
        ({"stack": np.zeros((2, 6))}, "got float64"),
        ({"stack": np.full((2, 6), np.nan, F)}, "finite"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(state, words):
    stack = ObservationStack(2, 3, 2)
    stack.begin(rows(1, 2))
    before = stack.value
    with pytest.raises(StateError, match=words):
        stack.set_state(state)
    np.testing.assert_array_equal(stack.value, before)


@pytest.mark.parametrize("depth", [0, -1, MAX_STACK + 1, 2.0, True, None, "2"])
def test_an_invalid_depth_is_refused(depth):
    with pytest.raises(ConfigError, match=r"stack must be (from 1 to 16 observations|a whole number), got"):
        ObservationStack(2, depth, 2)
    with pytest.raises(ConfigError, match="stack must be"):
        stacked_observation_space(depth)


def test_the_space_of_a_stack_repeats_the_single_one():
    single, space = observation_space(), stacked_observation_space(3)
    assert space.shape == (3 * 14,)
    for k in range(3):
        np.testing.assert_array_equal(space.low[14 * k : 14 * (k + 1)], single.low)
        np.testing.assert_array_equal(space.high[14 * k : 14 * (k + 1)], single.high)

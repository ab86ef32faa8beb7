"""Replaying an episode: what must be reproduced, and which errors are reported."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import StateError
from hotlap.training.sb3.vec_envs.replayable_env import INITIAL_CAPACITY, ReplayableEnv
from training.sb3.vec_envs.random_walk import Walk, as_bytes, pair, play


class HiddenNoise(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.hidden_rng = np.random.default_rng()

    def noise(self) -> float:
        return self.hidden_rng.normal()


class HiddenRewards(HiddenNoise):
    def step(self, action):
        obs, _, *rest = Walk.step(self, action)
        return np.zeros_like(obs), self.hidden_rng.normal(), *rest

    def look(self):
        return np.zeros(1)

    def noise(self) -> float:
        return 0.0


class HiddenDraws(gym.Env):
    """Each step draws as many numbers as there were resets; observations and rewards do not show it."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(2)
    resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        return 0, {}

    def step(self, action):
        self.np_random.random(self.resets)
        return 0, 0.0, False, False, {}


class Seedless(gym.Env):
    """Uses no randomness and does not pass its seed on, as many third-party environments do."""

    action_space = spaces.Discrete(3)
    observation_space = spaces.Box(-np.inf, np.inf, (), np.float32)

    def reset(self, *, seed=None, options=None):
        self.total = 0
        return np.float32(0), {}

    def step(self, action):
        self.total += {0: -1, 1: 0, 2: 1}[action]
        return np.float32(self.total), 0.0, False, False, {}


# --- there and back ---


@pytest.mark.parametrize("num_steps", [0, 1, INITIAL_CAPACITY, INITIAL_CAPACITY + 1, 3000])
@pytest.mark.parametrize("num_episodes", [1, 4])
def test_another_environment_continues_bit_identically(num_steps, num_episodes):
    env, other = pair(seed=7)
    for _ in range(1, num_episodes):
        play(env, 20)
        env.reset()
    steps = play(env, num_steps)
    rewards = other.set_state(env.get_state())
    assert rewards == [reward for _, reward in steps]
    assert as_bytes(play(other, 50)) == as_bytes(play(env, 50))
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])


@pytest.mark.parametrize("seed", [7, None])
def test_a_used_environment_can_be_restored_and_saved_again(seed):
    (env, third), (used, _) = pair(seed=seed), pair(seed=8)
    play(env, 10)
    play(used, 300)
    used.set_state(env.get_state())
    third.set_state(used.get_state())
    expected = as_bytes(play(env, 5))
    assert as_bytes(play(used, 5)) == as_bytes(play(third, 5)) == expected


def test_reset_options_are_recorded():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    options = {"place": 100.0}
    env.reset(seed=1, options=options)
    options["place"] = 0.0  # the caller's dict may change afterwards
    play(env, 3)
    other.set_state(env.get_state())
    assert other.unwrapped.place == env.unwrapped.place > 90.0


def test_before_the_first_reset_there_is_nothing_to_replay():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    assert not env.has_begun
    assert other.set_state(env.get_state()) == []
    assert not other.has_begun


@pytest.mark.parametrize("seeds", [[1], [1, None], [None, None]])
def test_an_environment_that_never_uses_its_generator_can_be_restored(seeds):
    env, other = ReplayableEnv(Seedless()), ReplayableEnv(Seedless())
    for seed in seeds:
        env.reset(seed=seed)
    for action in (2, 2, 0, 2):
        env.step(action)
    other.set_state(env.get_state())
    assert other.unwrapped.total == 2


# --- replays that fail ---


@pytest.mark.parametrize(
    ("kind", "words"),
    [(HiddenNoise, "another observation"), (HiddenRewards, "another reward")],
)
def test_randomness_outside_np_random_is_detected(kind, words):
    env, other = pair(kind)
    play(env, 5)
    with pytest.raises(StateError, match=words) as caught:
        other.set_state(env.get_state())
    assert "\n" not in str(caught.value)
    assert "np_random" in str(caught.value)


def test_a_generator_in_another_state_is_detected():
    env, other = pair(HiddenDraws)
    env.reset()
    env.step(1)
    with pytest.raises(StateError, match="another generator"):
        other.set_state(env.get_state())


def test_an_environment_made_with_other_arguments_is_detected():
    class Windy(Walk):
        def noise(self) -> float:
            return super().noise() + 1e-12

    env, other = pair(Walk, Windy)
    env.step(np.float32([0.0]))
    with pytest.raises(StateError, match="other arguments"):
        other.set_state(env.get_state())


def test_an_error_during_the_replay_is_reported():
    class Brittle(Walk):
        def step(self, action):
            raise RuntimeError("no\nmore")

    env, other = pair(Walk, Brittle)
    play(env, 2)
    with pytest.raises(StateError, match=r"step 0 of the replay.*RuntimeError: no more"):
        other.set_state(env.get_state())


@pytest.mark.parametrize("key", ["start", "env_state", "actions", "rewards", "observation", "fingerprint"])
def test_a_state_with_a_part_missing_is_refused(key):
    env, _ = pair()
    state = env.get_state()
    del state[key]
    with pytest.raises(StateError, match=f"'{key}' is missing"):
        env.set_state(state)


@pytest.mark.parametrize("actions", [np.zeros((3, 2), np.float32), np.zeros((3, 1)), np.zeros(3, np.float32)])
def test_a_state_with_actions_of_another_shape_or_dtype_is_refused(actions):
    env, _ = pair()
    with pytest.raises(StateError, match="actions must be float32"):
        env.set_state(env.get_state() | {"actions": actions})


# --- environments with a get_state of their own ---


class Counting(Walk):
    """Starts at the number of its resets, which its `get_state` returns, as our racer does with its episodes."""

    num_resets = 0

    def reset(self, *, seed=None, options=None):
        gym.Env.reset(self, seed=seed)
        self.num_resets = 0 if seed is not None else self.num_resets + 1
        self.place = float(self.num_resets)
        return self.look(), {}

    def get_state(self):
        return {"num_resets": np.array([self.num_resets])}

    def set_state(self, state):
        self.num_resets = int(state["num_resets"][0])


def test_the_state_of_the_environment_is_restored():
    (env, other), third = pair(Counting), ReplayableEnv(Counting())
    for _ in range(4):
        env.reset()
    play(env, 2)
    other.set_state(env.get_state())
    third.set_state(other.get_state())
    for one in (env, other, third):
        np.testing.assert_array_equal(one.reset()[0], [5.0])


def test_a_hidden_counter_is_detected():
    class HiddenCounter(Counting):
        def get_state(self, detail):
            return detail

    env, other = pair(HiddenCounter)
    env.reset()
    env.reset()
    with pytest.raises(StateError, match="another observation"):
        other.set_state(env.get_state())


@pytest.mark.parametrize("returned", [None, [1, 2], {"a": 1}, "state"])
def test_a_get_state_that_returns_no_dict_of_arrays_is_ignored(returned):
    class Other(Walk):
        def get_state(self):
            return returned

        def set_state(self, state):
            raise AssertionError

    env, other = pair(Other)
    env.reset()
    play(env, 2)
    other.set_state(env.get_state())
    assert as_bytes(play(other, 5)) == as_bytes(play(env, 5))

"""Recording and replaying an episode: what is recorded, what a replay must reproduce, and which errors it reports."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.training.sb3.vec_envs.replayable_env import INITIAL_CAPACITY, ReplayableEnv, plain_options


class Walk(gym.Env):
    """A random walk: start and noise are drawn from the generator; the reward is the position."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def __init__(self) -> None:
        self.seen = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = (options or {}).get("place", self.np_random.normal())
        return self.look(), {}

    def step(self, action):
        self.seen.append(action)
        self.place += float(action[0]) + self.noise()
        return self.look(), self.place, False, False, {}

    def noise(self) -> float:
        return self.np_random.normal()

    def look(self):
        return np.array([self.place])


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


def play(env: gym.Env, num_steps: int, seed: int = 1) -> list:
    rng = np.random.default_rng(seed)
    return [env.step(rng.uniform(-1, 1, 1).astype(np.float32))[:2] for _ in range(num_steps)]


def as_bytes(steps: list) -> list:
    return [(obs.tobytes(), reward) for obs, reward in steps]


# --- there and back ---


@pytest.mark.parametrize("num_steps", [0, 1, INITIAL_CAPACITY, INITIAL_CAPACITY + 1, 3000])
@pytest.mark.parametrize("num_episodes", [1, 4])
def test_another_environment_continues_bit_identically(num_steps, num_episodes):
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    env.reset(seed=7)
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
    env, used, third = (ReplayableEnv(Walk()) for _ in range(3))
    env.reset(seed=seed)
    play(env, 10)
    used.reset(seed=8)
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


def test_a_state_is_arrays_and_plain_json():
    env = ReplayableEnv(Walk())
    env.reset(seed=2**70)
    env.reset(options={"place": 1.5})
    play(env, 3)
    state = env.get_state()
    arrays = {name: state.pop(name) for name in ("actions", "rewards")}
    arrays |= state.pop("observation") | state.pop("env_state")
    assert {type(array) for array in arrays.values()} == {np.ndarray}
    assert json.loads(json.dumps(state)) == state


# --- the record ---


def test_every_action_is_recorded():
    env = ReplayableEnv(Walk())
    env.reset(seed=0)
    given = np.linspace(-1, 1, 5000, dtype=np.float32)[:, None]
    for action in given:
        env.step(action)
    np.testing.assert_array_equal(env.get_state()["actions"], given)
    assert len(env._actions) < 2 * 5000
    env.reset()
    assert env.get_state()["actions"].shape == (0, 1)


def test_a_saved_state_does_not_change_when_the_episode_continues():
    env = ReplayableEnv(Walk())
    env.reset(seed=0)
    play(env, 5)
    state = env.get_state()
    before = copy.deepcopy(state)
    play(env, 5, seed=9)
    env.reset()
    play(env, 5, seed=10)
    for name in ("actions", "rewards"):
        np.testing.assert_array_equal(state[name], before[name])


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_reused_observation_buffer_is_copied(has_keys):
    class ReusedBuffer(Walk):
        observation_space = spaces.Dict({"all": Walk.observation_space}) if has_keys else Walk.observation_space
        screen = np.zeros(1)

        def look(self):
            self.screen[:] = self.place
            return {"all": self.screen} if has_keys else self.screen

    env = ReplayableEnv(ReusedBuffer())
    env.reset(seed=0)
    play(env, 5)
    place, state = env.unwrapped.place, env.get_state()
    play(env, 5)
    assert state["observation"]["all"].tolist() == [place]


def test_a_failed_step_is_not_recorded():
    class Touchy(Walk):
        def step(self, action):
            if action[0] < 0:
                raise ValueError("ouch")
            return super().step(action)

    env = ReplayableEnv(Touchy())
    env.reset(seed=0)
    env.step(np.float32([0.5]))
    with pytest.raises(ValueError, match="ouch"):
        env.step(np.float32([-0.5]))
    env.step(np.float32([0.25]))
    np.testing.assert_array_equal(env.get_state()["actions"][:, 0], [0.5, 0.25])


def test_an_action_the_environment_overwrites_is_recorded_as_given():
    class Scribbler(Walk):
        def step(self, action):
            result = super().step(action)
            action[:] = 99.0
            return result

    env, other = ReplayableEnv(Scribbler()), ReplayableEnv(Scribbler())
    env.reset(seed=0)
    env.step(np.float32([0.5]))
    np.testing.assert_array_equal(env.get_state()["actions"], [[0.5]])
    state = env.get_state()
    other.set_state(state)
    np.testing.assert_array_equal(state["actions"], [[0.5]])


# --- actions ---


@pytest.mark.parametrize(
    ("space", "given", "seen"),
    [
        (spaces.Discrete(4), 3, np.int64(3)),
        (spaces.Discrete(4), np.array(3), np.int64(3)),
        (spaces.Discrete(4), np.uint8(3), np.int64(3)),
        (spaces.MultiBinary(3), np.float32([0, 1, 1]), np.int8([0, 1, 1])),
        (spaces.MultiDiscrete([3, 4]), [2, 3], np.int64([2, 3])),
        (spaces.Box(-1, 1, (2,), np.float32), [0.1, -0.1], np.float32([0.1, -0.1])),
        (spaces.Box(-1, 1, (2,), np.float64), np.float32([0.1, 7.0]), np.float32([0.1, 7.0]).astype(float)),
    ],
)
def test_actions_are_cast_to_the_action_space_live_and_in_a_replay(space, given, seen):
    class Open(Walk):
        action_space = space

        def step(self, action):
            self.seen.append(action)
            return self.look(), 0.0, False, False, {}

    env, other = ReplayableEnv(Open()), ReplayableEnv(Open())
    env.reset(seed=0)
    env.step(given)
    other.set_state(env.get_state())
    for one in (env, other):
        [action] = one.unwrapped.seen
        assert type(action) is type(seen)
        assert action.dtype == seen.dtype
        np.testing.assert_array_equal(action, seen)


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (spaces.Discrete(4), 1.5),
        (spaces.Discrete(4), np.nan),
        (spaces.Discrete(4), [1]),
        (spaces.Discrete(4), "left"),
        (spaces.Discrete(4), None),
        (spaces.MultiBinary(3), [0.0, 0.5, 1.0]),
        (spaces.Box(-1, 1, (2,), np.float32), [0.5]),
        (spaces.Box(-1, 1, (2,), np.float32), 0.5),
        (spaces.Box(-1, 1, (2,), np.float32), [1j, 0]),
    ],
)
def test_an_action_that_does_not_fit_is_refused_and_nothing_moves(space, action):
    class Open(Walk):
        action_space = space

    env = ReplayableEnv(Open())
    env.reset(seed=0)
    with pytest.raises(ActionError, match="action must be"):
        env.step(action)
    assert env.unwrapped.seen == []
    assert len(env.get_state()["actions"]) == 0


def test_action_spaces_without_arrays_are_refused():
    class Pair(Walk):
        action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])

    with pytest.raises(ConfigError, match="must be arrays"):
        ReplayableEnv(Pair())


# --- replays that fail ---


@pytest.mark.parametrize(
    ("kind", "words"),
    [(HiddenNoise, "another observation"), (HiddenRewards, "another reward")],
)
def test_randomness_outside_np_random_is_detected(kind, words):
    env, other = ReplayableEnv(kind()), ReplayableEnv(kind())
    env.reset(seed=3)
    play(env, 5)
    with pytest.raises(StateError, match=words) as caught:
        other.set_state(env.get_state())
    assert "\n" not in str(caught.value)
    assert "np_random" in str(caught.value)


def test_a_generator_in_another_state_is_detected():
    env, other = ReplayableEnv(HiddenDraws()), ReplayableEnv(HiddenDraws())
    env.reset(seed=3)
    env.reset()
    env.step(1)
    with pytest.raises(StateError, match="another generator"):
        other.set_state(env.get_state())


def test_an_environment_made_with_other_arguments_is_detected():
    class Windy(Walk):
        def noise(self) -> float:
            return super().noise() + 1e-12

    env, other = ReplayableEnv(Walk()), ReplayableEnv(Windy())
    env.reset(seed=3)
    env.step(np.float32([0.0]))
    with pytest.raises(StateError, match="other arguments"):
        other.set_state(env.get_state())


def test_an_error_during_the_replay_is_reported():
    class Brittle(Walk):
        def step(self, action):
            raise RuntimeError("no\nmore")

    env, other = ReplayableEnv(Walk()), ReplayableEnv(Brittle())
    env.reset(seed=3)
    play(env, 2)
    with pytest.raises(StateError, match=r"step 0 of the replay.*RuntimeError: no more"):
        other.set_state(env.get_state())


def test_options_that_are_not_plain_json_cannot_be_saved():
    env = ReplayableEnv(Walk())
    env.reset(seed=1, options={"place": 1.0, "map": np.zeros(3)})
    with pytest.raises(StateError, match="plain JSON"):
        env.get_state()
    for options in ({"a": (1, 2)}, {1: 2}, {"a": float("nan")}, {"a": {1}}):
        with pytest.raises(StateError, match="plain JSON"):
            plain_options(options)
    assert plain_options({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


@pytest.mark.parametrize("key", ["start", "env_state", "actions", "rewards", "observation", "fingerprint"])
def test_a_state_with_a_part_missing_is_refused(key):
    env = ReplayableEnv(Walk())
    env.reset(seed=1)
    state = env.get_state()
    del state[key]
    with pytest.raises(StateError, match=f"'{key}' is missing"):
        env.set_state(state)


@pytest.mark.parametrize("actions", [np.zeros((3, 2), np.float32), np.zeros((3, 1)), np.zeros(3, np.float32)])
def test_a_state_with_actions_of_another_shape_or_dtype_is_refused(actions):
    env = ReplayableEnv(Walk())
    env.reset(seed=1)
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
    env, other, third = (ReplayableEnv(Counting()) for _ in range(3))
    env.reset(seed=3)
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

    env, other = ReplayableEnv(HiddenCounter()), ReplayableEnv(HiddenCounter())
    env.reset(seed=3)
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

    env, other = ReplayableEnv(Other()), ReplayableEnv(Other())
    env.reset(seed=3)
    env.reset()
    play(env, 2)
    other.set_state(env.get_state())
    assert as_bytes(play(other, 5)) == as_bytes(play(env, 5))

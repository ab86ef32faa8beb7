"""An episode played again: what is recorded, what a replay must reproduce, and what it refuses to pretend."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.training.state.rng_state import decode_generator, encode_generator
from hotlap.training.vec_envs.replayable_env import FIRST_CAPACITY, ReplayableEnv, plain_options


class Walk(gym.Env):
    """A walk on the line: its start and its slips are drawn from the generator; the reward is where it stands."""

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
        self.place += float(action[0]) + self.slip()
        return self.look(), self.place, False, False, {}

    def slip(self) -> float:
        return self.np_random.normal()

    def look(self):
        return np.array([self.place])


class HiddenSlips(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.secret = np.random.default_rng()

    def slip(self) -> float:
        return self.secret.normal()


class HiddenRewards(HiddenSlips):
    def step(self, action):
        obs, _, *rest = Walk.step(self, action)
        return np.zeros_like(obs), self.secret.normal(), *rest

    def look(self):
        return np.zeros(1)

    def slip(self) -> float:
        return 0.0


class Lost(gym.Env):
    """Ten steps wide awake, then it draws from the generator as often as episodes were begun, and shows nothing."""

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
    """Knows no chance, and does not hand its seed on either, as many an environment in the wild."""

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


@pytest.mark.parametrize("num_steps", [0, 1, FIRST_CAPACITY, FIRST_CAPACITY + 1, 3000])
@pytest.mark.parametrize("num_episodes", [1, 4])
def test_another_environment_goes_on_where_this_one_stands(num_steps, num_episodes):
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


def test_a_used_environment_can_be_put_there_too():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    env.reset(seed=7)
    play(env, 10)
    other.reset(seed=8)
    play(other, 300)
    other.set_state(env.get_state())
    assert as_bytes(play(other, 5)) == as_bytes(play(env, 5))


def test_what_was_put_there_can_be_saved_again():
    env, other, third = (ReplayableEnv(Walk()) for _ in range(3))
    env.reset(seed=7)
    env.reset()
    play(env, 10)
    other.set_state(env.get_state())
    third.set_state(other.get_state())
    assert as_bytes(play(third, 5)) == as_bytes(play(env, 5))


def test_an_episode_that_nobody_seeded_can_be_rebuilt():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    env.reset()
    play(env, 10)
    other.set_state(env.get_state())
    assert as_bytes(play(other, 5)) == as_bytes(play(env, 5))


def test_options_of_the_reset_are_part_of_the_record():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    options = {"place": 100.0}
    env.reset(seed=1, options=options)
    options["place"] = 0.0  # the caller's dict may change afterwards
    play(env, 3)
    other.set_state(env.get_state())
    assert other.unwrapped.place == env.unwrapped.place > 90.0


def test_before_the_first_reset_there_is_nothing_to_play():
    env, other = ReplayableEnv(Walk()), ReplayableEnv(Walk())
    assert not env.has_begun
    assert other.set_state(env.get_state()) == []
    assert not other.has_begun


@pytest.mark.parametrize("seeds", [[1], [1, None], [None, None]])
def test_an_environment_that_never_uses_its_generator_can_be_rebuilt(seeds):
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
    arrays |= state.pop("observation") | state.pop("own")
    assert {type(array) for array in arrays.values()} == {np.ndarray}
    assert json.loads(json.dumps(state)) == state


# --- the record ---


def test_every_action_is_on_record_and_nothing_else_grows():
    env = ReplayableEnv(Walk())
    env.reset(seed=0)
    given = np.linspace(-1, 1, 5000, dtype=np.float32)[:, None]
    for action in given:
        env.step(action)
    np.testing.assert_array_equal(env.get_state()["actions"], given)
    assert len(env._actions) < 2 * 5000
    env.reset()
    assert env.get_state()["actions"].shape == (0, 1)


def test_a_state_does_not_change_when_the_episode_goes_on():
    env = ReplayableEnv(Walk())
    env.reset(seed=0)
    play(env, 5)
    state = env.get_state()
    before = {name: state[name].copy() for name in ("actions", "rewards")} | {"obs": state["observation"]["all"].copy()}
    play(env, 5, seed=9)
    env.reset()
    play(env, 5, seed=10)
    np.testing.assert_array_equal(state["actions"], before["actions"])
    np.testing.assert_array_equal(state["rewards"], before["rewards"])
    np.testing.assert_array_equal(state["observation"]["all"], before["obs"])


@pytest.mark.parametrize("has_keys", [False, True])
def test_an_observation_that_is_written_over_stays_as_it_was_saved(has_keys):
    class Thrifty(Walk):
        observation_space = spaces.Dict({"all": Walk.observation_space}) if has_keys else Walk.observation_space
        screen = np.zeros(1)

        def look(self):
            self.screen[:] = self.place
            return {"all": self.screen} if has_keys else self.screen

    env = ReplayableEnv(Thrifty())
    env.reset(seed=0)
    play(env, 5)
    place, state = env.unwrapped.place, env.get_state()
    play(env, 5)
    assert state["observation"]["all"].tolist() == [place]


def test_a_step_that_failed_is_not_on_record():
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


def test_what_an_environment_does_to_its_argument_is_not_on_record():
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
def test_the_environment_sees_actions_as_its_space_has_them_live_and_in_a_replay(space, given, seen):
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
def test_an_action_of_another_kind_is_refused_and_nothing_moves(space, action):
    class Open(Walk):
        action_space = space

    env = ReplayableEnv(Open())
    env.reset(seed=0)
    with pytest.raises(ActionError, match="action must be"):
        env.step(action)
    assert env.unwrapped.seen == []
    assert len(env.get_state()["actions"]) == 0


def test_actions_that_are_no_arrays_cannot_be_recorded():
    class Pair(Walk):
        action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])

    with pytest.raises(ConfigError, match="must be arrays"):
        ReplayableEnv(Pair())


# --- what cannot be rebuilt ---


@pytest.mark.parametrize(
    ("kind", "words"),
    [(HiddenSlips, "another observation"), (HiddenRewards, "another reward")],
)
def test_chance_hidden_from_the_generator_is_noticed(kind, words):
    env, other = ReplayableEnv(kind()), ReplayableEnv(kind())
    env.reset(seed=3)
    play(env, 5)
    with pytest.raises(StateError, match=words) as caught:
        other.set_state(env.get_state())
    assert "\n" not in str(caught.value)
    assert "np_random" in str(caught.value)


def test_a_generator_that_comes_out_elsewhere_is_noticed():
    env, other = ReplayableEnv(Lost()), ReplayableEnv(Lost())
    env.reset(seed=3)
    env.reset()
    env.step(1)
    with pytest.raises(StateError, match="another generator"):
        other.set_state(env.get_state())


def test_an_environment_made_with_other_arguments_is_noticed():
    class Windy(Walk):
        def slip(self) -> float:
            return super().slip() + 1e-12

    env, other = ReplayableEnv(Walk()), ReplayableEnv(Windy())
    env.reset(seed=3)
    env.step(np.float32([0.0]))
    with pytest.raises(StateError, match="other arguments"):
        other.set_state(env.get_state())


def test_an_environment_that_fails_in_the_replay_is_noticed():
    class Brittle(Walk):
        def step(self, action):
            raise RuntimeError("no\nmore")

    env, other = ReplayableEnv(Walk()), ReplayableEnv(Brittle())
    env.reset(seed=3)
    play(env, 2)
    with pytest.raises(StateError, match=r"step 0 of its episode.*RuntimeError: no more"):
        other.set_state(env.get_state())


def test_options_that_no_file_holds_are_refused_when_saving():
    env = ReplayableEnv(Walk())
    env.reset(seed=1, options={"place": 1.0, "map": np.zeros(3)})
    with pytest.raises(StateError, match="plain JSON"):
        env.get_state()
    for options in ({"a": (1, 2)}, {1: 2}, {"a": float("nan")}, {"a": {1}}):
        with pytest.raises(StateError, match="plain JSON"):
            plain_options(options)
    assert plain_options({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


@pytest.mark.parametrize("key", ["origin", "own", "actions", "rewards", "observation", "fingerprint"])
def test_a_state_with_a_part_missing_is_refused(key):
    env = ReplayableEnv(Walk())
    env.reset(seed=1)
    state = env.get_state()
    del state[key]
    with pytest.raises(StateError, match=f"'{key}' is missing"):
        env.set_state(state)


@pytest.mark.parametrize("actions", [np.zeros((3, 2), np.float32), np.zeros((3, 1)), np.zeros(3, np.float32)])
def test_a_state_with_actions_of_another_kind_is_refused(actions):
    env = ReplayableEnv(Walk())
    env.reset(seed=1)
    with pytest.raises(StateError, match="actions must be float32"):
        env.set_state(env.get_state() | {"actions": actions})


# --- environments that can tell their own state ---


class Diary(Walk):
    """Draws its start from a counter of its own, as our racer does, and can tell it."""

    pages = 0

    def reset(self, *, seed=None, options=None):
        gym.Env.reset(self, seed=seed)
        self.pages = 0 if seed is not None else self.pages + 1
        self.place = float(self.pages)
        return self.look(), {}

    def get_state(self):
        return {"pages": np.array([self.pages])}

    def set_state(self, state):
        self.pages = int(state["pages"][0])


def test_a_counter_that_an_environment_tells_of_is_put_back():
    env, other, third = (ReplayableEnv(Diary()) for _ in range(3))
    env.reset(seed=3)
    for _ in range(4):
        env.reset()
    play(env, 2)
    other.set_state(env.get_state())
    third.set_state(other.get_state())
    for one in (env, other, third):
        np.testing.assert_array_equal(one.reset()[0], [5.0])


def test_a_counter_it_does_not_tell_of_is_noticed():
    class Secretive(Diary):
        def get_state(self, detail):
            return detail

    env, other = ReplayableEnv(Secretive()), ReplayableEnv(Secretive())
    env.reset(seed=3)
    env.reset()
    env.reset()
    with pytest.raises(StateError, match="another observation"):
        other.set_state(env.get_state())


@pytest.mark.parametrize("told", [None, [1, 2], {"a": 1}, "state"])
def test_a_state_of_its_own_that_is_no_arrays_is_left_alone(told):
    class Other(Walk):
        def get_state(self):
            return told

        def set_state(self, state):
            raise AssertionError

    env, other = ReplayableEnv(Other()), ReplayableEnv(Other())
    env.reset(seed=3)
    env.reset()
    play(env, 2)
    other.set_state(env.get_state())
    assert as_bytes(play(other, 5)) == as_bytes(play(env, 5))


# --- generators ---


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_a_generator_of_any_kind_survives_json(kind):
    generator, other = np.random.Generator(kind(1)), np.random.Generator(kind(2))
    generator.random(7)
    generator.integers(0, 2**16, dtype=np.uint16)  # leaves half a word behind
    decode_generator(json.loads(json.dumps(encode_generator(generator))), other)
    np.testing.assert_array_equal(generator.integers(0, 99, 100, np.uint16), other.integers(0, 99, 100, np.uint16))
    np.testing.assert_array_equal(generator.normal(size=100), other.normal(size=100))


def test_no_number_of_a_generator_is_too_large_for_a_json_reader():
    state = encode_generator(np.random.default_rng(0))
    assert state["state"]["state"] == str(np.random.default_rng(0).bit_generator.state["state"]["state"])
    assert encode_generator(None) is None


@pytest.mark.parametrize(
    "state",
    [
        None, 7, [], {}, "PCG64", {"bit_generator": "MT19937"}, {"bit_generator": "PCG64", "state": {}},
        {"bit_generator": "PCG64", "state": {"state": "1", "inc": []}, "has_uint32": "0", "uinteger": "0"},
    ],
)  # fmt: skip
def test_what_is_no_generators_state_is_refused(state):
    with pytest.raises(StateError, match="random generator"):
        decode_generator(state, np.random.default_rng(0))

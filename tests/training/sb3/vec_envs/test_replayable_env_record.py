"""What `ReplayableEnv` records: every action as the environment got it, and copies of all the rest."""

import copy
import json

import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.training.sb3.vec_envs.replayable_env import ReplayableEnv, plain_options
from training.sb3.vec_envs.random_walk import Walk, pair, play


def test_a_state_is_arrays_and_plain_json():
    env, _ = pair(seed=2**70)
    env.reset(options={"place": 1.5})
    play(env, 3)
    state = env.get_state()
    arrays = {name: state.pop(name) for name in ("actions", "rewards")}
    arrays |= state.pop("observation") | state.pop("env_state")
    assert {type(array) for array in arrays.values()} == {np.ndarray}
    assert json.loads(json.dumps(state)) == state


def test_every_action_is_recorded():
    env, _ = pair()
    given = np.linspace(-1, 1, 5000, dtype=np.float32)[:, None]
    for action in given:
        env.step(action)
    np.testing.assert_array_equal(env.get_state()["actions"], given)
    assert len(env._actions) < 2 * 5000
    env.reset()
    assert env.get_state()["actions"].shape == (0, 1)


def test_a_saved_state_does_not_change_when_the_episode_continues():
    env, _ = pair()
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

    env, _ = pair(ReusedBuffer)
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

    env, _ = pair(Touchy)
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

    env, other = pair(Scribbler)
    env.step(np.float32([0.5]))
    np.testing.assert_array_equal(env.get_state()["actions"], [[0.5]])
    state = env.get_state()
    other.set_state(state)
    np.testing.assert_array_equal(state["actions"], [[0.5]])


def test_options_that_are_not_plain_json_cannot_be_saved():
    env, _ = pair()
    env.reset(options={"place": 1.0, "map": np.zeros(3)})
    with pytest.raises(StateError, match="plain JSON"):
        env.get_state()
    for options in ({"a": (1, 2)}, {1: 2}, {"a": float("nan")}, {"a": {1}}):
        with pytest.raises(StateError, match="plain JSON"):
            plain_options(options)
    assert plain_options({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


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

    env, other = pair(Open)
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

    env, _ = pair(Open)
    with pytest.raises(ActionError, match="action must be"):
        env.step(action)
    assert env.unwrapped.seen == []
    assert len(env.get_state()["actions"]) == 0


def test_action_spaces_without_arrays_are_refused():
    class Pair(Walk):
        action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])

    with pytest.raises(ConfigError, match="must be arrays"):
        ReplayableEnv(Pair())

"""Gymnasium environments in SB3's DummyVecEnv: saved in mid-episode, restored by replay, refused in one line."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from hotlap.errors import StateError
from hotlap.runs.state_tree import join_tree, split_tree
from hotlap.training.sb3.vec_envs.gymnasium_envs import GymnasiumVecEnv

SEED = 11
RACER = {"config": {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 40, "start": "random"}}}
CASES = {
    "lunar": ("LunarLander-v3", {}),
    "lunar-continuous": ("LunarLander-v3", {"continuous": True, "enable_wind": True}),
    "cartpole": ("CartPole-v1", {}),
    "pendulum": ("Pendulum-v1", {"max_episode_steps": 90}),
    "racer": ("hotlap/Racer-v0", RACER),
    "parts": ("test/Parts-v0", {}),
}


class Parts(gym.Env):
    """Dict observations and MultiBinary actions; an episode lasts until five bits were set."""

    observation_space = spaces.Dict(
        {"left": spaces.Box(-np.inf, np.inf, (2,), np.float32), "right": spaces.Discrete(100)}
    )
    action_space = spaces.MultiBinary(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.total = 0
        return self.look(), {"total": 0}

    def step(self, action):
        self.total += int(action.sum())
        return self.look(), self.np_random.normal(), self.total >= 5, False, {"total": self.total}

    def look(self):
        return {"left": self.np_random.normal(size=2).astype(np.float32), "right": self.total}


class HiddenRandomness(gym.Env):
    """Draws from a generator that `seed` does not reach."""

    observation_space = spaces.Box(-np.inf, np.inf, (), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.secret = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array(self.secret.normal()), {}

    def step(self, action):
        return np.array(self.secret.normal()), 0.0, False, False, {}


@pytest.fixture(autouse=True)
def registered_environments():
    """Our test environments are registered while a test runs."""
    gym.register("test/Parts-v0", Parts)
    gym.register("test/HiddenRandomness-v0", HiddenRandomness)
    yield
    for name in [name for name in gym.registry if name.startswith("test/")]:
        del gym.registry[name]


def make(case: str, num_envs: int) -> VecEnv:
    env_id, env_args = CASES[case]
    if env_id.startswith("Lunar"):
        pytest.importorskip("Box2D")
    return GymnasiumVecEnv(env_id, num_envs, SEED, env_args)


def actions_for(venv: VecEnv, num_steps: int) -> np.ndarray:
    """The same random actions every time, (num_steps, num_envs, …)."""
    space = copy.deepcopy(venv.action_space)
    space.seed(5)
    return np.array([[space.sample() for _ in range(venv.num_envs)] for _ in range(num_steps)])


def play(
    venv: VecEnv, actions: np.ndarray, after: Callable[[int, np.ndarray], None] = lambda step, dones: None
) -> list:
    """The results of all steps as plain comparable values; `after` is called after each step."""
    results = []
    for step, action in enumerate(actions):
        obs, rewards, dones, infos = venv.step(action)
        for info in infos:
            info.get("episode", {}).pop("t", None)  # wall clock
        results.append(comparable([obs, rewards, dones, infos]))
        after(step, dones)
    return results


def comparable(value):
    """Nested values with arrays as their bytes, so that `==` is bit for bit."""
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return (str(value.dtype), value.shape, value.tobytes())
    return value


def through_a_file(state: dict) -> dict:
    """The state as a checkpoint would hold it: JSON on one side, arrays on the other."""
    plain, arrays = split_tree(state)
    return join_tree(
        json.loads(json.dumps(plain, allow_nan=False)), {key: array.copy() for key, array in arrays.items()}
    )


# --- saving and restoring ---


@pytest.mark.parametrize(("num_envs", "num_steps"), [(1, 300), (3, 200)])
@pytest.mark.parametrize("case", CASES)
def test_restored_environments_continue_bit_identically(case, num_envs, num_steps):
    venv = make(case, num_envs)
    actions = actions_for(venv, num_steps)
    moments = {0, 1, *np.random.default_rng(num_envs).integers(2, num_steps, 2).tolist()}
    saved = {}
    ends = []

    def save(step, dones):
        is_early_end = dones.any() and len(ends) < 2
        if is_early_end:
            ends.append(step)
        if step in moments or is_early_end:
            saved[step] = through_a_file(venv.get_state())

    first = comparable(venv.reset())
    saved[-1] = through_a_file(venv.get_state())
    results = play(venv, actions, save)
    assert len(ends) == 2
    assert len(saved) >= 5
    for step, state in saved.items():
        other = make(case, num_envs)
        other.set_state(state)
        assert comparable(through_a_file(other.get_state())) == comparable(state)
        last = results[step][0] if step >= 0 else first
        assert comparable(other._obs_from_buf()) == last
        assert play(other, actions[step + 1 :]) == results[step + 1 :], f"saved after step {step}"


@pytest.mark.parametrize("case", CASES)
def test_recording_does_not_change_results(case):
    env_id, env_args = CASES[case]
    venv = make(case, 2)
    plain = DummyVecEnv([lambda: Monitor(gym.make(env_id, **env_args)) for _ in range(2)])
    plain.seed(SEED)
    actions = actions_for(venv, 300)
    assert comparable(venv.reset()) == comparable(plain.reset())
    assert play(venv, actions) == play(plain, actions)


@pytest.mark.parametrize("case", ["cartpole", "racer", "parts"])
def test_environments_saved_before_their_first_reset_keep_their_seeds(case):
    venv, other = make(case, 2), make(case, 2)
    venv.seed(77)
    other.set_state(through_a_file(venv.get_state()))
    assert comparable(other.reset()) == comparable(venv.reset())
    actions = actions_for(venv, 100)
    assert play(other, actions) == play(venv, actions)


def test_a_reset_after_restoring_continues_bit_identically():
    venv, other = make("lunar", 2), make("lunar", 2)
    venv.reset()
    actions = actions_for(venv, 100)
    play(venv, actions[:30])
    other.set_state(through_a_file(venv.get_state()))
    assert comparable(other.reset()) == comparable(venv.reset())
    assert play(other, actions) == play(venv, actions)


def test_pending_reset_options_are_saved():
    venv, other = make("racer", 2), make("racer", 2)
    venv.reset()
    venv.set_options({"start": "line"})
    other.set_state(through_a_file(venv.get_state()))
    assert other.reset_infos == venv.reset_infos
    assert other.reset_infos[0]["speed"] > 0.0
    assert comparable(other.reset()) == comparable(venv.reset())
    assert [info["speed"] for info in other.reset_infos] == [0.0, 0.0]


def test_environments_can_be_saved_repeatedly():
    venv = make("lunar", 2)
    venv.reset()
    actions = actions_for(venv, 200)
    results = play(venv, actions)
    other = make("lunar", 2)
    other.reset()
    pieces = []
    for begin in range(0, 200, 25):
        pieces += play(other, actions[begin : begin + 25])
        state = through_a_file(other.get_state())
        other = make("lunar", 2)
        other.set_state(state)
    assert pieces == results


def test_the_environments_inside_a_wrapped_vecenv_are_saved():
    venv, other = make("cartpole", 2), make("cartpole", 2)
    wrapped = VecNormalize(venv)
    wrapped.reset()
    actions = actions_for(venv, 50)
    wrapped.step(actions[0])
    other.set_state(venv.get_state())
    assert play(other, actions) == play(venv, actions)


def test_the_generators_of_action_spaces_are_saved():
    venv, other = make("pendulum", 2), make("pendulum", 2)
    for env in venv.envs:
        env.action_space.sample()
    other.set_state(through_a_file(venv.get_state()))
    for env, twin in zip(venv.envs, other.envs, strict=True):
        np.testing.assert_array_equal(env.action_space.sample(), twin.action_space.sample())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_environments_continue_bit_identically_in_another_process(tmp_path: Path):
    pytest.importorskip("Box2D")
    script = """
import json, sys
import numpy as np
from hotlap.runs.state_tree import join_tree, split_tree
from hotlap.training.sb3.vec_envs.gymnasium_envs import GymnasiumVecEnv
from hotlap.runs.state_tree import join_tree, split_tree
begin, end, save, load, results = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
venv = GymnasiumVecEnv("LunarLander-v3", 3, 11, {"enable_wind": True})
actions = np.random.default_rng(0).integers(0, 4, (900, 3))
if load != "-":
    with np.load(load + ".npz") as arrays:
        venv.set_state(join_tree(json.load(open(load + ".json")), dict(arrays)))
else:
    venv.reset()
trace = [venv.step(action)[:2] for action in actions[begin:end]]
np.savez(results, obs=np.array([obs for obs, _ in trace]), rewards=np.array([rewards for _, rewards in trace]))
plain, arrays = split_tree(venv.get_state())
json.dump(plain, open(save + ".json", "w"))
np.savez(save + ".npz", **arrays)
"""

    def run(begin: int, end: int, save: str, load: str, results: str) -> np.lib.npyio.NpzFile:
        arguments = [str(begin), str(end), save, load, results]
        subprocess.run([sys.executable, "-c", script, *arguments], cwd=tmp_path, check=True, timeout=120)
        return np.load(tmp_path / f"{results}.npz")

    whole = run(0, 900, "end", "-", "whole")
    first, second = run(0, 431, "mid", "-", "first"), run(431, 900, "other-end", "mid", "second")
    for name in ("obs", "rewards"):
        assert np.concatenate([first[name], second[name]]).tobytes() == whole[name].tobytes()
    assert (tmp_path / "end.json").read_text() == (tmp_path / "other-end.json").read_text()


# --- states that are refused ---


def test_randomness_outside_np_random_is_reported():
    venv, other = (GymnasiumVecEnv("test/HiddenRandomness-v0", 2, 0, {}) for _ in range(2))
    venv.reset()
    venv.step(np.array([0, 1]))
    with pytest.raises(StateError, match="'test/HiddenRandomness-v0' cannot be restored exactly") as caught:
        other.set_state(venv.get_state())
    assert "\n" not in str(caught.value)


def test_a_state_of_an_environment_with_other_arguments_is_refused():
    venv = make("lunar", 1)
    venv.reset()
    play(venv, actions_for(venv, 5))
    other = GymnasiumVecEnv("LunarLander-v3", 1, SEED, {"gravity": -9.0})
    with pytest.raises(StateError, match="other arguments"):
        other.set_state(venv.get_state())


def test_a_state_of_other_environments_is_refused():
    state = make("cartpole", 2).get_state()
    with pytest.raises(StateError, match="num_envs must be 3, got 2"):
        make("cartpole", 3).set_state(state)
    with pytest.raises(StateError, match="environment must be 'Pendulum-v1', got 'CartPole-v1'"):
        make("pendulum", 2).set_state(state)


@pytest.mark.parametrize("key", ["seeds", "options", "envs"])
def test_a_state_with_a_part_missing_is_refused(key):
    venv = make("cartpole", 2)
    venv.reset()
    state = venv.get_state()
    del state[key]
    with pytest.raises(StateError, match=f"'{key}' is missing"):
        venv.set_state(state)


def test_a_state_with_an_environment_missing_is_refused():
    venv = make("cartpole", 2)
    state = venv.get_state()
    state["envs"].pop()
    with pytest.raises(StateError, match="is missing"):
        venv.set_state(state)


# --- making ---


def test_environment_i_is_seeded_seed_plus_i():
    obs = make("cartpole", 3).reset()
    for index in range(3):
        np.testing.assert_array_equal(obs[index], gym.make("CartPole-v1").reset(seed=SEED + index)[0])


def test_each_action_space_has_its_own_seed():
    venv, twin = make("pendulum", 2), make("pendulum", 2)
    drawn = [[env.action_space.sample().item() for env in one.envs] for one in (venv, twin)]
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_each_environment_is_monitored_once():
    venv = make("cartpole", 2)
    assert venv.env_is_wrapped(Monitor) == [True, True]
    assert venv.num_envs == 2

"""A learner restored from a file continues bit-identical; states that do not fit are refused."""

import random
from contextlib import suppress

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from hotlap.errors import StateError
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot
from hotlap.training.algorithms.registry import build_learner
from hotlap.training.checkpoint import load_checkpoint, save_snapshot
from hotlap.training.state.learner_state import capture, normalizer_arrays, preserve_rng, restore, restore_generators
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs
from tiny_runs import ALGORITHMS, tiny_config

DICT, IMAGE = "hotlap-tests/Dict-v0", "hotlap-tests/Image-v0"


class DictEnv(gym.Env):
    """Steer a number to zero; observations are a dict."""

    observation_space = spaces.Dict({"place": spaces.Box(-5.0, 5.0, (1,), np.float32), "sign": spaces.Discrete(2)})
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0)
        self.left = 12
        return self.look(), {}

    def step(self, action):
        self.place = float(np.clip(self.place + 0.3 * float(action[0]) + self.np_random.normal(0.0, 0.1), -5.0, 5.0))
        self.left -= 1
        return self.look(), -abs(self.place), False, self.left == 0, {}

    def look(self):
        return {"place": np.array([self.place], np.float32), "sign": int(self.place > 0.0)}


class ImageEnv(DictEnv):
    """The same with images, channels last, which the library transposes."""

    observation_space = spaces.Box(0, 255, (40, 36, 3), np.uint8)

    def look(self):
        return np.full((40, 36, 3), int(25 * (self.place + 5.0)), np.uint8)


@pytest.fixture(scope="module", autouse=True)
def environments():
    for name, kind in ((DICT, DictEnv), (IMAGE, ImageEnv)):
        gym.register(name, kind)
    yield
    for name in (DICT, IMAGE):
        del gym.registry[name]


class Boundary(BaseCallback):
    """Captures the state before the first rollout at or after a step."""

    def __init__(self, step, envs):
        super().__init__()
        self.step, self.envs, self.snapshot = step, envs, None

    def _on_rollout_start(self):
        if self.snapshot is None and self.num_timesteps >= self.step:
            self.snapshot = capture(self.model, self.envs.capture(), {"note": "mine"})

    def _on_step(self):
        return True


def build(config):
    envs = TrainingEnvs(config)
    learner = build_learner(config, envs.env)
    learner.set_logger(Logger(None, []))
    return learner, envs


def learn(config, capture_at):
    """A learner after its whole step budget, and its state at an earlier boundary."""
    model, envs = build(config)
    boundary = Boundary(capture_at, envs)
    model.learn(config.steps, callback=boundary)
    return model, envs, boundary.snapshot


def resume(config, snapshot):
    model, envs = build(config)
    saved, bookkeeping = restore(model, snapshot)
    assert bookkeeping == {"note": "mine"}
    assert envs.restore(saved)
    restore_generators(model, snapshot)
    model.learn(config.steps - model.num_timesteps, reset_num_timesteps=False)
    return model, envs


def whole_state(model, envs):
    """A learner's whole state as plain data and bytes, without clock readings."""
    snapshot = capture(model, envs.capture(), None)
    plain = {name: value for name, value in snapshot.plain.items() if name != "learner"}
    learner = dict(snapshot.plain["learner"])
    learner["episodes"] = [episode[:2] for episode in learner["episodes"]]
    learner["pending_log"] = {name: value for name, value in learner["pending_log"].items() if "time/" not in name}
    arrays = {
        f"{group}/{name}": (array.dtype, array.shape, array.tobytes())
        for group, arrays in snapshot.groups.items()
        for name, array in arrays.items()
    }
    return plain | {"learner": learner}, arrays


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("env", ["Pendulum-v1", DICT])
def test_a_learner_restored_from_a_file_continues_bit_identical(tmp_path, algo, env):
    normalize = {"obs": env != DICT, "reward": True}
    config = tiny_config(algo, env, num_envs=2, steps=130, normalize=normalize)
    model, envs, snapshot = learn(config, capture_at=60)
    assert 60 <= snapshot.step < 130
    save_snapshot(tmp_path / "state.zip", snapshot, {}, snapshot.step)
    other, others_envs = resume(config, load_checkpoint(tmp_path / "state.zip").snapshot)
    plain, arrays = whole_state(model, envs)
    others_plain, others_arrays = whole_state(other, others_envs)
    assert arrays.keys() == others_arrays.keys()
    assert [name for name in arrays if arrays[name] != others_arrays[name]] == []
    assert plain == others_plain


def test_a_learner_of_images_continues_bit_identical():
    config = tiny_config("a2c", IMAGE, steps=10, normalize={"obs": False, "reward": False}, policy={"net_arch": []})
    model, envs, snapshot = learn(config, capture_at=5)
    other, others_envs = resume(config, snapshot)
    assert whole_state(model, envs)[1] == whole_state(other, others_envs)[1]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_captured_state_does_not_change_while_learning_continues(algo):
    config = tiny_config(algo, "Pendulum-v1", steps=130)
    model, envs = build(config)
    model.learn(64)
    snapshot = capture(model, envs.capture(), None)
    before = {
        (group, name): array.copy() for group, arrays in snapshot.groups.items() for name, array in arrays.items()
    }
    model.learn(64, reset_num_timesteps=False)
    for (group, name), array in before.items():
        np.testing.assert_array_equal(snapshot.groups[group][name], array, err_msg=f"{group}/{name}")


def draw(model):
    """Numbers from each generator that a learner or an environment may draw from."""
    return [
        random.random(),
        random.gauss(0.0, 1.0),
        np.random.random(),  # noqa: NPY002
        np.random.standard_normal(),  # noqa: NPY002
        torch.rand(1).item(),
        float(model.action_space.sample()[0]),
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_every_generator_is_restored(fails):
    model, envs = build(tiny_config("ppo", "Pendulum-v1"))
    model.learn(32)
    draw(model)  # so that the Gaussian generators hold back the second of a pair
    snapshot = capture(model, envs.capture(), None)
    first = [draw(model) for _ in range(3)]
    restore_generators(model, snapshot)
    with suppress(KeyError), preserve_rng(model):
        draw(model)
        if fails:
            raise KeyError
    assert [draw(model) for _ in range(3)] == first


def test_a_checkpoint_holds_the_filled_part_of_the_replay_buffer_and_a_model_none_of_it():
    model, _ = build(tiny_config("sac", "Pendulum-v1"))
    model.learn(30)
    assert REPLAY_GROUP not in capture(model, None, None, with_replay=False).groups
    rows = capture(model, None, None).groups[REPLAY_GROUP]
    assert {len(array) for array in rows.values()} == {30}
    model.learn(70, reset_num_timesteps=False)
    assert {len(array) for array in capture(model, None, None).groups[REPLAY_GROUP].values()} == {75}


def test_the_normalizers_statistics_have_the_names_used_in_model_files():
    model, envs = build(tiny_config("ppo", "Pendulum-v1"))
    model.learn(32)
    found = normalizer_arrays(envs.env)
    np.testing.assert_array_equal(found["obs_mean"], envs.env.obs_rms.mean)
    np.testing.assert_array_equal(found["obs_var"], envs.env.obs_rms.var)
    statistics = {f"{name}_{figure}" for name in ("obs", "return") for figure in ("mean", "var", "count")}
    assert set(found) == {"returns"} | statistics


# --- states that do not fit ---


def refusal(config, snapshot, take=restore):
    """The error that refuses a state, checked to be one line."""
    model, _ = build(config)
    with pytest.raises(StateError) as caught:
        take(model, snapshot)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": {"net_arch": [9]}}, "size mismatch"),
        ({"normalize": {"obs": False, "reward": False}}, "either it or this run has a normalizer"),
        ({"algo": "a2c"}, "does not fit this run's learner"),
        ({"num_envs": 2}, "replay buffer has observations of shape"),
        ({"sac": {"buffer_size": 20}}, "replay buffer has observations of shape"),
    ],
)
def test_a_state_of_another_kind_of_learner_is_refused(changes, words):
    _, _, snapshot = learn(tiny_config("sac", "Pendulum-v1", steps=30), capture_at=24)
    assert words in refusal(tiny_config(**{"algo": "sac", "env": "Pendulum-v1", **changes}), snapshot)


def test_a_state_with_a_missing_part_is_refused():
    config = tiny_config("sac", "Pendulum-v1", steps=30)
    _, _, snapshot = learn(config, capture_at=24)
    for part in ("learner", "optimizers", "rng", "envs"):
        plain = {name: value for name, value in snapshot.plain.items() if name != part}
        found = refusal(config, Snapshot(plain, snapshot.groups), restore_generators if part == "rng" else restore)
        assert found.startswith(f"state: does not fit this run's learner ('{part}'")
    groups = {name: group for name, group in snapshot.groups.items() if name != REPLAY_GROUP}
    words = "its replay buffer was removed when newer checkpoints were written"
    assert words in refusal(config, Snapshot(snapshot.plain, groups))

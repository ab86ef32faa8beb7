"""A learner restored from a file continues bit-identical; states that do not fit are refused."""

import random

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from hotlap.errors import StateError
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot
from hotlap.training.checkpoint import load_checkpoint, save_snapshot
from hotlap.training.sb3.learner import SB3Learner
from hotlap.training.sb3.state import capture_generators, normalizer_arrays, restore_generators
from small_learners import learn
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


def learn_and_capture(config, capture_at):
    """A learner after its whole step budget, and its state at an earlier boundary."""
    learner, snapshot = SB3Learner(config), None
    while learner.plan.num_steps:
        if snapshot is None and learner.num_timesteps >= capture_at:
            snapshot = Snapshot.of(learner.state_dict())
        learn(learner, 1)
    return learner, snapshot


def resume(config, snapshot):
    learner = SB3Learner(config)
    learner.load_state_dict(snapshot.parts())
    return learn(learner)[0]


def whole_state(learner):
    """A learner's whole state as plain data and bytes."""
    snapshot = Snapshot.of(learner.state_dict())
    arrays = {
        f"{group}/{name}": (array.dtype, array.shape, array.tobytes())
        for group, arrays in snapshot.groups.items()
        for name, array in arrays.items()
    }
    return snapshot.plain, arrays


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("env", ["Pendulum-v1", DICT])
def test_a_learner_restored_from_a_file_continues_bit_identical(tmp_path, algo, env):
    normalize = {"obs": env != DICT, "reward": True}
    config = tiny_config(algo, env, num_envs=2, steps=130, normalize=normalize)
    learner, snapshot = learn_and_capture(config, capture_at=60)
    assert 60 <= snapshot.step < 130
    save_snapshot(tmp_path / "state.zip", snapshot, {}, snapshot.step)
    other = resume(config, load_checkpoint(tmp_path / "state.zip").snapshot)
    plain, arrays = whole_state(learner)
    others_plain, others_arrays = whole_state(other)
    assert arrays.keys() == others_arrays.keys()
    assert [name for name in arrays if arrays[name] != others_arrays[name]] == []
    assert plain == others_plain


def test_a_learner_of_images_continues_bit_identical():
    config = tiny_config("a2c", IMAGE, steps=10, normalize={"obs": False, "reward": False}, policy={"net_arch": []})
    learner, snapshot = learn_and_capture(config, capture_at=5)
    assert whole_state(learner)[1] == whole_state(resume(config, snapshot))[1]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_captured_state_does_not_change_while_learning_continues(algo):
    learner, _ = learn(SB3Learner(tiny_config(algo, "Pendulum-v1", steps=130)), 2)
    snapshot = Snapshot.of(learner.state_dict())
    before = {
        (group, name): array.copy() for group, arrays in snapshot.groups.items() for name, array in arrays.items()
    }
    learn(learner)
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


def test_every_generator_is_restored():
    model = SB3Learner(tiny_config("ppo", "Pendulum-v1")).model
    draw(model)  # so that the Gaussian generators hold back the second of a pair
    saved = capture_generators(model)
    first = [draw(model) for _ in range(3)]
    restore_generators(model, saved)
    assert [draw(model) for _ in range(3)] == first


def test_a_state_from_a_gpu_is_restored_on_the_cpu_without_the_gpus_generator():
    model = SB3Learner(tiny_config("ppo", "Pendulum-v1")).model
    saved = capture_generators(model)
    first = draw(model)
    restore_generators(model, {**saved, "cuda": np.zeros(16, np.uint8)})
    assert draw(model) == first


def test_a_checkpoint_holds_the_filled_part_of_the_replay_buffer_and_a_model_none_of_it():
    learner, _ = learn(SB3Learner(tiny_config("sac", "Pendulum-v1", steps=100)), 15)
    assert learner.num_timesteps == 30
    assert REPLAY_GROUP not in learner.state_dict(with_replay=False)

    def num_rows():
        return {len(array) for array in Snapshot.of(learner.state_dict()).groups[REPLAY_GROUP].values()}

    assert num_rows() == {30}
    learn(learner)
    assert num_rows() == {75}


def test_the_normalizers_statistics_have_the_names_used_in_model_files():
    learner, _ = learn(SB3Learner(tiny_config("ppo", "Pendulum-v1")), 1)
    env = learner.model.env
    found = normalizer_arrays(env)
    np.testing.assert_array_equal(found["obs_mean"], env.obs_rms.mean)
    np.testing.assert_array_equal(found["obs_var"], env.obs_rms.var)
    statistics = {f"{name}_{figure}" for name in ("obs", "return") for figure in ("mean", "var", "count")}
    assert set(found) == {"returns"} | statistics


# --- states that do not fit ---


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": {"net_arch": [9]}}, "size mismatch"),
        ({"normalize": {"obs": False, "reward": False}}, "either it or this run has a normalizer"),
        ({"algo": "a2c"}, "unexpected key|Unexpected key"),
        ({"num_envs": 2}, "replay buffer has observations of shape"),
        ({"sac": {"buffer_size": 20}}, "replay buffer has observations of shape"),
    ],
)
def test_a_state_of_another_kind_of_learner_is_refused(changes, words):
    _, snapshot = learn_and_capture(tiny_config("sac", "Pendulum-v1", steps=30), capture_at=24)
    learner = SB3Learner(tiny_config(**{"algo": "sac", "env": "Pendulum-v1", **changes}))
    with pytest.raises((StateError, RuntimeError), match=words):
        learner.load_state_dict(snapshot.parts())


def test_a_state_without_its_replay_buffer_is_refused():
    config = tiny_config("sac", "Pendulum-v1", steps=30)
    learner, _ = learn(SB3Learner(config), 12)
    words = "its replay buffer was removed when newer checkpoints were written"
    with pytest.raises(StateError, match=words):
        SB3Learner(config).load_state_dict(learner.state_dict(with_replay=False))

"""A learner's whole state goes into a file and out of it, and the learner that gets it goes on with the same bits."""

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
from hotlap.training.algorithms.learners import build_model
from hotlap.training.checkpoint import load_checkpoint, save_snapshot
from hotlap.training.state.snapshot import (
    REPLAY_GROUP,
    Snapshot,
    capture,
    normalizer_arrays,
    restore,
    restore_generators,
    undisturbed,
)
from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import ALGORITHMS, tiny_config

KEYED, PICTURE = "hotlap-tests/Keyed-v0", "hotlap-tests/Picture-v0"


class Keyed(gym.Env):
    """Steer a number to zero; it is seen under two keys."""

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


class Picture(Keyed):
    """The same as a picture with its channels last, which the library turns round."""

    observation_space = spaces.Box(0, 255, (40, 36, 3), np.uint8)

    def look(self):
        return np.full((40, 36, 3), int(25 * (self.place + 5.0)), np.uint8)


@pytest.fixture(scope="module", autouse=True)
def environments():
    for name, kind in ((KEYED, Keyed), (PICTURE, Picture)):
        gym.register(name, kind)
    yield
    for name in (KEYED, PICTURE):
        del gym.registry[name]


class Boundary(BaseCallback):
    """Captures the state at the beginning of the first rollout from a step on."""

    def __init__(self, step, worlds):
        super().__init__()
        self.step, self.worlds, self.snapshot = step, worlds, None

    def _on_rollout_start(self):
        if self.snapshot is None and self.num_timesteps >= self.step:
            self.snapshot = capture(self.model, self.worlds.capture(), {"note": "mine"})

    def _on_step(self):
        return True


def build(config):
    worlds = TrainingEnvs(config)
    model = build_model(config, worlds.env)
    model.set_logger(Logger(None, []))
    return model, worlds


def learn(config, capture_at):
    """A learner after its whole budget, and its state at a boundary on the way."""
    model, worlds = build(config)
    boundary = Boundary(capture_at, worlds)
    model.learn(config.steps, callback=boundary)
    return model, worlds, boundary.snapshot


def go_on(config, snapshot):
    model, worlds = build(config)
    saved, books = restore(model, snapshot)
    assert books == {"note": "mine"}
    assert worlds.restore(saved)
    restore_generators(model, snapshot)
    model.learn(config.steps - model.num_timesteps, reset_num_timesteps=False)
    return model, worlds


def everything(model, worlds):
    """All that a learner is, as bytes and plain data, less its clock readings."""
    snapshot = capture(model, worlds.capture(), None)
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
@pytest.mark.parametrize("env", ["Pendulum-v1", KEYED])
def test_a_learner_restored_from_a_file_goes_on_to_the_same_state(tmp_path, algo, env):
    normalize = {"obs": env != KEYED, "reward": True}
    config = tiny_config(algo, env, num_envs=2, steps=130, normalize=normalize)
    model, worlds, snapshot = learn(config, capture_at=60)
    assert 60 <= snapshot.step < 130
    save_snapshot(tmp_path / "state.zip", snapshot, {}, snapshot.step)
    other, others_worlds = go_on(config, load_checkpoint(tmp_path / "state.zip").snapshot)
    plain, arrays = everything(model, worlds)
    others_plain, others_arrays = everything(other, others_worlds)
    assert arrays.keys() == others_arrays.keys()
    assert [name for name in arrays if arrays[name] != others_arrays[name]] == []
    assert plain == others_plain


def test_a_learner_of_pictures_is_restored_too():
    config = tiny_config("a2c", PICTURE, steps=10, normalize={"obs": False, "reward": False}, policy={"net_arch": []})
    model, worlds, snapshot = learn(config, capture_at=5)
    other, others_worlds = go_on(config, snapshot)
    assert everything(model, worlds)[1] == everything(other, others_worlds)[1]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_state_that_was_captured_does_not_change_while_learning_goes_on(algo):
    config = tiny_config(algo, "Pendulum-v1", steps=130)
    model, worlds = build(config)
    model.learn(64)
    snapshot = capture(model, worlds.capture(), None)
    before = {
        (group, name): array.copy() for group, arrays in snapshot.groups.items() for name, array in arrays.items()
    }
    model.learn(64, reset_num_timesteps=False)
    for (group, name), array in before.items():
        np.testing.assert_array_equal(snapshot.groups[group][name], array, err_msg=f"{group}/{name}")


def draw(model):
    """A number or two from each generator that a learner, or an environment without manners, may draw from."""
    return [
        random.random(),
        random.gauss(0.0, 1.0),
        np.random.random(),  # noqa: NPY002
        np.random.standard_normal(),  # noqa: NPY002
        torch.rand(1).item(),
        float(model.action_space.sample()[0]),
    ]


def test_every_generator_is_put_back():
    config = tiny_config("ppo", "Pendulum-v1")
    model, worlds = build(config)
    model.learn(32)

    draw(model)  # so that the normal generators hold half a pair back
    snapshot = capture(model, worlds.capture(), None)
    first = [draw(model) for _ in range(3)]
    restore_generators(model, snapshot)
    assert [draw(model) for _ in range(3)] == first


@pytest.mark.parametrize("fails", [False, True])
def test_whatever_is_drawn_on_the_side_leaves_the_generators_as_they_were(fails):
    model, worlds = build(tiny_config("ppo", "Pendulum-v1"))
    snapshot = capture(model, worlds.capture(), None)
    expected = draw(model)
    restore_generators(model, snapshot)
    with suppress(KeyError), undisturbed(model):
        draw(model)
        if fails:
            raise KeyError
    assert draw(model) == expected


def test_a_model_goes_without_the_replay_buffer_and_a_checkpoint_with_as_much_as_is_filled():
    model, _ = build(tiny_config("sac", "Pendulum-v1"))
    model.learn(30)
    assert REPLAY_GROUP not in capture(model, None, None, with_replay=False).groups
    rows = capture(model, None, None).groups[REPLAY_GROUP]
    assert {len(array) for array in rows.values()} == {30}
    model.learn(70, reset_num_timesteps=False)
    assert {len(array) for array in capture(model, None, None).groups[REPLAY_GROUP].values()} == {75}


def test_the_normalizers_statistics_stand_under_the_names_that_model_files_have():
    model, worlds = build(tiny_config("ppo", "Pendulum-v1"))
    model.learn(32)
    found = normalizer_arrays(worlds.env)
    np.testing.assert_array_equal(found["obs_mean"], worlds.env.obs_rms.mean)
    np.testing.assert_array_equal(found["obs_var"], worlds.env.obs_rms.var)
    assert set(found) == {
        "returns", "obs_mean", "obs_var", "obs_count", "return_mean", "return_var", "return_count"
    }  # fmt: skip


# --- what does not fit ---


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": {"net_arch": [9]}}, "does not fit this run's learner .*size mismatch"),
        ({"normalize": {"obs": False, "reward": False}}, "a normalizer where this run has none"),
        ({"algo": "a2c", "a2c": {}}, "does not fit this run's learner"),
        ({"num_envs": 2}, "replay buffer has observations of shape"),
        ({"sac": {"buffer_size": 20}}, "replay buffer has observations of shape"),
    ],
)
def test_a_state_of_another_kind_of_learner_is_refused_in_one_line(changes, words):
    config = tiny_config("sac", "Pendulum-v1", steps=30)
    _, _, snapshot = learn(config, capture_at=24)
    algo = changes.pop("algo", "sac")
    model, _ = build(tiny_config(algo, "Pendulum-v1", changes.pop("num_envs", 1), **changes))
    with pytest.raises(StateError, match=words) as caught:
        restore(model, snapshot)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_that_lost_its_replay_buffer_says_so():
    config = tiny_config("sac", "Pendulum-v1", steps=30)
    _, _, snapshot = learn(config, capture_at=24)
    thin = Snapshot(snapshot.plain, {name: group for name, group in snapshot.groups.items() if name != REPLAY_GROUP})
    model, _ = build(config)
    with pytest.raises(StateError, match="its replay buffer was dropped when newer checkpoints were written"):
        restore(model, thin)


@pytest.mark.parametrize("part", ["learner", "optimizer", "generators", "worlds"])
def test_a_state_with_a_part_missing_is_refused(part):
    config = tiny_config("ppo", "Pendulum-v1", steps=64)
    _, _, snapshot = learn(config, capture_at=32)
    broken = Snapshot({name: value for name, value in snapshot.plain.items() if name != part}, snapshot.groups)
    model, _ = build(config)
    take = restore_generators if part == "generators" else restore
    with pytest.raises(StateError, match=f"does not fit this run's learner .*{part}"):
        take(model, broken)

"""Import from plain stable-baselines3: the same actions as there; what Hotlap cannot represent is refused."""

import logging
import pickle
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUTS
from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.models.policy import LearnedPolicy
from hotlap.models.sb3_exchange import export_sb3, read_sb3
from hotlap.sim.version import PHYSICS_VERSION
from models.sample_spaces import SPACES, SpacesOnlyEnv


def plain_model(algorithm: str, env: Any, **settings: Any) -> Any:
    """A model of plain SB3, not trained, with weights large enough to act."""
    settings = {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [8]}, **settings}
    learner = ALGORITHMS[algorithm].sb3_class(env=env, seed=11, **settings)
    for parameter in learner.policy.parameters():
        nn.init.normal_(parameter, std=0.7)
    learner.num_timesteps = 1234
    return learner


def imported(path: Path, environment: str, **options: Any) -> ModelFile:
    """The model as it is after it was written as one of ours and read again."""
    write_model(path.with_name("ours.zip"), read_sb3(path, environment, **options))
    return read_model(path.with_name("ours.zip"))


@pytest.fixture(scope="module")
def plain_zip(tmp_path_factory):
    """The file of a PPO model of plain SB3 for an environment; not to be changed."""

    @cache
    def save(environment: str) -> Path:
        path = tmp_path_factory.mktemp("model") / "plain.zip"
        plain_model("ppo", environment).save(path)
        return path

    return save


def test_a_model_without_a_normalizer_gives_no_warning(plain_zip, caplog):
    caplog.set_level(logging.DEBUG)
    read_sb3(plain_zip("CartPole-v1"), "CartPole-v1")
    assert caplog.text == ""


POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "list": {"net_arch": [16, 8]},
    "same": {"net_arch": {"pi": [8, 8], "vf": [8, 8], "qf": [8, 8]}},
    "elu": {"net_arch": [8], "activation_fn": nn.ELU},
    "relu": {"net_arch": [8], "activation_fn": nn.ReLU, "ortho_init": False, "log_std_init": -1.0},
    "other critic": {"net_arch": {"pi": [8], "vf": [4]}},
    "other sac critic": {"net_arch": {"pi": [8], "qf": [4]}},
    "no critic layers": {"net_arch": {"pi": [8]}},
    "optimizer": {"net_arch": [8], "optimizer_class": torch.optim.AdamW, "optimizer_kwargs": {"weight_decay": 0.1}},
}


@pytest.mark.parametrize(
    ("algorithm", "env", "policy"),
    [
        *[("ppo", "CartPole-v1", name) for name in POLICIES],
        *[("a2c", "Pendulum-v1", name) for name in ("default", "elu", "other critic", "no critic layers")],
        *[("sac", "Pendulum-v1", name) for name in ("list", "same", "elu", "other sac critic")],
        ("ppo", RACER_ID, "default"),
    ],
)
def test_an_imported_model_acts_bit_for_bit_as_in_plain_sb3(tmp_path, algorithm, env, policy):
    learner = plain_model(algorithm, env, policy_kwargs=POLICIES[policy])
    learner.save(tmp_path / "plain.zip")
    model = imported(tmp_path / "plain.zip", env)
    assert (model.card.algorithm, model.card.environment) == (algorithm, env)
    assert (model.card.step, model.card.seed) == (1234, 11)
    assert model.card.trained_on.startswith("stable-baselines3 2.")
    shape = learner.observation_space.shape
    obs = np.random.default_rng(0).normal(0.0, 2.0, (500, *shape)).astype(np.float32)
    theirs, _ = learner.predict(obs, deterministic=True)
    assert len(np.unique(theirs)) > 1
    np.testing.assert_array_equal(LearnedPolicy.from_file(model).act(obs), theirs)


@pytest.mark.parametrize("name", SPACES)
def test_models_of_all_spaces_act_the_same_after_import_and_after_export(tmp_path, name):
    space, actions = SPACES[name]
    policy = {"dict": "MultiInputPolicy", "pictures": "CnnPolicy"}.get(name, "MlpPolicy")
    learner = plain_model("ppo", SpacesOnlyEnv(name), policy=policy)
    learner.save(tmp_path / "plain.zip")
    model = imported(tmp_path / "plain.zip", "Some-v0")  # the environment is not made, so it need not exist
    [again] = export_sb3(model, tmp_path / "again")
    space.seed(0)
    rows = [space.sample() for _ in range(30)]
    obs = {key: np.array([row[key] for row in rows]) for key in rows[0]} if name == "dict" else np.array(rows)
    theirs, _ = learner.predict(obs, deterministic=True)
    assert len(np.unique(theirs, axis=0)) > 1
    np.testing.assert_array_equal(LearnedPolicy.from_file(model).act(obs), theirs)
    # stable-baselines3 saves pictures with their channels first; the environment's own space is accepted too.
    np.testing.assert_array_equal(LearnedPolicy.from_file(model, space, actions).act(obs), theirs)
    np.testing.assert_array_equal(PPO.load(again).predict(obs, deterministic=True)[0], theirs)


def test_a_policy_that_flattens_pictures_stays_one(tmp_path):
    plain_model("ppo", SpacesOnlyEnv("pictures")).save(tmp_path / "plain.zip")
    assert imported(tmp_path / "plain.zip", "Some-v0").card.policy.kind == "MlpPolicy"


# --- a normalizer ---


@pytest.fixture
def normalized(tmp_path):
    """A model of plain SB3 with a VecNormalize, saved to plain.zip and plain.pkl."""
    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]), clip_obs=3.0)
    learner = plain_model("a2c", env)
    learner.learn(50)
    learner.save(tmp_path / "plain.zip")
    env.save(str(tmp_path / "plain.pkl"))
    return learner, env


@pytest.mark.parametrize(("clip_obs", "scale"), [(3.0, 2.0), (np.inf, 1e5)])
def test_an_imported_normalizer_acts_as_in_plain_sb3(tmp_path, normalized, clip_obs, scale):
    learner, env = normalized
    env.clip_obs = clip_obs
    env.save(str(tmp_path / "plain.pkl"))
    model = imported(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "plain.pkl")
    raw = np.random.default_rng(0).normal(0.0, scale, (500, 4)).astype(np.float32)
    theirs, _ = learner.predict(env.normalize_obs(raw), deterministic=True)
    np.testing.assert_array_equal(LearnedPolicy.from_file(model).act(raw), theirs)
    assert (learner.predict(raw, deterministic=True)[0] != theirs).any()


def test_a_missing_normalizer_is_warned_about(tmp_path, normalized, caplog):
    assert read_sb3(tmp_path / "plain.zip", "CartPole-v1").card.clip_obs is None
    assert "plain.zip: was trained with a VecNormalize" in caplog.text


def test_a_normalizer_of_rewards_only_does_not_change_observations(tmp_path, normalized):
    _, env = normalized
    env.norm_obs = False
    env.save(str(tmp_path / "plain.pkl"))
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "plain.pkl")
    assert model.card.clip_obs is None
    assert "obs_mean" not in model.normalizer


def test_a_bad_normalizer_is_refused(tmp_path, normalized):
    _, env = normalized
    path = tmp_path / "other.pkl"

    def refused(words: str) -> None:
        with pytest.raises(ModelError, match=words):
            read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=path)

    for content in (b"", b"hello", pickle.dumps([1, 2]), pickle.dumps(env)[:-30]):
        path.write_bytes(content)
        refused(r"^[^\n]*other.pkl: cannot be loaded as a VecNormalize[^\n]*$")
    good = env.obs_rms.mean
    for changes, words in (
        ({"epsilon": 1e-3}, r"its epsilon is 0.001; Hotlap supports 1e-08 only"),
        ({"obs_rms.mean": good[:3]}, "its normalizer does not fit its observations"),
        ({"obs_rms.mean": np.full(4, np.nan)}, "'obs_mean' is not finite"),
    ):
        env.epsilon, env.obs_rms.mean = changes.get("epsilon", 1e-8), changes.get("obs_rms.mean", good)
        env.save(str(path))
        refused(words)
    path.unlink()
    with pytest.raises(InputFileError, match=r"other.pkl: no such file"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=path)


# --- the racer ---


@pytest.mark.parametrize("env", [RACER_ID, REMOTE_RACER_ID])
def test_a_model_with_the_spaces_of_the_racer_gets_the_current_physics(plain_zip, env):
    card = read_sb3(plain_zip(RACER_ID), env, racer={"action_repeat": 4}).card
    assert (card.environment, card.physics) == (RACER_ID, PHYSICS_VERSION)
    assert card.observation_layout == OBSERVATION_LAYOUTS["rays"]
    assert (card.action_repeat, card.stack, card.lap_fourier, card.track) == (4, 1, 0, None)


OTHER_OBSERVATIONS = r"its observations are Box.*\(14,\).*--observation, --stack and --lap-fourier"


@pytest.mark.parametrize(
    ("trained_on", "environment", "racer", "error", "words"),
    [
        (RACER_ID, RACER_ID, {"stack": 2}, ModelError, OTHER_OBSERVATIONS),
        (RACER_ID, RACER_ID, {"lap_fourier": 1}, ModelError, OTHER_OBSERVATIONS),
        ("CartPole-v1", RACER_ID, None, ModelError, r"its observations are Box.*\(4,\).*--env"),
        ("CartPole-v1", "CartPole-v1", {"stack": 2}, ConfigError, r"stack: only for hotlap/Racer-v0.*CartPole-v1"),
    ],
)
def test_options_that_do_not_fit_the_model_are_refused(plain_zip, trained_on, environment, racer, error, words):
    with pytest.raises(error, match=words):
        read_sb3(plain_zip(trained_on), environment, racer=racer)


# --- refusals ---


def assert_refused(tmp_path: Path, learner: Any, words: str) -> None:
    learner.save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=words):
        read_sb3(tmp_path / "plain.zip", learner.get_env().envs[0].spec.id)


class OwnPolicy(ActorCriticPolicy):
    """A user's own policy class."""


@pytest.mark.parametrize(
    ("learner", "module"),
    [
        (lambda: PPO(OwnPolicy, "CartPole-v1"), ".*test_sb3_exchange_import"),
        (lambda: DQN("MlpPolicy", "CartPole-v1", buffer_size=10), "stable_baselines3.dqn.policies"),
    ],
    ids=["own policy", "unknown algorithm"],
)
def test_a_policy_class_that_hotlap_does_not_have_is_refused(tmp_path, learner, module):
    assert_refused(tmp_path, learner(), f"its policy is from {module}; only policies of PPO, A2C and SAC")


@pytest.mark.parametrize(
    ("algorithm", "settings", "words"),
    [
        ("a2c", {"policy_kwargs": {"activation_fn": nn.LeakyReLU}}, r"activation must be one of .*LeakyReLU"),
        ("a2c", {"policy_kwargs": {"features_extractor_kwargs": {}}}, "its policy uses features_extractor_kwargs"),
        ("a2c", {"use_sde": True}, "its policy uses use_sde"),
        ("sac", {"policy_kwargs": {"net_arch": [4], "n_critics": 3}}, "its policy uses n_critics"),
    ],
)
def test_a_policy_that_hotlap_cannot_represent_is_refused(tmp_path, algorithm, settings, words):
    assert_refused(tmp_path, plain_model(algorithm, "Pendulum-v1", **settings), words)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    learner = plain_model("ppo", "CartPole-v1")
    learner.policy.action_net.bias.data[0] = float("nan")
    assert_refused(tmp_path, learner, r"'action_net.bias' is not finite")


@pytest.mark.parametrize(
    "members",
    [
        {"data": None},
        {"policy.pth": None},
        {"data": b"[]"},
        {"data": b"{}"},
        {"data": b"[" * 100_000},
        {"data": b'{"policy_class":{"__module__":"stable_baselines3.common.policies"}}'},
        {"policy.pth": b""},
        {"policy.pth": b"not a pickle"},
    ],
)
def test_a_damaged_model_is_refused_in_one_line(plain_zip, tmp_path, members):
    with zipfile.ZipFile(plain_zip("CartPole-v1")) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        for name, content in {**kept, **members}.items():
            if content is not None:
                archive.writestr(name, content)
    with pytest.raises(ModelError, match=r"^[^\n]*plain.zip: cannot be loaded as a model of stable-baselines3[^\n]*$"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.zip").write_text("hello")
    for path in (tmp_path / "text.zip", tmp_path):
        with pytest.raises(ModelError, match="cannot be loaded as a model of stable-baselines3"):
            read_sb3(path, "CartPole-v1")
    with pytest.raises(InputFileError, match="no such file"):
        read_sb3(tmp_path / "nowhere.zip", "CartPole-v1")

"""Exchange with plain stable-baselines3: the same actions in both directions; the rest is refused."""

import base64
import json
import logging
import pickle
import subprocess
import sys
import zipfile
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
from hotlap.errors import ConfigError, InputFileError, ModelError, OutputFileError
from hotlap.models.actor import pack_model
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.models.policy import LearnedPolicy
from hotlap.models.sb3_exchange import export_sb3, read_sb3
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from models.sample_spaces import SPACES, SpacesOnlyEnv

RACERS = ["recipe", "ppo-racer", "sac-racer"]
EXPORTED = [*RACERS, "ppo-cartpole", "a2c-cartpole-bare"]
CLOSE = 1e-5  # sines of PyTorch and NumPy differ in the last bit

pytestmark = pytest.mark.timeout(60)  # the first test that needs a run waits for its training


def envs_of(model: ModelFile) -> Any:
    return DummyVecEnv([lambda: gym.make(model.card.environment)])


def saved_data(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("data"))


# --- export ---


@pytest.mark.parametrize("name", RACERS)
def test_a_racer_takes_what_the_environment_gives_and_acts_as_our_policy(exported_run, tmp_path, name):
    model = exported_run(name)
    card = model.card
    [path] = export_sb3(model, tmp_path / "plain")
    sb3_class = ALGORITHMS[card.algorithm].sb3_class
    learner = sb3_class.load(path)
    assert type(learner) is sb3_class
    assert learner.num_timesteps == card.step
    seen = {"stack": card.stack, "observation": card.observation, "config": {"episode": {"start": "random"}}}
    env = RacerVecEnv(3, card.track, action_repeat=card.action_repeat, **seen)
    assert learner.observation_space == env.observation_space
    ours = RacerVecEnv(3, card.track, action_repeat=card.action_repeat, lap_fourier=card.lap_fourier, **seen)
    policy = LearnedPolicy.from_file(model)
    env.seed(5)
    ours.seed(5)
    obs, features = env.reset(), ours.reset()
    for _ in range(40):
        theirs, _ = learner.predict(obs, deterministic=True)
        assert env.action_space.contains(theirs[0])
        np.testing.assert_allclose(theirs, policy.act(features), rtol=0.0, atol=CLOSE)
        obs, features = env.step(theirs)[0], ours.step(theirs)[0]
    assert np.ptp(theirs) > 0.0
    env.close()


@pytest.mark.parametrize("name", ["ppo-cartpole", "a2c-cartpole-bare"])
def test_other_models_act_bit_for_bit_as_our_policy(exported_run, tmp_path, name):
    model = exported_run(name)
    files = export_sb3(model, tmp_path / "plain")
    learner = ALGORITHMS[model.card.algorithm].sb3_class.load(files[0])
    env = envs_of(model)
    env.seed(5)
    if model.card.clip_obs is not None:
        env = VecNormalize.load(str(files[1]), env)
    policy, obs = LearnedPolicy.from_file(model), env.reset()
    for _ in range(40):
        theirs, _ = learner.predict(obs, deterministic=True)
        raw = env.get_original_obs() if isinstance(env, VecNormalize) else obs
        np.testing.assert_array_equal(theirs, policy.act(raw))
        obs, *_ = env.step(theirs)
    env.close()


@pytest.mark.parametrize(("name", "count"), [("ppo-cartpole", 2), ("a2c-cartpole-bare", 1), ("ppo-racer", 1)])
@pytest.mark.parametrize("given", ["plain", "plain.zip"])
def test_a_normalizer_is_written_beside_the_model_if_it_is_not_inside(exported_run, tmp_path, name, count, given):
    files = export_sb3(exported_run(name), tmp_path / given)
    assert files == [tmp_path / "plain.zip", tmp_path / "plain_vecnormalize.pkl"][:count]
    assert sorted(tmp_path.iterdir()) == sorted(files)


WITHOUT_HOTLAP = """
import sys
sys.modules["hotlap"] = None  # importing it raises
import numpy as np
from stable_baselines3 import PPO, SAC
learner = {"ppo": PPO, "sac": SAC}[sys.argv[1]].load(sys.argv[2], device="cpu")
actions, _ = learner.predict(np.load(sys.argv[3]), deterministic=True)
np.save(sys.argv[4], actions)
"""


@pytest.mark.parametrize("name", RACERS)
def test_a_racer_is_loaded_and_acts_without_hotlap(exported_run, tmp_path, name):
    model = exported_run(name)
    algorithm = model.card.algorithm
    [path] = export_sb3(model, tmp_path / "plain")
    obs = np.random.default_rng(0).random((20, *model.card.raw_observations.shape), np.float32)
    np.save(tmp_path / "obs.npy", obs)
    names = [str(tmp_path / "obs.npy"), str(tmp_path / "actions.npy")]
    command = [sys.executable, "-c", WITHOUT_HOTLAP, algorithm, str(path), *names]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=50)
    ours, _ = ALGORITHMS[algorithm].sb3_class.load(path).predict(obs, deterministic=True)
    np.testing.assert_array_equal(np.load(tmp_path / "actions.npy"), ours)


def test_the_files_of_other_environments_hold_classes_of_sb3_only(exported_run, tmp_path):
    zip_path, pickle_path = export_sb3(exported_run("ppo-cartpole"), tmp_path / "plain")
    items = [item for item in saved_data(zip_path).values() if isinstance(item, dict) and ":serialized:" in item]
    pickles = [base64.b64decode(item[":serialized:"]) for item in items]
    assert len(pickles) > 5
    assert [content for content in [*pickles, pickle_path.read_bytes()] if b"hotlap" in content] == []


def test_the_normalizer_is_frozen(exported_run, tmp_path):
    model = exported_run("ppo-cartpole")
    _, pickle_path = export_sb3(model, tmp_path / "plain")
    env = VecNormalize.load(str(pickle_path), envs_of(model))
    assert (env.training, env.norm_reward, env.norm_obs) == (False, False, True)
    assert env.ret_rms.count == float(model.normalizer["return_count"]) > 100
    before = env.obs_rms.mean.copy()
    env.reset()
    env.step(np.zeros(1, np.int64))
    np.testing.assert_array_equal(env.obs_rms.mean, before)


def test_the_replay_buffer_has_the_default_size(exported_run, tmp_path):
    [zip_path] = export_sb3(exported_run("sac-racer"), tmp_path / "plain")
    assert saved_data(zip_path)["buffer_size"] == 1_000_000


def test_exporting_changes_no_global_generator(exported_run, tmp_path):
    model = exported_run("sac-racer")
    torch.manual_seed(3)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    export_sb3(model, tmp_path / "plain")
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_a_normalizer_of_another_model_in_the_same_place_is_warned_about(exported_run, tmp_path, caplog):
    (tmp_path / "plain_vecnormalize.pkl").write_bytes(b"older")
    export_sb3(exported_run("a2c-cartpole-bare"), tmp_path / "plain")
    assert "plain_vecnormalize.pkl: belongs to another model" in caplog.text


def test_a_folder_that_does_not_exist_is_refused(exported_run, tmp_path):
    with pytest.raises(OutputFileError, match=r"nowhere.*cannot be written"):
        export_sb3(exported_run("ppo-racer"), tmp_path / "nowhere" / "plain")


# --- import ---


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


@pytest.fixture
def cartpole_zip(tmp_path):
    path = tmp_path / "plain.zip"
    plain_model("ppo", "CartPole-v1").save(path)
    return path


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


@pytest.mark.parametrize("name", EXPORTED)
def test_export_and_import_give_the_same_model(exported_run, tmp_path, name):
    model = exported_run(name)
    card = model.card
    files = export_sb3(model, tmp_path / "plain")
    back = read_sb3(files[0], card.environment, vecnormalize=files[1] if files[1:] else None)
    changed = {"seed", "config_digest", "trained_on"}
    same = {key: value for key, value in card.as_plain().items() if key not in changed}
    assert {key: value for key, value in back.card.as_plain().items() if key not in changed} == same
    assert set(back.weights) == set(model.weights)
    for arrays, others in ((model.weights, back.weights), (model.normalizer, back.normalizer)):
        for key in others:
            np.testing.assert_array_equal(arrays[key], others[key])
    if card.is_racer:
        np.testing.assert_array_equal(pack_model(back).numbers, pack_model(model).numbers)


def test_an_exported_racer_keeps_what_the_user_does_not_say(exported_run, tmp_path):
    [path] = export_sb3(exported_run("recipe"), tmp_path / "plain")
    same = read_sb3(path, RACER_ID, racer={"track": "track-01"}).card
    assert (same.action_repeat, same.track_digest) == (4, exported_run("recipe").card.track_digest)
    other = read_sb3(path, REMOTE_RACER_ID, racer={"track": "track-02", "action_repeat": 2}).card
    assert (other.track, other.track_digest, other.action_repeat, other.lap_fourier) == ("track-02", None, 2, 8)


@pytest.mark.parametrize(
    ("environment", "options", "words"),
    [
        ("CartPole-v1", {}, r"is a model of hotlap/Racer-v0\. Leave out --env"),
        (RACER_ID, {"vecnormalize": Path("x.pkl")}, r"has its normalizer inside\. Leave out --vecnormalize"),
        (RACER_ID, {"racer": {"stack": 2}}, r"its observations are .*Leave out --stack"),
        (RACER_ID, {"racer": {"lap_fourier": 7}}, "does not fit"),
    ],
)
def test_options_that_contradict_an_exported_racer_are_refused(exported_run, tmp_path, environment, options, words):
    [path] = export_sb3(exported_run("recipe"), tmp_path / "plain")
    with pytest.raises((ConfigError, ModelError), match=words):
        read_sb3(path, environment, **options)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"physics": "another"}, "was trained with physics another"),
        ({"observation_layout": "another"}, "was trained with observation layout another"),
        ({"action_repeat": "many"}, r"action_repeat must be a whole number.*Export the model again"),
        ({"wheels": 3}, r"unknown key 'wheels'.*Export the model again"),
    ],
)
def test_an_exported_racer_of_another_version_is_refused(exported_run, tmp_path, about, words):
    [path] = export_sb3(exported_run("recipe"), tmp_path / "plain")
    learner = PPO.load(path)
    learner.policy_kwargs["features_extractor_kwargs"]["about"] |= about
    learner.save(tmp_path / "changed.zip")
    with pytest.raises(ModelError, match=words):
        read_sb3(tmp_path / "changed.zip", RACER_ID)


# --- import of a normalizer ---


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


def test_a_model_without_a_normalizer_gives_no_warning(cartpole_zip, caplog):
    caplog.set_level(logging.DEBUG)
    read_sb3(cartpole_zip, "CartPole-v1")
    assert caplog.text == ""


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


# --- import of a racer ---


@pytest.fixture(scope="module")
def racer_zip(tmp_path_factory):
    path = tmp_path_factory.mktemp("racer") / "plain.zip"
    plain_model("ppo", RACER_ID).save(path)
    return path


@pytest.mark.parametrize("env", [RACER_ID, REMOTE_RACER_ID])
def test_a_model_with_the_spaces_of_the_racer_gets_the_current_physics(racer_zip, env):
    card = read_sb3(racer_zip, env, racer={"action_repeat": 4}).card
    assert (card.environment, card.physics, card.observation_layout) == (
        RACER_ID,
        PHYSICS_VERSION,
        OBSERVATION_LAYOUTS["rays"],
    )
    assert (card.action_repeat, card.stack, card.lap_fourier, card.track) == (4, 1, 0, None)


@pytest.mark.parametrize("racer", [{"stack": 2}, {"lap_fourier": 1}])
def test_a_racer_with_other_observations_is_refused(racer_zip, racer):
    with pytest.raises(
        ModelError, match=r"its observations are Box.*\(14,\).*--observation, --stack and --lap-fourier"
    ):
        read_sb3(racer_zip, RACER_ID, racer=racer)


def test_a_model_of_another_environment_is_not_a_racer(cartpole_zip):
    with pytest.raises(ModelError, match=r"its observations are Box.*\(4,\).*--env"):
        read_sb3(cartpole_zip, RACER_ID)


def test_options_of_the_racer_are_refused_for_other_environments(cartpole_zip):
    with pytest.raises(ConfigError, match=r"stack: only for hotlap/Racer-v0.*CartPole-v1"):
        read_sb3(cartpole_zip, "CartPole-v1", racer={"stack": 2})


# --- refusals ---


class OwnPolicy(ActorCriticPolicy):
    """A user's own policy class."""


@pytest.mark.parametrize(
    ("learner", "module"),
    [
        (lambda: PPO(OwnPolicy, "CartPole-v1"), ".*test_sb3_exchange"),
        (lambda: DQN("MlpPolicy", "CartPole-v1", buffer_size=10), "stable_baselines3.dqn.policies"),
    ],
    ids=["own policy", "unknown algorithm"],
)
def test_a_policy_class_that_hotlap_does_not_have_is_refused(tmp_path, learner, module):
    learner().save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=f"its policy is from {module}; only policies of PPO, A2C and SAC"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1")


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
    plain_model(algorithm, "Pendulum-v1", **settings).save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=words):
        read_sb3(tmp_path / "plain.zip", "Pendulum-v1")


def test_weights_that_are_not_finite_are_refused(tmp_path):
    learner = plain_model("ppo", "CartPole-v1")
    learner.policy.action_net.bias.data[0] = float("nan")
    learner.save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=r"'action_net.bias' is not finite"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1")


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
def test_a_damaged_model_is_refused_in_one_line(cartpole_zip, members):
    with zipfile.ZipFile(cartpole_zip) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(cartpole_zip, "w") as archive:
        for name, content in {**kept, **members}.items():
            if content is not None:
                archive.writestr(name, content)
    with pytest.raises(ModelError, match=r"^[^\n]*plain.zip: cannot be loaded as a model of stable-baselines3[^\n]*$"):
        read_sb3(cartpole_zip, "CartPole-v1")


def test_other_files_are_refused(tmp_path, exported_run):
    (tmp_path / "text.zip").write_text("hello")
    for path in (tmp_path / "text.zip", tmp_path):
        with pytest.raises(ModelError, match="cannot be loaded as a model of stable-baselines3"):
            read_sb3(path, "CartPole-v1")
    with pytest.raises(InputFileError, match="no such file"):
        read_sb3(tmp_path / "nowhere.zip", "CartPole-v1")
    with pytest.raises(ModelError, match="is a model of Hotlap already"):
        read_sb3(exported_run("a2c-cartpole-bare").path, "CartPole-v1")

"""Export to plain stable-baselines3: the same actions there, and the same model when it is imported again."""

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import ConfigError, ModelError, OutputFileError
from hotlap.models.actor import pack_model
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import ModelFile
from hotlap.models.policy import LearnedPolicy
from hotlap.models.sb3_exchange import export_sb3, read_sb3
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv

RACERS = ["recipe", "ppo-racer", "sac-racer"]
OTHERS = ["ppo-cartpole", "a2c-cartpole-bare"]
CLOSE = 1e-5  # sines of PyTorch and NumPy differ in the last bit

pytestmark = pytest.mark.timeout(60)  # the first test that needs a run waits for its training


@pytest.fixture
def exported(exported_run, tmp_path):
    """A model of `exported_run` by its key, and the files that it was exported to."""
    return lambda name: (exported_run(name), *export_sb3(exported_run(name), tmp_path / f"{name}-plain"))


def envs_of(model: ModelFile) -> Any:
    return DummyVecEnv([lambda: gym.make(model.card.environment)])


def saved_data(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("data"))


@pytest.mark.parametrize("name", RACERS)
def test_a_racer_takes_what_the_environment_gives_and_acts_as_our_policy(exported, name):
    model, path = exported(name)
    card = model.card
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


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_act_bit_for_bit_as_our_policy(exported, name):
    model, path, *normalizer = exported(name)
    learner = ALGORITHMS[model.card.algorithm].sb3_class.load(path)
    env = envs_of(model)
    env.seed(5)
    if model.card.clip_obs is not None:
        env = VecNormalize.load(str(normalizer[0]), env)
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
for name, algorithm, path in zip(*[iter(sys.argv[1:])] * 3):
    learner = {"ppo": PPO, "sac": SAC}[algorithm].load(path, device="cpu")
    actions, _ = learner.predict(np.load(f"{name}-obs.npy"), deterministic=True)
    np.save(f"{name}-actions.npy", actions)
"""


def test_racers_are_loaded_and_act_without_hotlap(exported, tmp_path):
    arguments, observations = [], {}
    for name in RACERS:
        model, path = exported(name)
        arguments += [name, model.card.algorithm, str(path)]
        observations[name] = np.random.default_rng(0).random((20, *model.card.raw_observations.shape), np.float32)
        np.save(tmp_path / f"{name}-obs.npy", observations[name])
    subprocess.run([sys.executable, "-c", WITHOUT_HOTLAP, *arguments], check=True, cwd=tmp_path, timeout=50)
    for name, obs in observations.items():
        model, path = exported(name)
        ours, _ = ALGORITHMS[model.card.algorithm].sb3_class.load(path).predict(obs, deterministic=True)
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}-actions.npy"), ours)


def test_the_files_of_other_environments_hold_classes_of_sb3_only(exported):
    _, zip_path, pickle_path = exported("ppo-cartpole")
    items = [item for item in saved_data(zip_path).values() if isinstance(item, dict) and ":serialized:" in item]
    pickles = [base64.b64decode(item[":serialized:"]) for item in items]
    assert len(pickles) > 5
    assert [content for content in [*pickles, pickle_path.read_bytes()] if b"hotlap" in content] == []


def test_the_normalizer_is_frozen(exported):
    model, _, pickle_path = exported("ppo-cartpole")
    env = VecNormalize.load(str(pickle_path), envs_of(model))
    assert (env.training, env.norm_reward, env.norm_obs) == (False, False, True)
    assert env.ret_rms.count == float(model.normalizer["return_count"]) > 100
    before = env.obs_rms.mean.copy()
    env.reset()
    env.step(np.zeros(1, np.int64))
    np.testing.assert_array_equal(env.obs_rms.mean, before)


def test_the_replay_buffer_has_the_default_size(exported):
    _, zip_path = exported("sac-racer")
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


# --- there and back ---


@pytest.mark.parametrize("name", [*RACERS, *OTHERS])
def test_export_and_import_give_the_same_model(exported, name):
    model, path, *normalizer = exported(name)
    card = model.card
    back = read_sb3(path, card.environment, vecnormalize=normalizer[0] if normalizer else None)
    changed = {"seed", "config_digest", "trained_on"}
    same = {key: value for key, value in card.as_plain().items() if key not in changed}
    assert {key: value for key, value in back.card.as_plain().items() if key not in changed} == same
    assert set(back.weights) == set(model.weights)
    for arrays, others in ((model.weights, back.weights), (model.normalizer, back.normalizer)):
        for key in others:
            np.testing.assert_array_equal(arrays[key], others[key])
    if card.is_racer:
        np.testing.assert_array_equal(pack_model(back).numbers, pack_model(model).numbers)


def test_an_exported_racer_keeps_what_the_user_does_not_say(exported):
    model, path = exported("ppo-racer")
    same = read_sb3(path, RACER_ID, racer={"track": "track-01"}).card
    assert (same.action_repeat, same.track_digest) == (3, model.card.track_digest)
    other = read_sb3(path, REMOTE_RACER_ID, racer={"track": "track-02", "action_repeat": 2}).card
    assert (other.track, other.track_digest, other.action_repeat, other.lap_fourier) == ("track-02", None, 2, 3)


@pytest.mark.parametrize(
    ("environment", "options", "words"),
    [
        ("CartPole-v1", {}, r"is a model of hotlap/Racer-v0\. Leave out --env"),
        (RACER_ID, {"vecnormalize": Path("x.pkl")}, r"has its normalizer inside\. Leave out --vecnormalize"),
        (RACER_ID, {"racer": {"stack": 2}}, r"its observations are .*Leave out --stack"),
        (RACER_ID, {"racer": {"lap_fourier": 7}}, "does not fit"),
    ],
)
def test_options_that_contradict_an_exported_racer_are_refused(exported, environment, options, words):
    _, path = exported("recipe")
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
def test_an_exported_racer_of_another_version_is_refused(exported, tmp_path, about, words):
    _, path = exported("recipe")
    learner = PPO.load(path)
    learner.policy_kwargs["features_extractor_kwargs"]["about"] |= about
    learner.save(tmp_path / "changed.zip")
    with pytest.raises(ModelError, match=words):
        read_sb3(tmp_path / "changed.zip", RACER_ID)


def test_a_model_of_ours_is_not_imported(exported_run):
    with pytest.raises(ModelError, match="is a model of Hotlap already"):
        read_sb3(exported_run("a2c-cartpole-bare").path, "CartPole-v1")

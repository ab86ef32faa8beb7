"""Exchange with plain stable-baselines3: what it loads plays as ours does, what it saved plays here, nothing is run."""

import base64
import io
import json
import logging
import pickle
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.errors import ConfigError, InputFileError, ModelError, OutputFileError
from hotlap.models.exchange import spaces_of
from hotlap.models.model_file import ModelFile, read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.models.sb3_exchange import export_sb3, read_sb3, write_model
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.vec_envs.racer import RacerVecEnv
from shaped_worlds import SHAPES, registered
from tiny_runs import tiny_config, train

PLAIN = {"ppo": PPO, "a2c": A2C, "sac": SAC}
BARE = {"obs": False, "reward": False}
SEEN = {"stack": 2, "lap_fourier": 3, "action_repeat": 3}

RUNS: dict[str, dict[str, Any]] = {
    "ppo-racer": {
        "algo": "ppo", "num_envs": 4, "racer": SEEN, "policy": {"net_arch": [16, 8], "activation": "elu"},
        "normalize": {"clip_obs": 1.5},
    },
    "sac-racer": {"algo": "sac", "num_envs": 4},
    "a2c-cartpole-bare": {"algo": "a2c", "env": "CartPole-v1", "normalize": BARE},
}  # fmt: skip

pytestmark = pytest.mark.timeout(60)  # the first to ask for a run waits for its training


@pytest.fixture(scope="module")
def trained(compiled, tmp_path_factory):
    """The final model of a run, by its name among RUNS."""

    @cache
    def model(name: str) -> ModelFile:
        config, folder = tiny_config(**RUNS[name]), tmp_path_factory.mktemp(name)
        train(config, folder)
        return read_model(folder / f"{config.experiment_id}_model.zip")

    return model


def own_policy(model: ModelFile) -> LearnedPolicy:
    return LearnedPolicy.from_file(model, *spaces_of(model.card))


def worlds_of(model: ModelFile) -> Any:
    card = model.card
    if not card.is_racer:
        return DummyVecEnv([lambda: gym.make(card.environment)])
    return RacerVecEnv(
        3, card.track, action_repeat=card.action_repeat, stack=card.stack, lap_fourier=card.lap_fourier
    )  # fmt: skip


def saved_data(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("data"))


# --- export ---


@pytest.mark.parametrize("name", RUNS)
def test_plain_sb3_plays_it_bit_for_bit_as_we_do(trained, tmp_path, name):
    model = trained(name)
    files = export_sb3(model, tmp_path / "plain")
    learner = PLAIN[model.card.algorithm].load(files[0])
    assert type(learner) is PLAIN[model.card.algorithm]
    assert learner.num_timesteps == 100
    env = worlds_of(model)
    env.seed(5)
    if model.card.clip_obs is not None:
        env = VecNormalize.load(str(files[1]), env)
    policy, obs = own_policy(model), env.reset()
    for _ in range(40):
        theirs, _ = learner.predict(obs, deterministic=True)
        raw = env.get_original_obs() if isinstance(env, VecNormalize) else obs
        np.testing.assert_array_equal(theirs, policy.act(raw))
        obs, *_ = env.step(theirs)
    env.close()


@pytest.mark.parametrize(("name", "count"), [("ppo-racer", 2), ("a2c-cartpole-bare", 1)])
@pytest.mark.parametrize("given", ["plain", "plain.zip"])
def test_a_normalizer_lies_beside_it_where_there_is_one(trained, tmp_path, name, count, given):
    files = export_sb3(trained(name), tmp_path / given)
    assert files == [tmp_path / "plain.zip", tmp_path / "plain_vecnormalize.pkl"][:count]
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_the_files_need_no_hotlap_to_be_loaded(trained, tmp_path):
    zipped, pickled = export_sb3(trained("ppo-racer"), tmp_path / "plain")
    pickles = [base64.b64decode(item[":serialized:"]) for item in saved_data(zipped).values() if is_pickled(item)]
    assert len(pickles) > 5
    assert [content for content in [*pickles, pickled.read_bytes()] if b"hotlap" in content] == []


def is_pickled(item: Any) -> bool:
    return isinstance(item, dict) and ":serialized:" in item


def test_the_normalizer_is_set_for_playing(trained, tmp_path):
    model = trained("ppo-racer")
    _, pickled = export_sb3(model, tmp_path / "plain")
    env = VecNormalize.load(str(pickled), worlds_of(model))
    assert (env.training, env.norm_reward, env.norm_obs) == (False, False, True)
    assert env.ret_rms.count == float(model.normalizer["return_count"]) > 100
    before = env.obs_rms.mean.copy()
    env.reset()
    env.step(np.zeros((3, 3), np.float32))
    np.testing.assert_array_equal(env.obs_rms.mean, before)


def test_a_replay_buffer_of_the_usual_size_awaits_whoever_trains_on(trained, tmp_path):
    [zipped, _] = export_sb3(trained("sac-racer"), tmp_path / "plain")
    assert saved_data(zipped)["buffer_size"] == 1_000_000


def test_exporting_disturbs_no_generator(trained, tmp_path):
    model = trained("sac-racer")
    torch.manual_seed(3)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    export_sb3(model, tmp_path / "plain")
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_an_older_normalizer_in_the_same_place_is_pointed_out(trained, tmp_path, caplog):
    (tmp_path / "plain_vecnormalize.pkl").write_bytes(b"older")
    export_sb3(trained("a2c-cartpole-bare"), tmp_path / "plain")
    assert "plain_vecnormalize.pkl: belongs to another model" in caplog.text


def test_a_place_that_cannot_be_written_is_refused(trained, tmp_path):
    with pytest.raises(OutputFileError, match=r"nowhere.*cannot be written"):
        export_sb3(trained("ppo-racer"), tmp_path / "nowhere" / "plain")


# --- import ---


def plain_model(algorithm: str, env: Any, **settings: Any) -> Any:
    """A model of plain SB3, untrained but with weights that act."""
    settings = {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [8]}, **settings}
    learner = PLAIN[algorithm](env=env, seed=11, **settings)
    for parameter in learner.policy.parameters():
        nn.init.normal_(parameter, std=0.7)
    learner.num_timesteps = 1234
    return learner


@pytest.fixture
def cartpole(tmp_path):
    path = tmp_path / "plain.zip"
    plain_model("ppo", "CartPole-v1").save(path)
    return path


POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "list": {"net_arch": [16, 8]},
    "same": {"net_arch": {"pi": [8, 8], "vf": [8, 8], "qf": [8, 8]}},
    "elu": {"net_arch": [8], "activation_fn": nn.ELU},
    "relu": {"net_arch": [8], "activation_fn": nn.ReLU, "ortho_init": False},
    "optimizer": {"net_arch": [8], "optimizer_class": torch.optim.AdamW, "optimizer_kwargs": {"weight_decay": 0.1}},
}


@pytest.mark.parametrize(
    ("algorithm", "env", "policy"),
    [
        *[("ppo", "CartPole-v1", name) for name in POLICIES],
        *[("a2c", "Pendulum-v1", name) for name in ("default", "elu")],
        *[("sac", "Pendulum-v1", name) for name in ("list", "same", "elu")],
        ("ppo", RACER_ID, "default"),
    ],
)
def test_a_model_of_plain_sb3_acts_here_bit_for_bit_as_there(tmp_path, algorithm, env, policy):
    settings = dict(POLICIES[policy])
    if algorithm == "sac":
        settings.pop("ortho_init", None)
    learner = plain_model(algorithm, env, policy_kwargs=settings)
    learner.save(tmp_path / "plain.zip")
    write_model(tmp_path / "ours.zip", read_sb3(tmp_path / "plain.zip", env))
    model = read_model(tmp_path / "ours.zip")
    assert (model.card.algorithm, model.card.environment) == (algorithm, env)
    assert (model.card.step, model.card.seed) == (1234, 11)
    assert model.card.trained_on.startswith("stable-baselines3 2.")
    shape = learner.observation_space.shape
    obs = np.random.default_rng(0).normal(0.0, 2.0, (500, *shape)).astype(np.float32)
    theirs, _ = learner.predict(obs, deterministic=True)
    assert len(np.unique(theirs)) > 1
    np.testing.assert_array_equal(own_policy(model).act(obs), theirs)


@pytest.mark.parametrize("name", SHAPES)
def test_whatever_it_sees_and_does_it_acts_the_same_there_here_and_there_again(tmp_path, name):
    space, _ = SHAPES[name]
    policy = {"Keys-v0": "MultiInputPolicy", "Pictures-v0": "CnnPolicy"}.get(name, "MlpPolicy")
    with registered():
        learner = plain_model("ppo", name, policy=policy)
        learner.save(tmp_path / "plain.zip")
        write_model(tmp_path / "ours.zip", read_sb3(tmp_path / "plain.zip", name))
        model = read_model(tmp_path / "ours.zip")
        [again] = export_sb3(model, tmp_path / "again")
        space.seed(0)
        rows = [space.sample() for _ in range(30)]
        obs = {key: np.array([row[key] for row in rows]) for key in rows[0]} if name == "Keys-v0" else np.array(rows)
        theirs, _ = learner.predict(obs, deterministic=True)
        assert len(np.unique(theirs, axis=0)) > 1
        np.testing.assert_array_equal(own_policy(model).act(obs), theirs)
        np.testing.assert_array_equal(PPO.load(again).predict(obs, deterministic=True)[0], theirs)


@pytest.fixture
def normalized(tmp_path):
    """A model of plain SB3 behind a normalizer that has seen a little, its files and the normalizer itself."""
    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]), clip_obs=3.0)
    learner = plain_model("a2c", env)
    learner.learn(50)
    learner.save(tmp_path / "plain.zip")
    env.save(str(tmp_path / "plain.pkl"))
    return learner, env


def test_with_its_normalizer_it_sees_what_it_saw_there(tmp_path, normalized):
    learner, env = normalized
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "plain.pkl")
    write_model(tmp_path / "ours.zip", model)
    model = read_model(tmp_path / "ours.zip")
    assert model.card.clip_obs == 3.0
    raw = np.random.default_rng(0).normal(0.0, 2.0, (500, 4)).astype(np.float32)
    theirs, _ = learner.predict(env.normalize_obs(raw), deterministic=True)
    np.testing.assert_array_equal(own_policy(model).act(raw), theirs)
    assert (learner.predict(raw, deterministic=True)[0] != theirs).any()


def test_a_normalizer_forgotten_is_pointed_out(tmp_path, normalized, caplog):
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1")
    assert model.card.clip_obs is None
    assert "plain.zip was trained behind a VecNormalize" in caplog.text


def test_no_normalizer_no_word_about_it(cartpole, caplog):
    caplog.set_level(logging.DEBUG)
    read_sb3(cartpole, "CartPole-v1")
    assert caplog.text == ""


def test_a_normalizer_of_rewards_alone_leaves_observations_as_they_are(tmp_path, normalized):
    _, env = normalized
    env.norm_obs = False
    env.save(str(tmp_path / "plain.pkl"))
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "plain.pkl")
    assert model.card.clip_obs is None
    assert "obs_mean" not in model.normalizer


def test_a_normalizer_without_a_limit_has_none_here(tmp_path, normalized):
    learner, env = normalized
    env.clip_obs = np.inf
    env.save(str(tmp_path / "plain.pkl"))
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "plain.pkl")
    write_model(tmp_path / "ours.zip", model)
    raw = np.random.default_rng(0).normal(0.0, 1e5, (500, 4)).astype(np.float32)
    theirs, _ = learner.predict(env.normalize_obs(raw), deterministic=True)
    np.testing.assert_array_equal(own_policy(read_model(tmp_path / "ours.zip")).act(raw), theirs)


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_normalizers_of_other_pythons_and_numpys_are_read(tmp_path, normalized, protocol):
    _, env = normalized
    content = pickle.dumps(env, protocol)
    if protocol == 3:  # whose names stand alone, so that they can be changed to those of NumPy 1
        content = content.replace(b"numpy._core.", b"numpy.core.")
        assert b"numpy.core.multiarray\n" in content
    (tmp_path / "other.pkl").write_bytes(content)
    model = read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "other.pkl")
    np.testing.assert_array_equal(model.normalizer["obs_mean"], env.obs_rms.mean)
    np.testing.assert_array_equal(model.normalizer["obs_var"], env.obs_rms.var)


@pytest.mark.parametrize("name", ["ppo-racer", "sac-racer", "a2c-cartpole-bare"])
def test_there_and_back_again_it_is_the_same_model(trained, tmp_path, name):
    model = trained(name)
    files = export_sb3(model, tmp_path / "plain")
    card = model.card
    seen = {"track": card.track, **{key: getattr(card, key) for key in SEEN}} if card.is_racer else {}
    back = read_sb3(files[0], card.environment, vecnormalize=files[1] if files[1:] else None, seen=seen)
    changed = {"seed", "config_digest", "trained_on"}
    same = {key: value for key, value in card.as_plain().items() if key not in changed}
    assert {key: value for key, value in back.card.as_plain().items() if key not in changed} == same
    for arrays, others in ((model.weights, back.weights), (model.normalizer, back.normalizer)):
        for key in others:
            np.testing.assert_array_equal(arrays[key], others[key])
    assert set(back.weights) == set(model.weights)


@pytest.mark.parametrize("env", [RACER_ID, REMOTE_RACER_ID])
def test_a_model_that_sees_and_does_what_the_racers_do_gets_todays_physics(tmp_path, env):
    plain_model("ppo", RACER_ID).save(tmp_path / "plain.zip")
    card = read_sb3(tmp_path / "plain.zip", env, seen={"action_repeat": 4}).card
    assert (card.environment, card.physics, card.observation_layout) == (RACER_ID, PHYSICS_VERSION, OBSERVATION_LAYOUT)
    assert (card.action_repeat, card.stack, card.lap_fourier, card.track) == (4, 1, 0, None)


@pytest.mark.parametrize("seen", [{"stack": 2}, {"lap_fourier": 1}])
def test_one_that_sees_something_else_does_not(tmp_path, seen):
    plain_model("ppo", RACER_ID).save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=r"its observations are Box \(_shape \[14\]\).*--stack and --lap-fourier"):
        read_sb3(tmp_path / "plain.zip", RACER_ID, seen=seen)


def test_another_environments_model_is_no_racer(cartpole):
    with pytest.raises(ModelError, match=r"its observations are Box \(_shape \[4\]\); those of hotlap/Racer-v0"):
        read_sb3(cartpole, RACER_ID)


def test_how_the_racer_saw_is_no_matter_elsewhere(cartpole):
    with pytest.raises(ConfigError, match=r"stack: belongs to hotlap/Racer-v0.*CartPole-v1"):
        read_sb3(cartpole, "CartPole-v1", seen={"stack": 2})


# --- nothing in the files is run ---


class Trap:
    """Makes a folder where it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (Path.mkdir, (self.place,))


def rewritten(path: Path, **members: bytes) -> None:
    """Replace members of a zip; `data=b"…"` becomes the new content of `data`."""
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**kept, **members}.items():
            if content is not None:
                archive.writestr(name, content)


def edited(path: Path, **items: Any) -> None:
    """Change entries of a model's data."""
    rewritten(path, data=json.dumps({**saved_data(path), **items}).encode())


def test_the_trap_does_snap(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


def test_pickles_inside_the_data_are_left_alone(tmp_path, cartpole):
    data = saved_data(cartpole)
    trap = base64.b64encode(pickle.dumps(Trap(tmp_path / "sprung"))).decode()
    edited(cartpole, **{key: {**item, ":serialized:": trap} for key, item in data.items() if is_pickled(item)})
    read_sb3(cartpole, "CartPole-v1")
    assert not (tmp_path / "sprung").exists()


def test_a_trap_among_the_weights_does_not_snap(tmp_path, cartpole):
    content = io.BytesIO()
    torch.save({"action_net.weight": Trap(tmp_path / "sprung")}, content)
    rewritten(cartpole, **{"policy.pth": content.getvalue()})
    with pytest.raises(ModelError, match="is no model that stable-baselines3 saved"):
        read_sb3(cartpole, "CartPole-v1")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("place", ["obs_rms", "observation_space", "more"])
def test_a_trap_in_the_normalizer_does_not_snap(tmp_path, normalized, place):
    _, env = normalized
    setattr(env, place, Trap(tmp_path / "sprung"))
    env.save(str(tmp_path / "trap.pkl"))
    if place == "obs_rms":
        with pytest.raises(ModelError, match=r"trap.pkl: is no VecNormalize over plain observations"):
            read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "trap.pkl")
    else:
        read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "trap.pkl")
    assert not (tmp_path / "sprung").exists()


# --- refusals ---


class OwnPolicy(ActorCriticPolicy):
    """Acts the other way round."""


def test_a_policy_of_somebodys_own_is_refused(tmp_path):
    PPO(OwnPolicy, "CartPole-v1").save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=r"its policy is of .*test_sb3_exchange; only the library's own"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1")


def test_an_algorithm_that_we_have_not_is_refused(tmp_path):
    DQN("MlpPolicy", "CartPole-v1", buffer_size=10).save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=r"its policy is of stable_baselines3.dqn.policies"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy_kwargs": {"net_arch": {"pi": [8], "vf": [4]}}}, r"layers \[8\] to act and \[4\] to value"),
        ({"policy_kwargs": {"net_arch": {"pi": [8]}}}, r"layers \[8\] to act and \[\] to value"),
        ({"policy_kwargs": {"activation_fn": nn.LeakyReLU}}, r"activation must be one of .*LeakyReLU"),
        ({"policy_kwargs": {"features_extractor_kwargs": {}}}, "its policy has features_extractor_kwargs"),
        ({"use_sde": True}, "its policy has use_sde"),
    ],
)
def test_a_policy_that_ours_cannot_be_is_refused(tmp_path, settings, words):
    plain_model("a2c", "Pendulum-v1", **settings).save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match=words):
        read_sb3(tmp_path / "plain.zip", "Pendulum-v1")


def test_a_third_critic_is_refused(tmp_path):
    plain_model("sac", "Pendulum-v1", policy_kwargs={"net_arch": [4], "n_critics": 3}).save(tmp_path / "plain.zip")
    with pytest.raises(ModelError, match="its policy has n_critics"):
        read_sb3(tmp_path / "plain.zip", "Pendulum-v1")


def test_the_way_layers_were_written_before_is_understood(cartpole):
    edited(cartpole, policy_kwargs={"net_arch": [{"pi": [8], "vf": [8]}]})
    assert read_sb3(cartpole, "CartPole-v1").card.policy.net_arch == (8,)


def test_spaces_of_the_gym_before_gymnasium_are_understood(cartpole):
    data = saved_data(cartpole)
    seen, done = data["observation_space"], data["action_space"]
    older = {key: seen[key] for key in ("dtype", "_shape", "low", "high")} | {":type:": "<class 'gym.spaces.box.Box'>"}
    done = {**done, ":type:": "<class 'gym.spaces.discrete.Discrete'>", "n": 2}
    edited(cartpole, observation_space=older, action_space=done)
    assert read_sb3(cartpole, "CartPole-v1").card.action_space == "Discrete(2)"


def test_layers_that_are_not_as_told_are_refused(cartpole):
    edited(cartpole, policy_kwargs={"net_arch": [16]})
    with pytest.raises(ModelError, match="do not fit the network"):
        read_sb3(cartpole, "CartPole-v1")


def test_actions_with_other_bounds_are_refused(tmp_path):
    plain_model("sac", "Pendulum-v1").save(tmp_path / "plain.zip")
    space = saved_data(tmp_path / "plain.zip")["action_space"]
    assert space["high"] == "[2.]"
    edited(tmp_path / "plain.zip", action_space={**space, "high": "[1.]"})
    with pytest.raises(ModelError, match=r"its actions are Box \(_shape \[1\], low \[-2.\], high \[1.\]\).*--env"):
        read_sb3(tmp_path / "plain.zip", "Pendulum-v1")


def test_choices_are_no_numbers(tmp_path, cartpole):
    with pytest.raises(ModelError, match=r"its observations are Box \(_shape \[4\]\); those of Acrobot-v1"):
        read_sb3(cartpole, "Acrobot-v1")
    edited(cartpole, action_space={":type:": "<class 'gymnasium.spaces.multi_binary.MultiBinary'>", "n": 2})
    with pytest.raises(ModelError, match=r"its actions are MultiBinary \(n 2\); those of CartPole-v1 are Discrete"):
        read_sb3(cartpole, "CartPole-v1")


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
        {"data": b"{"},
        {"data": b"[" * 100_000},
        {"policy.pth": b""},
        {"policy.pth": b"not a pickle"},
    ],
)
def test_a_damaged_model_is_refused(cartpole, members):
    rewritten(cartpole, **members)
    with pytest.raises(ModelError, match=r"plain.zip: is no model that stable-baselines3 saved"):
        read_sb3(cartpole, "CartPole-v1")


def test_data_that_say_nothing_are_refused(cartpole):
    rewritten(cartpole, data=b"{}")
    with pytest.raises(ModelError, match="its policy is of None"):
        read_sb3(cartpole, "CartPole-v1")


def test_what_is_no_model_is_refused(tmp_path, trained):
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(ModelError, match="is no model that stable-baselines3 saved"):
        read_sb3(tmp_path / "text.zip", "CartPole-v1")
    with pytest.raises(InputFileError, match="no such file"):
        read_sb3(tmp_path / "nowhere.zip", "CartPole-v1")
    with pytest.raises(ModelError, match="cannot be read"):
        read_sb3(tmp_path, "CartPole-v1")
    model = trained("a2c-cartpole-bare")
    with pytest.raises(ModelError, match="is a model of Hotlap already"):
        read_sb3(model.path, "CartPole-v1")


def test_what_is_no_normalizer_is_refused(tmp_path, normalized):
    _, env = normalized

    def refused(words: str) -> None:
        with pytest.raises(ModelError, match=words):
            read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "other.pkl")

    for content in (b"", b"hello", pickle.dumps([1, 2]), pickle.dumps(env)[:-30]):
        (tmp_path / "other.pkl").write_bytes(content)
        refused("other.pkl: is no VecNormalize over plain observations")
    env.epsilon = 1e-3
    env.save(str(tmp_path / "other.pkl"))
    refused(r"its epsilon is 0.001; Hotlap's normalizers have 1e-08")
    env.epsilon = 1e-8
    env.obs_rms.mean = env.obs_rms.mean[:3]
    env.save(str(tmp_path / "other.pkl"))
    refused("its normalizer does not fit its observations")
    env.obs_rms.mean = np.full(4, np.nan)
    env.save(str(tmp_path / "other.pkl"))
    refused("'obs_mean' is not finite")
    (tmp_path / "other.pkl").unlink()
    with pytest.raises(InputFileError, match=r"other.pkl: no such file"):
        read_sb3(tmp_path / "plain.zip", "CartPole-v1", vecnormalize=tmp_path / "other.pkl")


def test_a_model_that_came_over_can_leave_again(tmp_path, cartpole):
    model = read_sb3(cartpole, "CartPole-v1")
    [again] = export_sb3(replace(model, path=Path("ours.zip")), tmp_path / "again")
    obs = np.random.default_rng(0).normal(0.0, 2.0, (500, 4)).astype(np.float32)
    first, second = (PPO.load(path).predict(obs, deterministic=True)[0] for path in (cartpole, again))
    np.testing.assert_array_equal(first, second)

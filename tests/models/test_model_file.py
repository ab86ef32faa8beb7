"""Model files: the card, and refusals."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.registration import RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUTS, action_space
from hotlap.errors import ArchiveError, ConfigError, InputFileError, ModelError
from hotlap.models.archive import Archive, read_archive, tensors_digest, write_archive
from hotlap.models.model_file import (
    ModelCard,
    PolicySettings,
    card_of,
    read_model,
    refuse_foreign,
    write_model,
)
from hotlap.models.space_data import space_data
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track

CARD = ModelCard(
    algorithm="ppo",
    environment="CartPole-v1",
    seed=3,
    step=100,
    config_digest="c" * 64,
    weights_digest="w" * 64,
    policy=PolicySettings(),
    observation_space=space_data(spaces.Box(-np.inf, np.inf, (4,))),
    action_space=space_data(spaces.Discrete(2)),
)
RACER_CARD = replace(
    CARD, environment=RACER_ID, physics=PHYSICS_VERSION, observation_layout=OBSERVATION_LAYOUTS["rays"]
)


def forge(source: Path, target: Path, groups=None, **card) -> Path:
    """A file like `source`, with these fields of the card and these groups of tensors changed (None: left out)."""
    whole = read_archive(source)
    about = {**whole.about, "card": {**whole.about["card"], **card}}
    tensors = {name: group for name, group in {**whole.tensors, **(groups or {})}.items() if group is not None}
    write_archive(target, Archive(about, whole.documents, tensors))
    return target


def refusal(path: Path, kind: type[Exception] = ModelError) -> str:
    """The error about a model file, checked to be one line that names it."""
    with pytest.raises(kind) as caught:
        read_model(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert text[-1] in ".?"
    return text.removeprefix(f"{path}: ")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.zip"


# --- the card ---


def test_the_card_of_a_racer_holds_its_settings(racer):
    card = read_model(racer.path).card
    options, policy = racer.config.racer, racer.config.policy
    assert (card.algorithm, card.environment, card.seed, card.step) == ("ppo", RACER_ID, 42, 512)
    assert (card.physics, card.observation_layout) == (PHYSICS_VERSION, OBSERVATION_LAYOUTS["rays"])
    assert (card.track, card.action_repeat, card.stack, card.lap_fourier) == (options.track, 3, 2, 2)
    assert card.track_digest == track_digest(load_track(options.track).nodes)
    assert card.spaces == (stacked_observation_space(2, 2), action_space())
    assert card.policy == replace(policy, kind="MlpPolicy")
    assert card.clip_obs == 10.0
    assert card.config_digest == racer.config.digest()
    assert card.weights_digest == tensors_digest(read_model(racer.path).weights)


def test_the_card_of_another_environment_has_no_physics(cartpole):
    card = read_model(cartpole.path).card
    assert not card.is_racer
    assert (card.physics, card.observation_layout, card.track) == (None, None, None)
    assert card.clip_obs == 2.0
    assert card.action_space == {"kind": "Discrete", "n": 2, "start": 0}


def test_weights_and_statistics_are_those_of_the_learner(racer):
    found = read_model(racer.path)
    live = racer.model.policy.state_dict()
    assert set(found.weights) == set(live)
    for name, tensor in live.items():
        np.testing.assert_array_equal(found.weights[name], tensor.numpy())
    statistics = racer.model.get_vec_normalize_env().obs_rms
    np.testing.assert_array_equal(found.normalizer["obs_mean"], statistics.mean)
    np.testing.assert_array_equal(found.normalizer["obs_var"], statistics.var)


def test_a_model_without_a_normalizer_has_no_statistics(soft_racer):
    found = read_model(soft_racer.path)
    assert found.card.clip_obs is None
    assert found.normalizer == {}


def test_a_model_file_holds_no_replay_buffer(soft_racer):
    assert "replay" not in read_archive(soft_racer.path).tensors


@pytest.mark.parametrize(
    "card",
    [
        CARD,
        replace(RACER_CARD, track="track-02", action_repeat=3, stack=4, lap_fourier=8, clip_obs=10.0),
        replace(CARD, policy=PolicySettings("CnnPolicy", (64, 32), "relu", -0.5), env_args={"a": [1, {"b": None}]}),
    ],
    ids=["plain", "racer", "policy"],
)
def test_a_card_comes_back_from_plain_data(card):
    assert card_of({"card": card.as_plain()}, Path("x.zip")) == card


def test_a_written_model_comes_back(cartpole, path):
    model = read_model(cartpole.path)
    write_model(path, model)
    back = read_model(path)
    assert back.card == model.card
    for name in ("weights", "normalizer"):
        assert tensors_digest(getattr(back, name)) == tensors_digest(getattr(model, name))


def test_reading_a_model_file_needs_no_learning_library():
    code = (
        "import sys, hotlap.models.model_file, hotlap.runs.run_folder;"
        "print({'torch', 'stable_baselines3', 'tensorboard'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


# --- refusals ---


def test_another_physics_is_refused_with_both_names(racer, path):
    text = refusal(forge(racer.path, path, physics="0" * 16))
    assert text.startswith(f"was trained with physics {'0' * 16}; this version has {PHYSICS_VERSION}. Train it again")


def test_another_observation_layout_is_refused(racer, path):
    text = refusal(forge(racer.path, path, observation_layout="rays5"))
    known = " and ".join(OBSERVATION_LAYOUTS.values())
    assert text.startswith(f"was trained with observation layout rays5; this version has {known}.")


def test_a_racer_without_a_physics_version_is_refused(racer, path):
    assert "was trained with physics None" in refusal(forge(racer.path, path, physics=None))


def test_physics_do_not_matter_to_other_environments(cartpole, path):
    read_model(forge(cartpole.path, path, physics="0" * 16, observation_layout="x"))
    refuse_foreign(CARD, path)
    with pytest.raises(ModelError, match="physics"):
        refuse_foreign(replace(CARD, environment=RACER_ID), path)


@pytest.mark.parametrize("left", [None, {}, {"obs_mean": np.zeros(4)}, {"obs_var": np.ones(4)}])
def test_missing_statistics_are_refused(cartpole, path, left):
    text = refusal(forge(cartpole.path, path, groups={"normalizer": left}))
    assert text.startswith("was trained on normalized observations, but their statistics are missing.")


@pytest.mark.parametrize("left", [None, {}])
def test_a_file_without_a_policy_is_refused(cartpole, path, left):
    assert refusal(forge(cartpole.path, path, groups={"policy": left})).startswith("holds no policy.")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_and_statistics_that_are_not_finite_are_refused(cartpole, path, value):
    weights = {**read_model(cartpole.path).weights, "action_net.bias": np.array([0.0, value], np.float32)}
    assert refusal(forge(cartpole.path, path, groups={"policy": weights})).startswith("'action_net.bias' is not finite")
    statistics = {**read_model(cartpole.path).normalizer, "obs_var": np.array([value] * 4)}
    assert refusal(forge(cartpole.path, path, groups={"normalizer": statistics})).startswith("'obs_var' is not finite")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"algorithm": "dqn"}, "card: algorithm must be one of 'ppo', 'sac', 'a2c', got 'dqn'"),
        ({"colour": "red"}, "card: unknown key 'colour'"),
        ({"seed": "1"}, "card: seed must be a whole number"),
        ({"policy": {"net_arch": [10**9]}}, "card: policy: net_arch[0] must be from 1 to 65536"),
        ({"policy": 5}, "card: policy must be an object"),
        ({"action_repeat": 0}, "card: action_repeat must be from 1 to 60 ticks, got 0"),
        ({"stack": 10**9}, "card: stack must be from 1 to 16 observations"),
        ({"lap_fourier": -1}, "card: lap_fourier must be from 0 to 64"),
        ({"clip_obs": 0.0}, "card: clip_obs must be more than zero, got 0"),
        ({"env_args": [1]}, "card: env_args must be of type Mapping"),
        ({"action_space": "Discrete(2)"}, "card: action_space must be of type Mapping"),
        ({"action_space": {"kind": "Discrete"}}, "card: {'kind': 'Discrete'} does not describe a space"),
    ],
)
def test_a_bad_card_is_refused_with_the_key(cartpole, path, change, words):
    assert refusal(forge(cartpole.path, path, **change)).startswith(f"cannot read its card ({words}")


def test_a_card_without_a_required_field_is_refused(cartpole, path):
    whole = read_archive(cartpole.path)
    del whole.about["card"]["algorithm"]
    write_archive(path, whole)
    assert "'algorithm'" in refusal(path)


@pytest.mark.parametrize("about", [{}, {"card": None}, {"card": [1]}])
def test_a_file_without_a_card_is_refused(path, about):
    write_archive(path, Archive(about, {}, {"policy": {"w": np.zeros(1)}}))
    assert refusal(path).startswith("has no model card.")


def test_a_damaged_file_is_refused(cartpole, path):
    content = bytearray(cartpole.path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(bytes(content))
    refusal(path, ArchiveError)
    path.write_bytes(cartpole.path.read_bytes()[:-1])
    refusal(path, ArchiveError)
    path.write_bytes(b"PK")
    refusal(path, ArchiveError)


def test_a_missing_file_is_refused(path):
    assert refusal(path, InputFileError).startswith("no such file")


@pytest.mark.parametrize("width", [0, -1, 65_537])
def test_a_layer_width_out_of_range_is_refused(width):
    with pytest.raises(ConfigError, match=rf"net_arch\[\d\] must be from 1 to 65536, got {width}"):
        PolicySettings(net_arch=(8, width))

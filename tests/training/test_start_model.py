"""A run that starts from a trained model: its weights and statistics, its settings, and what does not fit."""

import numpy as np
import pytest

from hotlap.config import build, snake_case
from hotlap.errors import ConfigError, DriverError
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import read_model
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import RunFolder
from hotlap.training.learners import build_learner
from hotlap.training.start_model import load_start_model, start_options
from tiny_runs import ALGORITHMS, LUNAR, REMOTE_RACER, assert_same_run, skip_evaluation, tensors, tiny_config, train


@pytest.fixture(autouse=True)
def unevaluated(monkeypatch):
    skip_evaluation(monkeypatch)


@pytest.fixture
def trained(tmp_path):
    """Trains a run and returns its model file."""

    def train_one(algo="ppo", **changes):
        config = tiny_config(algo, seed=5, **changes)
        train(config, tmp_path / "first")
        return RunFolder(tmp_path / "first", config.experiment_id).model

    return train_one


def started(config):
    """The learner of a run before its first step."""
    learner = build_learner(config)
    load_start_model(config, learner)
    return learner


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_learner_begins_with_the_models_weights_and_statistics(trained, algo):
    model = read_model(trained(algo))
    config = tiny_config(algo, num_envs=3, seed=6, start_model=str(model.path))
    learner = started(config)
    found = learner.policy()
    for name, weights in found.weights.items():
        np.testing.assert_array_equal(weights, model.weights[name], err_msg=name)
    for name in ("obs_mean", "obs_var", "obs_count"):
        np.testing.assert_array_equal(found.normalizer[name], model.normalizer[name], err_msg=name)
    assert learner.num_timesteps == 0
    without = started(tiny_config(algo, num_envs=3, seed=6)).policy().weights
    assert any((weights != without[name]).any() for name, weights in found.weights.items())


def test_the_settings_that_describe_the_model_come_from_its_card():
    options = start_options("generalist", {"racer.track": "track-02", "steps": 5000, "algo": None})
    config = resolve_config(None, options)
    assert (config.policy.net_arch, config.policy.action_head) == ((256, 256), "pedal_axis")
    assert (config.racer.observation, config.racer.lap_fourier, config.racer.action_repeat) == ("road", 0, 4)
    assert (config.racer.track, config.steps, config.start_model) == ("track-02", 5000, "generalist")
    assert config.ppo == resolve_config("racer-ppo", {}).ppo
    shipped = started(build(RunConfig, {**config.as_plain(), "num_envs": 2}, "test", snake_case))
    assert tensors_digest(shipped.policy().weights) == config.start_weights


def test_a_model_of_another_environment_brings_its_own(trained):
    path = trained("a2c", env=LUNAR)
    config = resolve_config(None, start_options(str(path), {}))
    assert (config.algo, config.env, config.policy.net_arch) == ("a2c", LUNAR, (8,))


def test_a_run_over_a_bridge_starts_from_a_model_of_the_racer(trained, bridge_server):
    model = read_model(trained())
    asked = {"env": REMOTE_RACER, "env_args.bridge_url": bridge_server.url, "num_envs": 2}
    config = resolve_config(None, start_options(str(model.path), asked))
    assert config.is_remote
    for name, weights in started(config).policy().weights.items():
        np.testing.assert_array_equal(weights, model.weights[name], err_msg=name)


def test_a_run_started_from_a_model_resumes_without_it(trained, tmp_path):
    path = trained()
    config = tiny_config(seed=6, start_model=str(path), start_weights=tensors_digest(read_model(path).weights))
    train(config, tmp_path / "whole")
    train(config, tmp_path / "stopped", stop_at=50)
    path.unlink()
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "stopped", config)
    assert load_config(tmp_path / "whole" / "config.toml") == config


def test_where_the_model_lies_is_not_part_of_a_runs_identity(trained, tmp_path):
    path, other = trained(), tmp_path / "copy.zip"
    other.write_bytes(path.read_bytes())
    configs = [tiny_config(seed=6, start_model=str(file), start_weights="") for file in (path, other)]
    assert configs[0].digest() == configs[1].digest()
    for config, name in zip(configs, ("a", "b"), strict=True):
        train(config, tmp_path / name)
    files = [RunFolder(tmp_path / name, configs[0].experiment_id).model for name in ("a", "b")]
    assert tensors(files[0]) == tensors(files[1])


def test_a_configuration_without_a_start_model_is_what_it_was():
    assert not {"start_model", "start_weights"} & set(tiny_config().as_plain())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policy": {"net_arch": [9]}}, r"its policy.net_arch is \(8,\), this run's \(9,\)"),
        ({"racer": {"stack": 2}}, "its racer.stack is 1, this run's 2"),
        ({"normalize": {"obs": False}}, "its normalize.obs is True, this run's False"),
        ({"algo": "a2c"}, "its algo is ppo, this run's a2c"),
        ({"start_weights": "0" * 64}, "its weights are not those that start_weights names"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_and_nothing_is_written(trained, tmp_path, changes, told):
    config = tiny_config(start_model=str(trained()), **changes)
    with pytest.raises(ConfigError, match=told):
        train(config, tmp_path / "second")
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("driver", "asked", "told"),
    [
        ("generalist", {"algo": "sac"}, "--algo sac: the model .* is of ppo"),
        ("generalist", {"env": LUNAR}, f"--env {LUNAR}: the model .* is of hotlap/Racer-v0"),
        ("casual", {}, "this driver has no weights"),
    ],
)
def test_what_contradicts_the_model_is_refused(driver, asked, told):
    with pytest.raises(ConfigError, match=told):
        start_options(driver, asked)


def test_a_model_that_is_not_there_is_refused():
    with pytest.raises(DriverError, match=r"'no-such-run' is not known"):
        start_options("no-such-run", {})

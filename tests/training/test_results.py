"""The results document: the agreed keys, a round trip, and refusal of anything else."""

import json
import math
import platform

import gymnasium
import msgspec
import numpy as np
import pytest
import stable_baselines3
import torch

import hotlap
from hotlap.errors import ModelError
from hotlap.evaluation.returns import Returns
from hotlap.runs.run_folder import RunFolder
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from hotlap.training.learners import build_learner, policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.results import (
    ExperimentResults,
    FinalMetrics,
    FinishedRun,
    is_converged,
    make_results,
    provenance,
)
from tiny_runs import RACER, tiny_config

CONFIG = tiny_config(num_envs=3, checkpoint={"interval": 40})


@pytest.fixture
def results(tmp_path):
    for step in (40, 80):
        (tmp_path / f"checkpoint_{step}.zip").touch()
    return make_results(
        RunFolder(tmp_path, CONFIG.experiment_id),
        CONFIG,
        make_card(CONFIG, policy_spaces(CONFIG, build_learner(CONFIG)), 102, "w" * 64),
        FinishedRun(
            0.0, 86_400.5, trained_s=3.5, num_episodes=7, returns=Returns(np.array([1.0, 3.0]), np.array([10, 20]))
        ),
    )


def test_the_document_describes_the_run(results):
    run, model = results.metadata, results.model
    assert (run.experiment_id, run.algorithm, run.environment, run.seed) == ("ppo_seed42", "ppo", RACER, 42)
    assert (run.start_time, run.end_time) == ("1970-01-01T00:00:00.000Z", "1970-01-02T00:00:00.500Z")
    assert (run.total_timesteps, model.policy, model.checkpoint_interval) == (102, "MlpPolicy", 40)
    assert (model.model_file, *model.checkpoints) == ("ppo_seed42_model.zip", "checkpoint_40.zip", "checkpoint_80.zip")
    assert results.metrics == FinalMetrics(2.0, 1.0, 15.0, 7, 3.5, converged=None)
    assert results.hyperparameters["n_steps"] == 32
    assert (results.environment["track"], results.environment["num_envs"]) == ("track-01", 3)
    assert (results.provenance.weights_digest, results.provenance.config_digest) == ("w" * 64, CONFIG.digest())
    assert results.provenance.track_digest == track_digest(load_track("track-01").nodes)


@pytest.mark.parametrize("evaluation", [None, {"laps": 3, "gap_to_optimal": None}])
def test_a_saved_document_is_read_back_equal(tmp_path, results, evaluation):
    results = msgspec.structs.replace(results, evaluation=evaluation)
    results.save(tmp_path / "a.json")
    assert ExperimentResults.load(str(tmp_path / "a.json")) == results
    assert ExperimentResults.from_dict(results.to_dict()) == results


def test_nan_infinity_and_missing_metrics_are_null(tmp_path, results):
    metrics = FinalMetrics(float("nan"), None, np.float32("inf"), 0, 1.0, converged=None)
    results = msgspec.structs.replace(results, metrics=metrics, evaluation={"mean_reward": float("nan")})
    results.save(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())["experiment_results"]
    assert list(content["metrics"].values()) == [None, None, None, 0, 1.0, None]
    assert content["evaluation"] == {"mean_reward": None}
    assert ExperimentResults.load(tmp_path / "a.json").metrics.final_reward_mean is None


@pytest.mark.parametrize(
    ("section", "key", "value", "words"),
    [
        ("metadata", "end_time", "today", r"matching regex .* - at `\$\.metadata\.end_time`"),
        ("metrics", "converged", "yes", r"Expected `bool \| null`, got `str` - at `\$\.metrics\.converged`"),
        ("metrics", "final_reward_men", 1, "unknown field `final_reward_men`"),
    ],
)
def test_a_wrong_key_or_value_and_a_missing_section_are_refused(tmp_path, results, section, key, value, words):
    document = results.to_dict()
    document["experiment_results"][section][key] = value
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}"):
        ExperimentResults.load(tmp_path / "a.json")
    del document["experiment_results"][section]
    with pytest.raises(ModelError, match=f"missing required field `{section}`"):
        ExperimentResults.from_dict(document)


@pytest.mark.parametrize(
    ("mean", "threshold", "answer"), [(math.nan, 9.0, False), (9.0, None, None), (None, 9.0, None), (-5.0, -9.0, True)]
)
def test_convergence_needs_a_finite_mean_and_a_threshold(mean, threshold, answer):
    assert is_converged(mean, threshold) is answer


@pytest.mark.parametrize(("mean", "answer"), [(475.0, True), (474.9, False)])
def test_the_threshold_is_that_of_the_environment(tmp_path, mean, answer):
    config = tiny_config(env="CartPole-v1")  # its threshold is 475
    card = make_card(config, policy_spaces(config, build_learner(config)), 1, "w")
    returns = Returns(np.array([mean]), np.array([1]))
    found = make_results(RunFolder(tmp_path, "x"), config, card, FinishedRun(0.0, 1.0, 1.0, 1, returns))
    assert found.metrics.converged is answer


def test_provenance_names_the_installed_versions():
    found = provenance("abc", "def")
    assert (found.package_version, found.physics_version) == (hotlap.__version__, hotlap.PHYSICS_VERSION)
    assert (found.config_digest, found.weights_digest) == ("abc", "def")
    assert found.libraries["python"] == platform.python_version()
    for module in (np, gymnasium, stable_baselines3, torch):
        name = module.__name__.replace("_", "-")
        assert found.libraries[name].split("+")[0] == module.__version__.split("+")[0]
    assert set(found.libraries) == {"python", "numpy", "numba", "gymnasium", "stable-baselines3", "torch"}

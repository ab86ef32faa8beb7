"""The results document: agreed keys, a round trip, and refusal of anything else."""

import json
import platform
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch

import hotlap
from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.training.results import (
    ExperimentResults,
    FinalMetrics,
    ModelSummary,
    RunMetadata,
    is_converged,
    provenance,
)

METADATA = RunMetadata(
    experiment_id="ppo_seed42",
    algorithm="ppo",
    environment="LunarLander-v3",
    seed=42,
    start_time="2026-01-02T03:04:05Z",
    end_time="2026-01-02T03:14:05.250Z",
    total_timesteps=50_000,
)
RESULTS = ExperimentResults(
    metadata=METADATA,
    model=ModelSummary("MlpPolicy", "ppo_seed42_model.zip", 10_000, ("checkpoint_10000.zip", "checkpoint_20000.zip")),
    metrics=FinalMetrics(210.5, 30.25, 400.0, 123, 600.25, converged=True),
    hyperparameters={"learning_rate": 3e-4, "net_arch": [64, 64], "target_kl": None},
    environment={"id": "LunarLander-v3", "num_envs": 8},
    provenance=provenance("c" * 64, "d" * 64),
)


def test_the_document_is_as_agreed():
    content = RESULTS.to_dict()["experiment_results"]
    assert list(content) == ["metadata", "model", "metrics", "hyperparameters", "environment", "provenance"]
    assert content["metadata"] == {
        "experiment_id": "ppo_seed42",
        "algorithm": "ppo",
        "environment": "LunarLander-v3",
        "seed": 42,
        "start_time": "2026-01-02T03:04:05Z",
        "end_time": "2026-01-02T03:14:05.250Z",
        "total_timesteps": 50_000,
    }
    assert content["model"] == {
        "policy": "MlpPolicy",
        "model_file": "ppo_seed42_model.zip",
        "checkpoint_interval": 10_000,
        "checkpoints": ["checkpoint_10000.zip", "checkpoint_20000.zip"],
    }
    assert content["metrics"] == {
        "final_reward_mean": 210.5,
        "final_reward_std": 30.25,
        "episode_length_mean": 400.0,
        "total_episodes": 123,
        "training_time_seconds": 600.25,
        "converged": True,
    }
    assert content["hyperparameters"] == {"learning_rate": 3e-4, "net_arch": [64, 64], "target_kl": None}


@pytest.mark.parametrize(
    "results", [RESULTS, replace(RESULTS, evaluation={"laps": 3, "gap_to_optimal": None})], ids=["plain", "racer"]
)
def test_a_saved_document_comes_back(tmp_path, results):
    results.save(tmp_path / "a.json")
    assert ExperimentResults.load(str(tmp_path / "a.json")) == results
    assert ExperimentResults.from_dict(results.to_dict()) == results


def test_a_figure_that_does_not_exist_is_null(tmp_path):
    metrics = FinalMetrics(float("nan"), None, np.float32("inf"), 0, 1.0, converged=None)
    replace(RESULTS, metrics=metrics, evaluation={"mean_reward": float("nan")}).save(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())["experiment_results"]
    assert [content["metrics"][key] for key in ("final_reward_mean", "final_reward_std", "converged")] == [None] * 3
    assert content["metrics"]["episode_length_mean"] is None
    assert content["evaluation"] == {"mean_reward": None}
    assert ExperimentResults.load(tmp_path / "a.json").metrics.final_reward_mean is None


@pytest.mark.parametrize(
    ("section", "key", "value", "words"),
    [
        ("metadata", "seed", 1.5, "metadata: seed must be a whole number, got 1.5"),
        ("metadata", "end_time", "today", "end_time must be a time in UTC"),
        ("model", "checkpoints", "one", "checkpoints must be a list"),
        ("model", "checkpoints", [1], r"checkpoints\[0\] must be of type str"),
        ("metrics", "converged", "yes", "converged must be of type bool"),
        ("metrics", "final_reward_men", 1, "Did you mean 'final_reward_mean'"),
        ("provenance", "physics_version", None, "physics_version must be of type str"),
    ],
)
def test_another_document_is_refused_by_its_key(tmp_path, section, key, value, words):
    document = RESULTS.to_dict()
    document["experiment_results"][section][key] = value
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}"):
        ExperimentResults.load(tmp_path / "a.json")


@pytest.mark.parametrize("section", ["metadata", "model", "metrics", "hyperparameters", "environment", "provenance"])
def test_no_section_may_be_missing(section):
    document = RESULTS.to_dict()
    del document["experiment_results"][section]
    with pytest.raises(ModelError, match=f"incomplete .*{section}"):
        ExperimentResults.from_dict(document)


def test_metrics_are_no_results(tmp_path):
    (tmp_path / "a.json").write_text('{"training_metrics": {}}')
    with pytest.raises(ModelError, match="one key 'experiment_results', got 'training_metrics'"):
        ExperimentResults.load(tmp_path / "a.json")
    with pytest.raises(InputFileError, match="no such file"):
        ExperimentResults.load(tmp_path / "none.json")


def test_times_must_be_utc():
    with pytest.raises(ConfigError, match="start_time must be a time in UTC"):
        replace(METADATA, start_time="2026-01-02 03:04:05")


@pytest.mark.parametrize(
    ("mean", "threshold", "answer"),
    [
        (200.0, 200.0, True),
        (199.9, 200.0, False),
        (float("nan"), 200.0, False),
        (200.0, None, None),
        (None, 200.0, None),
        (-5.0, -10.0, True),
    ],
)
def test_a_run_has_converged_at_the_threshold(mean, threshold, answer):
    assert is_converged(mean, threshold) is answer


def test_provenance_names_what_is_installed():
    found = provenance("abc", "def")
    assert (found.package_version, found.physics_version) == (hotlap.__version__, hotlap.PHYSICS_VERSION)
    assert (found.config_digest, found.weights_digest) == ("abc", "def")
    assert found.libraries["python"] == platform.python_version()
    for module in (np, gymnasium, stable_baselines3, torch):
        name = module.__name__.replace("_", "-")
        assert found.libraries[name].split("+")[0] == module.__version__.split("+")[0]
    assert set(found.libraries) == {"python", "numpy", "numba", "gymnasium", "stable-baselines3", "torch"}

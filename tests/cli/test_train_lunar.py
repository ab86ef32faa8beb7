"""The reference experiment, `hotlap train --recipe lunar-ppo` with seed 42, at small size."""

import importlib.util
import json
from pathlib import Path

import pytest

from hotlap.runs.run_config import load_config
from tiny_runs import skip_evaluation

pytestmark = pytest.mark.skipif(importlib.util.find_spec("Box2D") is None, reason="LunarLander-v3 needs Box2D")


def test_the_lunar_recipe_trains_exactly_the_steps_asked_for_and_writes_its_files(hotlap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skip_evaluation(monkeypatch)
    options = ["--steps", 1_200, "--checkpoint-interval", 500, "--json"]
    figures = hotlap("train", "--recipe", "lunar-ppo", *options).figures
    folder = Path("results") / "experiments" / "ppo_seed42"
    config = load_config(folder / "config.toml")
    assert (config.env, config.seed, config.num_envs, config.steps) == ("LunarLander-v3", 42, 1, 1_200)
    assert figures["experiment_results"]["metadata"]["total_timesteps"] == 1_200
    assert {"checkpoint_500.zip", "checkpoint_1000.zip", "ppo_seed42_model.zip"} <= {p.name for p in folder.iterdir()}
    metrics = json.loads((folder / "ppo_seed42_metrics.json").read_text(encoding="utf-8"))["training_metrics"]
    assert metrics["aggregated"]["total_timesteps"] == 1_200

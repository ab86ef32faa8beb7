"""What a run whose model completes no lap is told."""

from types import SimpleNamespace

import pytest

from hotlap.cli.run_summary import explain_no_lap
from hotlap.runs.recipe import resolve_config


def trainer(config):
    return SimpleNamespace(
        config=config,
        processes=SimpleNamespace(resume_command="hotlap resume"),
        folder=SimpleNamespace(path="results/x"),
    )


def test_a_run_of_a_recipe_is_told_how_long_the_recipe_trains():
    config = resolve_config("racer-ppo", {})
    text = explain_no_lap(trainer(config), 1000)
    assert f"it had 1,000 steps, and the recipe racer-ppo trains for {config.steps:,}" in text
    assert text.endswith(f"Train on: hotlap resume results/x --steps {config.steps}")


@pytest.mark.parametrize("steps", [10**9, 2 * 10**9])
def test_a_run_that_trained_longer_is_told_to_train_twice_as_long(steps):
    text = explain_no_lap(trainer(resolve_config("racer-ppo", {})), steps)
    assert text == f"The AI has not completed a lap yet. Train on: hotlap resume results/x --steps {2 * steps}"

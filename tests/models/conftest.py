"""Models of tiny runs for the export tests, trained once."""

from functools import cache
from typing import Any

import pytest

from hotlap.models.model_file import ModelFile, read_model
from hotlap.runs.run_config import RunConfig
from tiny_runs import recipe_config, tiny_config, train

RECIPE = "recipe"
BARE = {"obs": False, "reward": False}
RUNS: dict[str, dict[str, Any]] = {
    "ppo-racer": {
        "algo": "ppo", "num_envs": 4, "racer": {"stack": 2, "lap_fourier": 3, "action_repeat": 3},
        "policy": {"net_arch": [16, 8], "activation": "elu"}, "normalize": {"clip_obs": 1.5},
    },
    "a2c-racer-bare": {"algo": "a2c", "num_envs": 4, "normalize": BARE},
    "sac-racer": {"algo": "sac", "num_envs": 4, "policy": {"net_arch": [8, 8], "activation": "tanh"}},
    "sac-pendulum-bare": {"algo": "sac", "env": "Pendulum-v1", "normalize": BARE},
    "ppo-cartpole": {"algo": "ppo", "env": "CartPole-v1"},
    "a2c-cartpole-bare": {
        "algo": "a2c", "env": "CartPole-v1", "normalize": BARE, "policy": {"activation": "relu", "net_arch": []},
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def exported_run(compiled, tmp_path_factory):
    """The final model of a run, by its key in RUNS, or `recipe` for a user's first model."""

    @cache
    def model(name: str) -> ModelFile:
        config: RunConfig = recipe_config() if name == RECIPE else tiny_config(**RUNS[name])
        folder = tmp_path_factory.mktemp(name)
        train(config, folder)
        return read_model(folder / f"{config.experiment_id}_model.zip")

    return model

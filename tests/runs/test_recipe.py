"""Recipes: the shipped ones, and a configuration resolved from defaults, a recipe and the command line."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.config import read_mapping
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.settings import EpisodeRules
from hotlap.errors import ConfigError, InputFileError
from hotlap.hyperparameters import A2CSettings, PPOSettings
from hotlap.models.model_file import PolicySettings
from hotlap.runs.recipe import find_recipe, recipe_names, resolve_config
from hotlap.runs.run_config import RacerOptions, RunConfig, in_process
from hotlap.training.checkpoint import CheckpointConfig

PROJECT = Path(__file__).resolve().parent.parent.parent


def recipe(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_shipped_recipe_is_for_the_algorithm_and_environment_in_its_name_and_part_of_the_package():
    assert {"racer-ppo", "racer-sac", "racer-a2c", "lunar-ppo", "lunar-a2c", "lunar-ppo-fast"} <= set(recipe_names())
    patterns = read_mapping(PROJECT / "pyproject.toml")["tool"]["setuptools"]["package-data"]["hotlap"]
    package = PROJECT / "src" / "hotlap"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    for name in recipe_names():
        config, (env, algo) = resolve_config(name, {}), name.split("-")[:2]
        assert (config.env, config.algo) == (
            {"racer": RACER_ID, "race": RACER_ID, "lunar": "LunarLander-v3"}[env],
            algo,
        )
        assert find_recipe(name) in packed


def test_the_reference_experiments():
    rates = {"learning_rate": 3e-4, "clip_range": 0.2, "ent_coef": 0.01, "gamma": 0.99, "gae_lambda": 0.95}
    expected = {
        "ppo": PPOSettings(n_steps=2048, batch_size=64, n_epochs=10, **rates),
        "a2c": A2CSettings(learning_rate=7e-4, n_steps=5, gamma=0.99, gae_lambda=1.0, normalize_advantage=True),
    }
    for algo, hyperparameters in expected.items():
        config = resolve_config(f"lunar-{algo}", {})
        assert (config.env, config.seed, config.steps, config.num_envs) == ("LunarLander-v3", 42, 50_000, 1)
        assert config.hyperparameters == hyperparameters
        assert (config.checkpoint.interval, config.backend, config.policy) == (1000, "gymnasium", PolicySettings())
        assert not config.normalize.is_on


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({}, "racer-ppo"),
        ({"algo": "sac"}, "racer-sac"),
        ({"algo": "a2c", "env": RACER_ID}, "racer-a2c"),
        ({"env": "LunarLander-v3"}, "lunar-ppo"),
        ({"env": "LunarLander-v3", "algo": "a2c", "seed": None}, "lunar-a2c"),
        ({"env": "CartPole-v1"}, None),
        ({"env": "Pendulum-v1", "algo": "sac"}, None),
    ],
)
def test_the_default_recipe_is_that_of_algorithm_and_environment(asked, name):
    expected = resolve_config(name, {}) if name else RunConfig(**asked)  # without a recipe: the defaults
    assert resolve_config(None, asked) == expected


def test_the_default_recipe_of_cars_behind_a_bridge_is_the_racers():
    for algo in ("ppo", "sac", "a2c"):
        found = resolve_config(None, {"algo": algo, "env": REMOTE_RACER_ID})
        assert found.is_remote
        assert in_process(found) == resolve_config(f"racer-{algo}", {})


def test_the_command_line_overrides_the_recipe_and_the_recipe_the_defaults(tmp_path):
    mine = recipe(tmp_path, "steps = 1000\nseed = 3\n[racer]\naction_repeat = 2\n[racer.episode]\nmax_ticks = 9\n")
    asked = {"seed": 5, "racer.track": "track-02", "checkpoint.interval": 7, "num_envs": None}
    assert resolve_config(mine, asked) == RunConfig(
        steps=1000,
        seed=5,
        racer=RacerOptions(track="track-02", action_repeat=2, episode=EpisodeRules(max_ticks=9)),
        checkpoint=CheckpointConfig(interval=7),
    )


def test_a_recipe_with_a_base_says_only_what_differs(tmp_path):
    base = resolve_config("racer-ppo", {})
    mine = recipe(tmp_path, 'base = "racer-ppo"\nsteps = 10\n[racer.episode]\nmax_ticks = 99\n[ppo]\ngamma = 0.5\n')
    racer = replace(base.racer, episode=replace(base.racer.episode, max_ticks=99))
    assert resolve_config(mine, {}) == replace(base, steps=10, racer=racer, ppo=replace(base.ppo, gamma=0.5))
    assert resolve_config("racer-ppo", {}) == base


def test_a_base_may_have_a_base():
    champion, cuda, ppo = (resolve_config(f"racer-ppo{name}", {}) for name in ("-champion", "-cuda", ""))
    assert (champion.device, champion.num_envs) == (cuda.device, cuda.num_envs) != (ppo.device, ppo.num_envs)
    assert champion.ppo.gamma == cuda.ppo.gamma == ppo.ppo.gamma


@pytest.mark.parametrize("base", ['"racer-dqn"', '"../racer-ppo"', '"mine.toml"', "5", '["racer-ppo"]'])
def test_a_base_that_is_no_shipped_recipe_is_refused(tmp_path, base):
    mine = recipe(tmp_path, f"base = {base}\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: base must be a shipped recipe, got .* Use one of lunar-a2c, "):
        resolve_config(mine, {})


def test_a_recipe_that_names_an_algorithm_is_for_that_one_only(tmp_path):
    with pytest.raises(ConfigError, match="--algo sac: the recipe racer-ppo is for ppo"):
        resolve_config("racer-ppo", {"algo": "sac"})
    assert resolve_config("racer-ppo", {"algo": "ppo"}).algo == "ppo"
    mine = recipe(tmp_path, "steps = 10\n")
    assert resolve_config(mine, {"algo": "sac"}) == RunConfig(algo="sac", steps=10)


def test_an_unknown_recipe_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"recipe 'racer-dqn' is not known\. Shipped ones: lunar-a2c, "):
        resolve_config("racer-dqn", {})
    with pytest.raises(ConfigError, match="recipe '' is not known"):
        resolve_config("", {})
    with pytest.raises(InputFileError, match=r"none\.toml: no such settings file"):
        resolve_config(str(tmp_path / "none.toml"), {})


def test_an_error_in_the_recipe_names_the_recipe(tmp_path):
    mine = recipe(tmp_path, "[ppo]\nn_stps = 5\n")
    with pytest.raises(ConfigError, match=r"recipe .*mine\.toml: ppo: unknown key 'n_stps'\. Did you mean 'n_steps'"):
        resolve_config(mine, {"seed": 1})
    mine = recipe(tmp_path, "racer = 5\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: racer must be an object, got 5"):
        resolve_config(mine, {"racer.track": "track-02"})


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"steps": 0}, "settings: steps must be from 1 to"),
        ({"checkpoint.interval": -1}, "settings: checkpoint: interval must be 0 or more steps, got -1"),
        ({"env": "CartPole-v1", "racer.track": "track-02"}, "settings: racer: .* CartPole-v1 takes env_args"),
    ],
)
def test_an_error_on_the_command_line_does_not_name_the_recipe(asked, words):
    with pytest.raises(ConfigError, match=f"^{words}"):
        resolve_config(None, asked)


def test_sac_selects_the_continuous_lander_and_logs_it(caplog):
    asked = {"env": "LunarLander-v3", "algo": "sac", "env_args.gravity": -5.0}
    with caplog.at_level(logging.INFO, "hotlap"):
        assert resolve_config(None, asked).env_args == {"gravity": -5.0, "continuous": True}
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "LunarLander-v3: SAC needs continuous actions" in caplog.text


@pytest.mark.parametrize(
    "asked",
    [
        {"env": "LunarLander-v3", "algo": "ppo"},
        {"env": "LunarLander-v3", "algo": "sac", "env_args.continuous": False},
        {"env": "LunarLanderContinuous-v3", "algo": "sac"},
        {"env": "Pendulum-v1", "algo": "sac"},
        # EnvPool has the continuous lander under its own id.
        {"env": "LunarLander-v3", "algo": "sac", "backend": "envpool"},
    ],
)
def test_other_runs_keep_their_actions(asked, caplog):
    with caplog.at_level(logging.INFO, "hotlap"):
        config = resolve_config(None, asked)
    assert config.env_args.get("continuous") in (None, False)
    assert not caplog.records

"""Recipes: shipped or own TOML files of settings, and the configuration of a run resolved from them."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from hotlap.config import build, merge_tables, read_mapping, set_key, snake_case
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import ConfigError
from hotlap.runs.run_config import RunConfig

BASE = "base"  # the key by which a recipe names the shipped recipe that it changes
_SHIPPED = Path(str(files("hotlap.runs"))) / "recipes"
_log = logging.getLogger(__name__)


def resolve_config(recipe: str | None, asked: Mapping[str, Any]) -> RunConfig:
    """The configuration from defaults, then the recipe, then what was `asked` for on the command line.

    Keys of `asked` may name a key inside a table (`racer.track`); values that are None are ignored. Without a recipe
    the shipped one for the algorithm and environment is used, if there is one.
    """
    overrides = {key: value for key, value in asked.items() if value is not None}
    name = _default_recipe(overrides) if recipe is None else recipe
    if name is None:
        return _with_suitable_actions(_build({}, overrides, "settings"))
    data, where = read_recipe(name), f"recipe {name}"
    if recipe is not None:
        _refuse_other_algorithm(recipe, data, overrides)
    try:
        return _with_suitable_actions(_build(data, overrides, where))
    except ConfigError:
        _build({}, overrides, "settings")  # raises if the error is in the overrides, not in the recipe
        raise


def find_recipe(name: str) -> Path:
    """The file of a recipe, given the name of a shipped one or a path."""
    if name in recipe_names():
        return _SHIPPED / f"{name}.toml"
    if name.endswith(".toml"):
        return Path(name)
    raise ConfigError(
        f"recipe {name!r:.80} is not known. Shipped ones: {', '.join(recipe_names())}; or give a .toml file."
    )


def read_recipe(name: str) -> dict[str, Any]:
    """The settings of a recipe: its own, then those of its base."""
    data = dict(read_mapping(find_recipe(name)))
    base = data.pop(BASE, None)
    if base is None:
        return data
    if base not in recipe_names() or base == name:
        raise ConfigError(
            f"recipe {name}: base must be a shipped recipe, got {base!r:.80}. Use one of {', '.join(recipe_names())}."
        )
    return merge_tables(read_recipe(base), data)


def recipe_names() -> list[str]:
    """The shipped recipes."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def _default_recipe(asked: Mapping[str, Any]) -> str | None:
    """The shipped recipe for an algorithm and environment, if there is one."""
    algo, env = asked.get("algo", RunConfig.algo), asked.get("env", RunConfig.env)
    name = {RACER_ID: f"racer-{algo}", REMOTE_RACER_ID: f"racer-{algo}", "LunarLander-v3": f"lunar-{algo}"}.get(env)
    if name and asked.get("device") == "cuda" and f"{name}-cuda" in recipe_names():
        return f"{name}-cuda"
    return name if name in recipe_names() else None


def usual_steps(config: RunConfig) -> tuple[str, int] | None:
    """Name and length of the shipped recipe for a run's algorithm, environment and device; None without one."""
    name = _default_recipe({"algo": config.algo, "env": config.env, "device": config.device})
    return None if name is None else (name, int(read_recipe(name)["steps"]))


def _refuse_other_algorithm(recipe: str, data: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A recipe that names an algorithm is not for another one; a recipe that names none is for all."""
    algo, wanted = data.get("algo"), asked.get("algo")
    if algo and wanted and wanted != algo:
        start = asked.get("start_model")
        option = f"--algo {wanted!s:.40}" if start is None else f"--start-model {start!s:.80}, {wanted}"
        raise ConfigError(f"{option}: the recipe {recipe} is for {algo!s:.40}. Leave one of the two out.")


def _build(data: dict[str, Any], overrides: Mapping[str, Any], where: str) -> RunConfig:
    """The configuration of `data` (which is changed) with `overrides` applied."""
    for key, value in overrides.items():
        set_key(data, key, value, where)
    return build(RunConfig, data, where, snake_case)


def _with_suitable_actions(config: RunConfig) -> RunConfig:
    """Select LunarLander's continuous actions for an algorithm that needs them, unless the settings say which."""
    is_lander = config.env.startswith("LunarLander") and not config.env.startswith("LunarLanderContinuous")
    is_undecided = config.backend == "gymnasium" and "continuous" not in config.env_args
    if not (config.hyperparameters.needs_continuous_actions and is_lander and is_undecided):
        return config
    _log.info(
        "%s: %s needs continuous actions, so env_args.continuous is set to true.", config.env, config.algo.upper()
    )
    return replace(config, env_args={**config.env_args, "continuous": True})

"""Recipes, paths and figures of the tiny runs that the tests of `hotlap train` make."""

from pathlib import Path

from tiny_runs import tiny_config

DEFAULT = Path("results") / "experiments" / "ppo_seed42"


def recipe(*arguments, **changes):
    """Write a tiny recipe; returns its name."""
    Path("tiny.toml").write_text(tiny_config(*arguments, **changes).to_toml())
    return "tiny.toml"


def everything_under(path):
    return {file.relative_to(path): file.read_bytes() for file in Path(path).rglob("*") if file.is_file()}


def total_steps(figures):
    return figures["experiment_results"]["metadata"]["total_timesteps"]

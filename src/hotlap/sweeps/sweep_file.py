"""The sweep file: which runs a sweep makes, checked completely before any of them starts."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hotlap.config import (
    Range,
    build,
    check_ranges,
    flatten_tables,
    merge_tables,
    read_mapping,
    set_key,
    setting,
    snake_case,
)
from hotlap.envs.gym_registry import check_env_args, check_env_id
from hotlap.envs.registration import REMOTE_RACER_ID
from hotlap.errors import ConfigError, HotlapError, closest, did_you_mean
from hotlap.hyperparameters import MAX_STEPS
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig
from hotlap.sweeps.objectives import Direction, Objective
from hotlap.sweeps.search_space import (
    MAX_GRID,
    RECIPE_KEY,
    ChoiceParameter,
    Parameter,
    end_points,
    grid_points,
    grid_size,
    read_space,
)

_SEED = Range(0, 2**32 - 1)
_RUN_KEYS = {field.name for field in dataclasses.fields(RunConfig)} - {"seed", "steps"}


@dataclass(frozen=True)
class HalvingSettings:
    """Successive halving: of the trials that reach a rung, the best 1/factor go on to the next."""

    first_steps: int = setting(0, "Steps of the first rung.", Range(1, MAX_STEPS))
    factor: int = setting(3, "Each rung has this many times the steps of the one before.", Range(2, 100))

    def __post_init__(self) -> None:
        check_ranges(self)

    def rungs(self, steps: int) -> tuple[int, ...]:
        """The steps of every rung below a run's `steps`."""
        found = [self.first_steps]
        while found[-1] * self.factor < steps:
            found.append(found[-1] * self.factor)
        return tuple(found)


@dataclass(frozen=True)
class _SweepKeys:
    """The keys of a sweep file besides those of a run's configuration."""

    objective: tuple[str, ...]
    direction: tuple[Direction, ...]
    recipe: str | None = None
    steps: int | None = setting(None, "Steps of each run.", Range(1, MAX_STEPS))
    seeds: tuple[int, ...] = setting((), "Seeds; each trial runs all of them.", _SEED)
    trials: int | None = setting(None, "Number of trials.", Range(1, MAX_GRID))
    sampler: Literal["tpe", "random", "grid"] = "tpe"
    sampler_seed: int = setting(0, "Seed of the sampler.", _SEED)
    space: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    halving: HalvingSettings | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.objective or len(self.objective) != len(self.direction):
            raise ConfigError(
                f"every objective needs its direction, got {len(self.objective)} and {len(self.direction)}. "
                'Write objective = ["gap_to_optimal", "training_time_seconds"], direction = ["minimize", "minimize"].'
            )
        for name, values in (("seeds", self.seeds), ("objective", self.objective)):
            if len(set(values)) < len(values):
                raise ConfigError(f"{name} has a value twice. List each once.")


@dataclass(frozen=True)
class Sweep:
    """A checked sweep: `trials` settings of `space`, each run with every seed."""

    objectives: tuple[Objective, ...]
    seeds: tuple[int, ...]
    trials: int
    sampler: Literal["tpe", "random", "grid"]
    sampler_seed: int
    space: tuple[Parameter, ...]
    rungs: tuple[int, ...]  # steps after which trials are compared; empty without halving
    factor: int
    bases: Mapping[str, RunConfig]  # recipe name to the configuration that a trial's settings are applied to

    def config_of(self, params: Mapping[str, Any], seed: int) -> RunConfig:
        """The configuration of a run of a trial."""
        settings = dict(params)
        base = self.bases[settings.pop(RECIPE_KEY, next(iter(self.bases)))]
        return _apply(base, {**settings, "seed": seed})


def load_sweep(path: Path, resolved: Sequence[RunConfig] | None = None) -> Sweep:
    """The sweep of a file; `resolved` holds the recipes of a sweep that exists already, in the file's order."""
    data, where = dict(read_mapping(path)), str(path)
    own, overrides = _split(data, where)
    for name in ("objective", "direction"):
        if name not in own:
            raise ConfigError(f"{where}: {name} is missing. Write e.g. {_EXAMPLES[name]}.")
        own[name] = [own[name]] if isinstance(own[name], str) else own[name]
    keys = build(_SweepKeys, own, where, snake_case)
    space = read_space(keys.space, where)
    names = _recipe_names(keys, space, where)
    if resolved is None:
        resolved = _resolve_recipes(names, {**flatten_tables(overrides), "steps": keys.steps}, where)
    elif len(resolved) != len(names):
        raise ConfigError(
            f"{where}: names {len(names)} recipes, but {len(resolved)} are beside it. Restore the folder."
        )
    bases = {name or "settings": config for name, config in zip(names, resolved, strict=True)}
    try:
        return _check(_assemble(keys, space, bases))
    except HotlapError as error:
        raise ConfigError(f"{where}: {error}") from None


_EXAMPLES = {"objective": 'objective = "gap_to_optimal"', "direction": 'direction = "minimize"'}


def _split(data: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sweep's own keys, and those that override the recipe's."""
    own_keys = [field.name for field in dataclasses.fields(_SweepKeys)]
    for key in data:
        if key == "seed":
            raise ConfigError(f"{where}: unknown key 'seed'. Write seeds = [1, 2, 3].")
        if key not in own_keys and key not in _RUN_KEYS:
            close = closest(key, [*own_keys, *_RUN_KEYS])
            hint = did_you_mean(close, f"Known keys: {', '.join(own_keys)}, and a run's.")
            raise ConfigError(f"{where}: unknown key {key!r:.80}. {hint}")
    own = {key: value for key, value in data.items() if key in own_keys}
    return own, {key: value for key, value in data.items() if key not in own_keys}


def _recipe_names(keys: _SweepKeys, space: Sequence[Parameter], where: str) -> list[str | None]:
    """The recipes that trials are based on; None for the defaults of algorithm and environment."""
    names: list[Any] = [keys.recipe]
    for parameter in space:
        if parameter.key == RECIPE_KEY:
            names = list(parameter.ends)
            if keys.recipe is not None:
                raise ConfigError(f"{where}: recipe is given twice, as a key and in the space. Leave one of them out.")
    for name in names:
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"{where}: recipe must be the name of a recipe or a path, got {name!r:.40}.")
    return names


def _resolve_recipes(names: Sequence[str | None], asked: Mapping[str, Any], where: str) -> list[RunConfig]:
    """The recipes with the file's own settings applied; one torch thread each, since processes share the cores."""
    try:
        return [resolve_config(name, {"torch_threads": 1, **asked}) for name in names]
    except HotlapError as error:
        raise ConfigError(f"{where}: {error}") from None


def _assemble(keys: _SweepKeys, space: tuple[Parameter, ...], bases: Mapping[str, RunConfig]) -> Sweep:
    first = next(iter(bases.values()))
    rungs: tuple[int, ...] = ()
    if keys.halving is not None:
        _check_halving(keys, keys.halving, space, bases)
        rungs = keys.halving.rungs(first.steps)
    return Sweep(
        objectives=tuple(Objective(*pair) for pair in zip(keys.objective, keys.direction, strict=True)),
        seeds=keys.seeds or (first.seed,),
        trials=_count_trials(keys, space),
        sampler=keys.sampler if space else "grid",
        sampler_seed=keys.sampler_seed,
        space=space,
        rungs=rungs,
        factor=keys.halving.factor if keys.halving else 0,
        bases=bases,
    )


def _count_trials(keys: _SweepKeys, space: tuple[Parameter, ...]) -> int:
    if keys.sampler != "grid" and space:
        if keys.trials is None:
            raise ConfigError(f"trials is missing. Say how many settings the sampler {keys.sampler!r} may try.")
        return keys.trials
    size = grid_size(space)
    if keys.trials not in (None, size):
        what = "a grid" if space else "a sweep without a space"
        raise ConfigError(f"trials is {keys.trials}, but {what} has {size} of them. Leave trials out.")
    return size


def _check_halving(
    keys: _SweepKeys, halving: HalvingSettings, space: Sequence[Parameter], bases: Mapping[str, RunConfig]
) -> None:
    objective = Objective(keys.objective[0], keys.direction[0])
    if len(keys.objective) > 1:
        raise ConfigError("halving: compares trials by one objective, got several. Leave the table out.")
    if objective.periodic_key is None:
        raise ConfigError(f"halving: the periodic evaluations have no {objective.name}. Use another objective.")
    for parameter in space:
        if parameter.key == "steps" or parameter.key.startswith("evaluation."):
            raise ConfigError(f"halving: compares trials at the same steps, so {parameter.key!r} cannot be searched.")
    for config in bases.values():
        if config.steps != next(iter(bases.values())).steps:
            raise ConfigError("halving: the recipes have different numbers of steps. Set steps.")
        if halving.first_steps >= config.steps:
            raise ConfigError(f"halving: first_steps must be below steps ({config.steps}), got {halving.first_steps}.")
        if not 0 < config.evaluation.interval <= halving.first_steps:
            raise ConfigError(
                f"halving: needs an evaluation within first_steps ({halving.first_steps}), but evaluation.interval is "
                f"{config.evaluation.interval}. Set [evaluation] interval."
            )


def _check(sweep: Sweep) -> Sweep:
    """Build the configurations of the whole grid, or at the ends of every range, so that no bad one starts later."""
    is_grid = sweep.sampler == "grid"
    for params in grid_points(sweep.space) if is_grid else end_points(sweep.space):
        try:
            config = sweep.config_of(params, sweep.seeds[0])
        except ConfigError as error:
            raise ConfigError(f"a trial with {_show(params)} cannot run: {error}") from None
        if config.env == REMOTE_RACER_ID:
            raise ConfigError("env: a sweep trains on cars in its own processes, not behind a bridge. Choose another.")
        for objective in sweep.objectives:
            objective.check(config.is_racer)
    return sweep


def _show(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value!r:.40}" for key, value in params.items()) or "the file's settings"


def _apply(base: RunConfig, params: Mapping[str, Any]) -> RunConfig:
    """The configuration with dotted keys replaced."""
    data = merge_tables(base.as_plain(), {})
    if params.get("algo", base.algo) != base.algo:
        raise ConfigError(f"algo: the recipe is for {base.algo}. Search over recipes instead.")
    for key, value in params.items():
        set_key(data, key, value, "settings")
    return build(RunConfig, data, "settings", snake_case)


def with_plain_env_ids(sweep: Sweep, allowed: Sequence[str], is_own: bool) -> Sweep:
    """The sweep with `Id` instead of `module:Id`, its module being imported by now or not allowed.

    `is_own` is False for a sweep folder that may be somebody else's: its environments' arguments are checked as well.
    """
    bases = {}
    for name, config in sweep.bases.items():
        env_id = check_env_id(config.env, allowed)
        if not is_own and config.env_args and config.backend == "gymnasium":
            check_env_args(env_id, config.env_args)
        bases[name] = replace(config, env=env_id)
    for parameter in sweep.space:
        if parameter.key == "env" and isinstance(parameter, ChoiceParameter):
            for choice in parameter.choices:
                check_env_id(str(choice))
    return replace(sweep, bases=bases)


def check_environments(sweep: Sweep) -> None:
    """Make the environments of every kind of run once; raises what would make a run fail at its start."""
    import torch

    from hotlap.training.sb3.vec_envs.factory import TrainingEnvs

    seen = set()
    for params in grid_points(sweep.space) if sweep.sampler == "grid" else end_points(sweep.space):
        config = sweep.config_of(params, sweep.seeds[0])
        if config.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError('device is "cuda", but torch finds no CUDA here. Set device = "cpu".')
        kind = (config.algo, config.env, repr(config.env_args), config.backend, config.racer, config.normalize.obs)
        if repr(kind) not in seen:
            seen.add(repr(kind))
            TrainingEnvs(replace(config, num_envs=config.hyperparameters.min_num_envs)).close()

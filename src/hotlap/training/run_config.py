"""The settings of a training run: one frozen `RunConfig` from defaults, a recipe file and the command line."""

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from hotlap.config import as_plain, build, read_mapping, snake_case, to_toml
from hotlap.envs.fleet import MAX_CARS, MAX_REPEAT
from hotlap.envs.observations import MAX_LAP_FOURIER, MAX_STACK
from hotlap.envs.racer import DEFAULT_TRACK
from hotlap.envs.registration import RACER_ID
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError
from hotlap.models.model_file import PolicySettings
from hotlap.training.checkpoint import CheckpointConfig

MAX_STEPS = 10**12
_SHIPPED = Path(str(files("hotlap.training"))) / "recipes"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RacerOptions:
    """The racer's world: what car and driver are given. Other environments take `env_args` instead."""

    track: str = DEFAULT_TRACK
    action_repeat: int = 1  # ticks of 1/60 s that one decision lasts
    stack: int = 1  # observations that the policy sees at once
    lap_fourier: int = 0  # sine and cosine of so many multiples of the way round the lap, seen beside them
    config: Mapping[str, Any] = field(default_factory=dict)  # as in ai-config.json

    def __post_init__(self) -> None:
        _check_range("action_repeat", self.action_repeat, 1, MAX_REPEAT)
        _check_range("stack", self.stack, 1, MAX_STACK)
        _check_range("lap_fourier", self.lap_fourier, 0, MAX_LAP_FOURIER)
        self.settings()

    def settings(self) -> RacerSettings:
        """The environment's settings as it takes them."""
        return RacerSettings.load(self.config)


@dataclass(frozen=True)
class NormalizeSettings:
    """Running normalization of what the policy sees and of rewards, while training."""

    obs: bool = False
    reward: bool = False
    clip_obs: float = 10.0
    clip_reward: float = 10.0

    def __post_init__(self) -> None:
        for name in ("clip_obs", "clip_reward"):
            _check_positive(name, getattr(self, name))

    @property
    def is_on(self) -> bool:
        """Whether anything is normalized."""
        return self.obs or self.reward


@dataclass(frozen=True)
class PPOSettings:
    """PPO's hyperparameters; those that other PPOs have too are named as stable-baselines3 names them."""

    learning_rate: float = 3e-4
    n_steps: int = 2048
    batch_size: int = 64
    n_epochs: int = 10
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    normalize_advantage: bool = True
    target_kl: float | None = None
    desired_kl: float | None = None  # the learning rate follows the policy's change towards this much a rollout
    final_lr_fraction: float = (
        1.0  # of the learning rate, or of desired_kl, reached in a straight line at the run's end
    )
    min_std: float = 0.0  # the actions' standard deviation never falls below this …
    final_min_std: float = 0.0  # … which moves to this over the run

    def __post_init__(self) -> None:
        _check_learning(self)
        _check_range("n_steps", self.n_steps, 1, 10**7)
        _check_range("batch_size", self.batch_size, 2, 10**7)
        _check_range("n_epochs", self.n_epochs, 1, 1000)
        _check_share("gae_lambda", self.gae_lambda)
        _check_positive("clip_range", self.clip_range)
        _check_share("final_lr_fraction", self.final_lr_fraction)
        _check_positive("max_grad_norm", self.max_grad_norm)
        for name in ("target_kl", "desired_kl"):
            if getattr(self, name) is not None:
                _check_positive(name, getattr(self, name))


@dataclass(frozen=True)
class A2CSettings:
    """A2C's hyperparameters, named as stable-baselines3 names them."""

    learning_rate: float = 7e-4
    n_steps: int = 5
    gamma: float = 0.99
    gae_lambda: float = 1.0
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    rms_prop_eps: float = 1e-5
    use_rms_prop: bool = True
    normalize_advantage: bool = False

    def __post_init__(self) -> None:
        _check_learning(self)
        _check_range("n_steps", self.n_steps, 1, 10**7)
        _check_share("gae_lambda", self.gae_lambda)
        _check_positive("max_grad_norm", self.max_grad_norm)


@dataclass(frozen=True)
class SACSettings:
    """SAC's hyperparameters, named as stable-baselines3 names them; the entropy coefficient is learned."""

    learning_rate: float = 3e-4
    buffer_size: int = 1_000_000
    learning_starts: int = 100
    batch_size: int = 256
    tau: float = 0.005
    gamma: float = 0.99
    train_freq: int = 1  # vector steps between updates
    gradient_steps: int = 1  # updates after each of those

    def __post_init__(self) -> None:
        _check_learning(self)
        _check_range("buffer_size", self.buffer_size, 1, 10**8)
        _check_range("learning_starts", self.learning_starts, 0, MAX_STEPS)
        _check_range("batch_size", self.batch_size, 1, 10**7)
        _check_range("train_freq", self.train_freq, 1, 10**6)
        _check_range("gradient_steps", self.gradient_steps, 1, 10**6)
        _check_share("tau", self.tau)


@dataclass(frozen=True)
class EvaluationSettings:
    """The deterministic evaluations during a run; the best model is kept."""

    interval: int = 10_000  # steps; 0: none
    episodes: int = 10
    final_episodes: int = 100

    def __post_init__(self) -> None:
        _check_range("interval", self.interval, 0, MAX_STEPS)
        _check_range("episodes", self.episodes, 1, 10_000)
        _check_range("final_episodes", self.final_episodes, 1, 10_000)


@dataclass(frozen=True)
class RunConfig:
    """Everything a run is a function of."""

    algo: Literal["ppo", "sac", "a2c"] = "ppo"
    env: str = RACER_ID
    seed: int = 42
    steps: int = 1_000_000  # decisions of all environments together
    num_envs: int = 1
    device: Literal["cpu", "cuda"] = "cpu"
    torch_threads: int = 1
    backend: Literal["gymnasium", "envpool"] = "gymnasium"
    recording_interval: int = 100  # steps between two points of the metrics
    env_args: Mapping[str, Any] = field(default_factory=dict)  # for `gymnasium.make`
    racer: RacerOptions = field(default_factory=RacerOptions)
    policy: PolicySettings = field(default_factory=PolicySettings)
    normalize: NormalizeSettings = field(default_factory=NormalizeSettings)
    ppo: PPOSettings = field(default_factory=PPOSettings)
    sac: SACSettings = field(default_factory=SACSettings)
    a2c: A2CSettings = field(default_factory=A2CSettings)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        _check_range("seed", self.seed, 0, 2**32 - 1)
        _check_range("steps", self.steps, 1, MAX_STEPS)
        _check_range("num_envs", self.num_envs, 1, MAX_CARS)
        _check_range("torch_threads", self.torch_threads, 1, 1024)
        _check_range("recording_interval", self.recording_interval, 1, MAX_STEPS)
        _check_plain("env_args", self.env_args)
        self._check_environment()
        self._check_rollout()

    def _check_environment(self) -> None:
        if not self.is_racer and self.racer != RacerOptions():
            raise ConfigError(f"racer: tracks and cars are {RACER_ID}'s; {self.env} takes env_args. Leave `racer` out.")
        if self.is_racer and self.env_args:
            raise ConfigError(f"env_args: {RACER_ID} takes its settings from the table `racer`. Leave env_args out.")
        if self.is_racer and self.backend != "gymnasium":
            raise ConfigError(f"backend: {RACER_ID} brings its own batched world. Leave the key out.")

    def _check_rollout(self) -> None:
        """One decision has no spread of advantages to normalize by: nothing would ever be learned from it."""
        settings = self.hyperparameters
        if isinstance(settings, SACSettings) or settings.n_steps * self.num_envs >= 2:
            return
        if self.algo == "ppo" or settings.normalize_advantage:
            raise ConfigError(f"{self.algo}: n_steps times num_envs must be 2 or more, got 1. Raise either.")

    @property
    def is_racer(self) -> bool:
        """Whether the cars are ours, in this process."""
        return self.env == RACER_ID

    @property
    def experiment_id(self) -> str:
        """The run's name where it was given none, and the beginning of its files' names."""
        return f"{self.algo}_seed{self.seed}"

    @property
    def hyperparameters(self) -> PPOSettings | SACSettings | A2CSettings:
        """Those of the algorithm in use."""
        chosen: PPOSettings | SACSettings | A2CSettings = getattr(self, self.algo)
        return chosen

    def as_plain(self) -> dict[str, Any]:
        """Plain data, as `config.toml` has it: without the tables that this run does not use and nobody has set."""
        used = {self.algo, "racer"} if self.is_racer else {self.algo}
        unused = {"ppo", "sac", "a2c", "racer", "env_args"} - used
        default = RunConfig()
        return {
            key: value
            for key, value in as_plain(self).items()
            if key not in unused or getattr(self, key) != getattr(default, key)
        }

    def to_toml(self) -> str:
        """The text of `config.toml`."""
        return to_toml(self.as_plain())

    def digest(self) -> str:
        """Names the configuration; the number of steps is not part of it, since a run may be extended."""
        plain = {key: value for key, value in self.as_plain().items() if key != "steps"}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def load_config(path: Path) -> RunConfig:
    """The configuration in a file, every key known."""
    return build(RunConfig, read_mapping(path), str(path), snake_case)


def resolve_config(recipe: str | None, asked: Mapping[str, Any]) -> RunConfig:
    """Defaults, then the recipe, then what was `asked` for; keys of `asked` may reach into tables (`world.track`)."""
    wishes = {key: value for key, value in asked.items() if value is not None}
    name = recipe or _default_recipe(wishes)
    if not name:
        return _suit_actions(build(RunConfig, _overlay({}, wishes, "settings"), "settings", snake_case))
    data, where = dict(read_mapping(find_recipe(name))), f"recipe {name}"
    _refuse_contradiction(recipe, data, wishes)
    try:
        return _suit_actions(build(RunConfig, _overlay(data, wishes, where), where, snake_case))
    except ConfigError:
        # Where the fault lies in what was asked for, the recipe must not get the blame.
        build(RunConfig, _overlay({}, wishes, "settings"), "settings", snake_case)
        raise


def find_recipe(name: str) -> Path:
    """The file of a recipe: one of ours by its name, or a path."""
    if name in recipe_names():
        return _SHIPPED / f"{name}.toml"
    if name.endswith(".toml"):
        return Path(name)
    raise ConfigError(f"recipe {name!r:.80} is not known. Ours: {', '.join(recipe_names())}; or give a .toml file.")


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def with_steps(config: RunConfig, steps: int) -> RunConfig:
    """The same run, of another length."""
    return replace(config, steps=steps)


def _default_recipe(asked: Mapping[str, Any]) -> str | None:
    """The recipe that suits what was asked for, where there is one."""
    algo, env = asked.get("algo", RunConfig.algo), asked.get("env", RunConfig.env)
    name = {RACER_ID: f"racer-{algo}", "LunarLander-v3": f"lunar-{algo}"}.get(env)
    return name if name in recipe_names() else None


def _refuse_contradiction(recipe: str | None, data: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A recipe made for one algorithm says nothing about another; one that names none goes with all."""
    algo, wanted = data.get("algo"), asked.get("algo")
    if recipe and algo and wanted and wanted != algo:
        raise ConfigError(f"--algo {wanted!s:.40}: the recipe {recipe} is for {algo!s:.40}. Leave one of the two out.")


def _overlay(data: dict[str, Any], wishes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`data` with `wishes` written over it."""
    for key, value in wishes.items():
        table = data
        *path, last = key.split(".")
        for part in path:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{where}: {part} must be an object, got {table!r:.40}.")
        table[last] = value
    return data


def _suit_actions(config: RunConfig) -> RunConfig:
    """The lander with the continuous actions that SAC needs, unless the settings decide for themselves."""
    is_choice_open = config.backend == "gymnasium" and "continuous" not in config.env_args
    is_lander = config.env.startswith("LunarLander") and not config.env.startswith("LunarLanderContinuous")
    if not (config.algo == "sac" and is_lander and is_choice_open):
        return config
    _log.info("%s: SAC needs continuous actions, so env_args.continuous is set to true.", config.env)
    return replace(config, env_args={**config.env_args, "continuous": True})


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} must be from {low} to {high}, got {value}.")


def _check_positive(name: str, value: float) -> None:
    if not value > 0.0:
        raise ConfigError(f"{name} must be more than zero, got {value:g}.")


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} must be from 0 to 1, got {value:g}.")


def _check_learning(settings: "PPOSettings | A2CSettings | SACSettings") -> None:
    """What every algorithm has, and that no weight or limit is negative."""
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        if isinstance(value, float) and not value >= 0.0:
            raise ConfigError(f"{entry.name} must not be negative, got {value:g}.")
    _check_positive("learning_rate", settings.learning_rate)
    _check_share("gamma", settings.gamma)


def _check_plain(name: str, value: Any) -> None:
    """Refuse what neither `config.toml` nor a checkpoint can hold."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ConfigError(f"{name}: keys must be text, got {key!r:.40}.")
            _check_plain(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            _check_plain(f"{name}[{place}]", inner)
    elif not isinstance(value, str | int) and not (isinstance(value, float) and math.isfinite(value)):
        raise ConfigError(f"{name} must be text, true, false, a finite number, or lists of these, got {value!r:.40}.")

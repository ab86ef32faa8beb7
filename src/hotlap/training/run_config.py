"""The settings of a training run: one frozen `RunConfig` from defaults, a recipe file and the command line, in that order."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from hotlap.config import as_plain, build, read_mapping, snake_case, to_toml
from hotlap.drivers.model_files import PolicySettings
from hotlap.envs.fleet import MAX_CARS
from hotlap.envs.racer import DEFAULT_TRACK
from hotlap.envs.registration import RACER_ID
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError
from hotlap.training.checkpoint import CheckpointConfig

MAX_STEPS = 10**12
MAX_REPEAT = 60
MAX_STACK = 16
_SHIPPED = Path(str(files("hotlap.training"))) / "recipes"


@dataclass(frozen=True)
class WorldSettings:
    """The racer's world: what car and driver are given. Other environments take `env_args` instead."""

    track: str = DEFAULT_TRACK
    action_repeat: int = 1  # ticks of 1/60 s that one decision lasts
    stack: int = 1  # observations that the policy sees at once
    config: Mapping[str, Any] = field(default_factory=dict)  # as in ai-config.json

    def __post_init__(self) -> None:
        _check_range("world.action_repeat", self.action_repeat, 1, MAX_REPEAT)
        _check_range("world.stack", self.stack, 1, MAX_STACK)
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
            _check_positive(f"normalize.{name}", getattr(self, name))

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
    kl_goal: float | None = None  # the learning rate follows the policy's change towards this much a rollout
    final_rate_share: float = 1.0  # of the learning rate, reached in a straight line at the end of the run
    noise_floor: float = 0.0  # the actions' standard deviation never falls below this …
    noise_floor_end: float = 0.0  # … which moves to this over the run

    def __post_init__(self) -> None:
        _check_learning("ppo", self)
        _check_range("ppo.n_steps", self.n_steps, 1, 10**7)
        _check_range("ppo.batch_size", self.batch_size, 2, 10**7)
        _check_range("ppo.n_epochs", self.n_epochs, 1, 1000)
        _check_share("ppo.gae_lambda", self.gae_lambda)
        _check_positive("ppo.clip_range", self.clip_range)
        _check_share("ppo.final_rate_share", self.final_rate_share)


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
        _check_learning("a2c", self)
        _check_range("a2c.n_steps", self.n_steps, 1, 10**7)
        _check_share("a2c.gae_lambda", self.gae_lambda)


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
        _check_learning("sac", self)
        _check_range("sac.buffer_size", self.buffer_size, 1, 10**8)
        _check_range("sac.learning_starts", self.learning_starts, 0, MAX_STEPS)
        _check_range("sac.batch_size", self.batch_size, 1, 10**7)
        _check_range("sac.train_freq", self.train_freq, 1, 10**6)
        _check_range("sac.gradient_steps", self.gradient_steps, 1, 10**6)
        _check_share("sac.tau", self.tau)


@dataclass(frozen=True)
class EvaluationSettings:
    """The deterministic evaluations during a run; the best model is kept."""

    interval: int = 10_000  # steps; 0: none
    episodes: int = 10
    final_episodes: int = 100

    def __post_init__(self) -> None:
        _check_range("evaluation.interval", self.interval, 0, MAX_STEPS)
        _check_range("evaluation.episodes", self.episodes, 1, 10_000)
        _check_range("evaluation.final_episodes", self.final_episodes, 1, 10_000)


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
    world: WorldSettings = field(default_factory=WorldSettings)
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
        if self.is_racer and self.env_args:
            raise ConfigError(f"env_args: {RACER_ID} takes its settings from the table `world`, got env_args as well.")
        if self.is_racer and self.backend != "gymnasium":
            raise ConfigError(f"backend: {RACER_ID} brings its own batched world; leave the key out.")
        if self.algo == "ppo" and self.ppo.n_steps * self.num_envs < 2:
            raise ConfigError("ppo.n_steps: one decision is no rollout; let n_steps times num_envs be 2 or more.")

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
        """Plain data, as `config.toml` has it: without what this run does not use."""
        plain = as_plain(self)
        unused = {"ppo", "sac", "a2c"} - {self.algo}
        unused |= {"env_args"} if self.is_racer else {"world"}
        if not self.env_args:
            unused.add("env_args")
        return {key: value for key, value in plain.items() if key not in unused}

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
    name = recipe or _default_recipe(asked)
    data: dict[str, Any] = _thaw(read_mapping(find_recipe(name))) if name else {}
    _refuse_contradiction(recipe, data, asked)
    for key, value in asked.items():
        if value is None:
            continue
        table = data
        *path, last = key.split(".")
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return build(RunConfig, data, f"recipe {name}" if name else "settings", snake_case)


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
    algo, env = asked.get("algo") or RunConfig.algo, asked.get("env") or RACER_ID
    family = {RACER_ID: "racer", "LunarLander-v3": "lunar"}.get(env)
    name = f"{family}-{algo}"
    return name if name in recipe_names() else None


def _refuse_contradiction(recipe: str | None, data: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A recipe made for one algorithm says nothing about another."""
    algo, wanted = data.get("algo", RunConfig.algo), asked.get("algo")
    if recipe and wanted and wanted != algo:
        raise ConfigError(f"--algo {wanted}: the recipe {recipe} is for {algo}. Leave one of the two out.")


def _thaw(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that may be changed, tables too."""
    return {key: _thaw(value) if isinstance(value, Mapping) else value for key, value in data.items()}


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} must be from {low} to {high}, got {value}.")


def _check_positive(name: str, value: float) -> None:
    if value <= 0.0:
        raise ConfigError(f"{name} must be more than zero, got {value:g}.")


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} must be from 0 to 1, got {value:g}.")


def _check_learning(table: str, settings: object) -> None:
    """What every algorithm has, and that no weight or limit is negative."""
    for entry in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, entry.name)
        if isinstance(value, float) and value < 0.0:
            raise ConfigError(f"{table}.{entry.name} must not be negative, got {value:g}.")
    _check_positive(f"{table}.learning_rate", settings.learning_rate)  # type: ignore[attr-defined]
    _check_share(f"{table}.gamma", settings.gamma)  # type: ignore[attr-defined]

"""The configuration of a training run: one frozen `RunConfig` and its tables."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import tomli_w

from hotlap.config import Range, as_plain, build, check_ranges, read_mapping, setting, snake_case
from hotlap.envs.domain import DomainRules
from hotlap.envs.fleet import NUM_CARS, REPEATS
from hotlap.envs.observations import LAP_FOURIERS, STACKS
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.settings import EpisodeRules, RacerSettings, RewardRules
from hotlap.envs.spaces import DEFAULT_OBSERVATION, SEE_OPPONENTS, ObservationName
from hotlap.errors import ConfigError
from hotlap.hyperparameters import (
    MAX_STEPS,
    A2CSettings,
    Hyperparameters,
    NormalizeSettings,
    PPOSettings,
    RaceSettings,
    SACSettings,
)
from hotlap.models.model_file import AlgorithmName, PolicySettings
from hotlap.runs.checkpoints import CheckpointConfig
from hotlap.sim.engine import DeviceName
from hotlap.tracks.registry import DEFAULT_TRACK, GENERATED, evaluation_ids, named_tracks

BRIDGE_URL = "bridge_url"  # the one key of `env_args` that cars behind a bridge take
MAX_ROADS = 4096
STREAM_KEYS = ("roads", "new_roads")
ALGORITHM_NAMES: tuple[str, ...] = get_args(AlgorithmName)


@dataclass(frozen=True)
class RacerOptions:
    """The racer environment, in this process or behind a bridge. Other environments take `env_args` instead."""

    REPLACED_KEYS: ClassVar[Mapping[str, str]] = {
        "config": "Write its keys in snake_case into [racer.rewards] and [racer.episode]; docs/recipes.md lists them."
    }

    track: str = setting(
        DEFAULT_TRACK, "Id of the track. `generated` is an endless stream of new roads, made beside the training."
    )
    action_repeat: int = setting(1, "How long one decision lasts; a tick is 1/60 s.", REPEATS, unit="ticks")
    stack: int = setting(1, "How many of the last observations the policy sees.", STACKS, unit="observations")
    lap_fourier: int = setting(
        0, "Number of sine and cosine pairs of the lap progress added to the observation.", LAP_FOURIERS
    )
    observation: ObservationName = setting(
        DEFAULT_OBSERVATION,
        "What the policy sees: `rays`; `road`, which adds the road ahead; `road-2`, which sees further and shows the "
        "guide; `race` or `race-2`, which add the other cars to them.",
    )
    tracks: tuple[str, ...] = setting(
        (),
        "Ids of several tracks for the cars in turn, instead of `track`. `train` and `test` stand for the splits, "
        "a pattern with `*` for all tracks of such ids.",
    )
    roads: int = setting(
        256,
        "With `generated`: roads that are driven at the same time, but no more than there are cars.",
        Range(1, MAX_ROADS),
    )
    new_roads: int = setting(
        4, "With `generated`: how many of them, the oldest, are replaced before each rollout.", Range(0, MAX_ROADS)
    )
    rewards: RewardRules = field(default_factory=RewardRules)
    episode: EpisodeRules = field(default_factory=EpisodeRules)
    domain: DomainRules = field(default_factory=DomainRules)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.tracks and self.track != DEFAULT_TRACK:
            raise ConfigError(f"track: {self.track:.80} and tracks are both given. Leave out one of them.")
        if GENERATED in self.tracks:
            raise ConfigError(f'tracks: {GENERATED} is no list of tracks. Write track = "{GENERATED}" instead.')
        for name in () if self.is_generated else STREAM_KEYS:
            if getattr(self, name) != getattr(RacerOptions, name):
                raise ConfigError(f'{name}: it is for track = "{GENERATED}" only. Leave it out.')

    @property
    def is_generated(self) -> bool:
        """Whether the cars train on a stream of generated roads."""
        return self.track == GENERATED

    @property
    def only_track(self) -> str | None:
        """The one track of the run; None where there are several or a stream of them."""
        return None if self.tracks or self.is_generated else self.track

    @property
    def track_ids(self) -> list[str]:
        """The ids of all tracks; with a stream of roads, of those on which its driver is evaluated."""
        if self.is_generated:
            return evaluation_ids()
        return [one for name in self.tracks for one in named_tracks(name)] if self.tracks else [self.track]

    def settings(self) -> RacerSettings:
        """Rewards, episodes and how cars differ, as the environment's own settings."""
        return RacerSettings(self.rewards, self.episode, self.domain)


@dataclass(frozen=True)
class EvaluationSettings:
    """Deterministic evaluations during a run, which select the best model, and after it."""

    interval: int = setting(
        10_000, "Time between two evaluations; 0 turns them off.", Range(0, MAX_STEPS), unit="steps"
    )
    episodes: int = setting(10, "Episodes per evaluation.", Range(1, 10_000))
    final_episodes: int = setting(100, "Episodes of the final evaluation.", Range(1, 10_000))
    curve_interval: int = setting(
        0,
        "Time between two smaller evaluations that select nothing, for the curves `racer/*` of a run whose training "
        "episodes are too short for a lap; 0 turns them off.",
        Range(0, MAX_STEPS),
        unit="steps",
    )
    curve_episodes: int = setting(25, "Episodes of such an evaluation.", Range(1, 10_000))

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run's result."""

    algo: AlgorithmName = setting("ppo", "Learning algorithm.")
    env: str = setting(RACER_ID, "Id of the Gymnasium environment.")
    seed: int = setting(42, "Seed of all random generators.", Range(0, 2**32 - 1))
    steps: int = setting(
        1_000_000, "Length of the run, in decisions of all environments together.", Range(1, MAX_STEPS), unit="steps"
    )
    num_envs: int = setting(1, "Environments trained on in parallel.", NUM_CARS)
    device: DeviceName = setting("cpu", "Where the networks are trained.")
    torch_threads: int = setting(1, "CPU threads of torch.", Range(1, 1024))
    backend: Literal["gymnasium", "envpool"] = setting("gymnasium", "Library that runs environments other than ours.")
    recording_interval: int = setting(100, "Time between two points of the metrics.", Range(1, MAX_STEPS), unit="steps")
    env_args: Mapping[str, Any] = setting(dict, "Keyword arguments for `gymnasium.make`.")
    start_model: str = setting("", "Model file, run or driver whose weights the run starts from; empty: random ones.")
    start_weights: str = setting("", "SHA-256 of those weights; `hotlap train --start-model` writes it.")
    racer: RacerOptions = field(default_factory=RacerOptions)
    race: RaceSettings = field(default_factory=RaceSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    normalize: NormalizeSettings = field(default_factory=NormalizeSettings)
    ppo: PPOSettings = field(default_factory=PPOSettings)
    sac: SACSettings = field(default_factory=SACSettings)
    a2c: A2CSettings = field(default_factory=A2CSettings)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_plain("env_args", self.env_args)
        self._check_environment()
        self._check_race()
        if self.num_envs < self.hyperparameters.min_num_envs:
            raise ConfigError(f"{self.algo}: n_steps times num_envs must be 2 or more, got 1. Raise either.")

    def _check_environment(self) -> None:
        if not self.is_racer and self.racer != RacerOptions():
            raise ConfigError(f"racer: this table is for {RACER_ID} only; {self.env} takes env_args. Leave it out.")
        if self.policy.action_head != "linear" and (not self.is_racer or self.algo == "sac"):
            raise ConfigError(f"policy.action_head: {self.policy.action_head} is for {RACER_ID} with PPO or A2C only.")
        own_args = {BRIDGE_URL} if self.is_remote else set()
        if self.is_racer and not own_args.issuperset(self.env_args):
            raise ConfigError(f"env_args: {self.env} takes its settings from the table `racer`. Leave env_args out.")
        if self.is_racer and self.backend != "gymnasium":
            raise ConfigError(f"backend: {self.env} is always run by our own simulator. Leave the key out.")
        if self.is_remote and self.device != "cpu":
            raise ConfigError(f"device: cars behind a bridge are trained on the CPU, got {self.device}. Give cpu.")

    def _check_race(self) -> None:
        if not self.race.is_on:
            if self.race != RaceSettings():
                raise ConfigError("race: this table is for several cars. Give race.num_cars, or leave it out.")
            return
        if self.env != RACER_ID or self.algo != "ppo":
            raise ConfigError(f"race: only PPO on {RACER_ID} trains in races, got {self.algo} on {self.env}.")
        if self.racer.is_generated:
            raise ConfigError(f"race: races are on given tracks, not on a stream. Name them instead of {GENERATED}.")
        if self.racer.stack != 1 or self.racer.observation not in SEE_OPPONENTS:
            raise ConfigError(
                f'race: needs racer.observation = "race" or "race-2" and no stack, got {self.racer.observation} and '
                f"a stack of {self.racer.stack}."
            )
        if self.racer.rewards.progress_time_s:
            raise ConfigError(
                "racer.rewards.progress_time_s: races count metres gained on others, so progress must count metres "
                "too. Leave it out, or give progress_length_m."
            )
        if self.num_envs % self.race.num_cars:
            raise ConfigError(
                f"num_envs: {self.num_envs} cars do not fill races of {self.race.num_cars}. Give a multiple."
            )

    @property
    def is_racer(self) -> bool:
        """Whether the environment is our simulator, in this process or behind a bridge."""
        return self.env in (RACER_ID, REMOTE_RACER_ID)

    @property
    def is_remote(self) -> bool:
        """Whether the cars are behind a bridge."""
        return self.env == REMOTE_RACER_ID

    @property
    def experiment_id(self) -> str:
        """The run's default name, and the prefix of its files' names."""
        return f"{self.algo}_seed{self.seed}"

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the algorithm in use."""
        chosen: Hyperparameters = getattr(self, self.algo)
        return chosen

    def as_plain(self) -> dict[str, Any]:
        """Plain data as in `config.toml`: without what this run does not use and what has its default.

        Nor with the address of a bridge, which may hold a token: no file tells us where to connect.
        """
        used = {self.algo, "racer"} if self.is_racer else {self.algo}
        unused = {*ALGORITHM_NAMES, "racer", "race", "env_args", "start_model", "start_weights"} - used
        default = RunConfig()
        plain = {
            key: value
            for key, value in as_plain(self).items()
            if key not in unused or getattr(self, key) != getattr(default, key)
        }
        if self.is_remote:
            plain.pop("env_args", None)
        if "racer" in plain and not self.racer.is_generated:
            plain["racer"] = {key: value for key, value in plain["racer"].items() if key not in STREAM_KEYS}
        return plain

    def to_toml(self) -> str:
        """The text of `config.toml`."""
        return tomli_w.dumps(self.as_plain())

    def digest(self) -> str:
        """Identifies the configuration; the number of steps is not part of it, since a run may be extended.

        Nor are the device, the place of the start model and the evaluations for the curves, which may be other ones
        when the run is resumed.
        """
        return digest_of(self.as_plain())


def digest_of(plain: Mapping[str, Any]) -> str:
    """The digest of a resolved configuration as plain data; see `RunConfig.digest`."""
    kept = {key: value for key, value in plain.items() if key not in ("steps", "device", "start_model")}
    if "evaluation" in kept:
        kept["evaluation"] = {key: value for key, value in kept["evaluation"].items() if "curve" not in key}
    racer = kept.get("racer", {})
    if racer.get("domain") == as_plain(DomainRules()):  # older runs, which have the standard car, do not name it
        kept["racer"] = {key: value for key, value in racer.items() if key != "domain"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def load_config(path: Path) -> RunConfig:
    """The configuration in a TOML file."""
    return build(RunConfig, read_mapping(path), str(path), snake_case)


def in_process(config: RunConfig) -> RunConfig:
    """The configuration with cars behind a bridge replaced by cars in this process; any other stays the same.

    Both kinds of cars are bit-identical, so models are evaluated here and drive either.
    """
    return replace(config, env=RACER_ID, env_args={}) if config.is_remote else config


def with_steps(config: RunConfig, steps: int) -> RunConfig:
    """The same run with another number of steps."""
    return replace(config, steps=steps)


def _check_plain(name: str, value: Any) -> None:
    """Refuse values that neither `config.toml` nor a checkpoint can hold."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ConfigError(f"{name}: keys must be text, got {key!r:.40}.")
            _check_plain(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check_plain(f"{name}[{index}]", inner)
    elif not isinstance(value, str | int) and not (isinstance(value, float) and math.isfinite(value)):
        raise ConfigError(f"{name} must be text, true, false, a finite number, or lists of these, got {value!r:.40}.")

"""The environment's settings (`ai-config.json`): reward weights and episode limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotlap.config import camel_case, load_settings
from hotlap.errors import ConfigError
from hotlap.sim.rewards import RULES_DTYPE, START_ANYWHERE, START_ON_LINE, START_RANDOM

# The types accepted as `config`.
SettingsSource: TypeAlias = "Mapping[str, Any] | str | PathLike[str] | RacerSettings | None"

StartName = Literal["line", "random", "anywhere"]

MAX_COUNT = 2**31 - 1
MAX_WEIGHT = 1e6
MAX_LENGTH_M = 1e6
MAX_MARGIN_M = 5.0
MAX_SPEED_MPS = 100.0


@dataclass(frozen=True)
class RewardWeights:
    """The weight of each reward term; penalties are negative."""

    progress: float = 1.0
    speed_bonus: float = 0.0
    wall_penalty: float = -0.002
    off_track_penalty: float = -0.001
    backward_penalty: float = 0.0
    stillness_penalty: float = -0.001
    stillness_speed_threshold: float = 2.0  # m/s

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if abs(value) > MAX_WEIGHT:
                raise ConfigError(f"{camel_case(name)} must be at most {MAX_WEIGHT:g} in magnitude, got {value:g}.")
        if self.stillness_speed_threshold < 0.0:
            raise ConfigError(
                f"stillnessSpeedThreshold must be zero or more m/s, got {self.stillness_speed_threshold:g}."
            )


@dataclass(frozen=True)
class EpisodeRules:
    """When an episode begins and ends, in ticks of 1/60 s."""

    max_steps: int = 3000
    stillness_timeout_ticks: int = 180
    start: StartName = "line"
    num_gates: int = 30
    # Progress is counted in laps; with a length, in multiples of it, so that a metre is worth the same on every track.
    progress_length: float = 0.0  # m
    spun_share: float = 0.125  # of the cars that start anywhere
    # The off-track penalty begins this far inside the edge of the road. Which laps are clean does not depend on it.
    edge_margin: float = 0.0  # m
    # Slower cars pay neither for walls nor for leaving the road: a car that has spun must get going again.
    penalty_min_speed: float = 0.0  # m/s
    # The stillness penalty is multiplied by 1 + this * (brake - throttle): a standing car learns which pedal to use,
    # although the brake alone changes nothing.
    stillness_pedals: float = 0.0

    def __post_init__(self) -> None:
        for key, value in (("maxSteps", self.max_steps), ("stillnessTimeoutTicks", self.stillness_timeout_ticks)):
            if not 1 <= value <= MAX_COUNT:
                raise ConfigError(f"{key} must be from 1 to {MAX_COUNT}, got {value}.")
        if not 3 <= self.num_gates <= 100:
            raise ConfigError(f"numGates must be from 3 to 100, got {self.num_gates}.")
        for key, amount, high, unit in (
            ("progressLength", self.progress_length, MAX_LENGTH_M, " m"),
            ("spunShare", self.spun_share, 1.0, ""),
            ("edgeMargin", self.edge_margin, MAX_MARGIN_M, " m"),
            ("penaltyMinSpeed", self.penalty_min_speed, MAX_SPEED_MPS, " m/s"),
            ("stillnessPedals", self.stillness_pedals, 1.0, ""),
        ):
            if not 0.0 <= amount <= high:
                raise ConfigError(f"{key} must be from 0 to {high:g}{unit}, got {amount:g}.")


@dataclass(frozen=True)
class RacerSettings:
    """All settings of the environment."""

    weights: RewardWeights = field(default_factory=RewardWeights)
    episode: EpisodeRules = field(default_factory=EpisodeRules)

    @classmethod
    def load(cls, source: SettingsSource) -> "RacerSettings":
        """Settings from a dict, a JSON or TOML file, a RacerSettings, or None for the defaults."""
        return load_settings(cls, source)

    def rules(self) -> NDArray[np.void]:
        """The settings as the simulator's record."""
        record = np.zeros(1, RULES_DTYPE)
        record["progress"] = self.weights.progress
        record["speed_bonus"] = self.weights.speed_bonus
        record["wall_penalty"] = self.weights.wall_penalty
        record["off_track_penalty"] = self.weights.off_track_penalty
        record["backward_penalty"] = self.weights.backward_penalty
        record["stillness_penalty"] = self.weights.stillness_penalty
        record["stillness_speed_mps"] = self.weights.stillness_speed_threshold
        record["progress_length_m"] = self.episode.progress_length
        record["stillness_pedals"] = self.episode.stillness_pedals
        record["penalty_speed_mps"] = self.episode.penalty_min_speed
        record["edge_margin_m"] = self.episode.edge_margin
        record["spun_share"] = self.episode.spun_share
        record["max_ticks"] = self.episode.max_steps
        record["stillness_ticks"] = self.episode.stillness_timeout_ticks
        record["num_gates"] = self.episode.num_gates
        record["start"] = start_code(self.episode.start)
        return record


def start_code(start: object) -> int:
    """The simulator's code for the name of a start."""
    codes: dict[str, int] = {"line": START_ON_LINE, "random": START_RANDOM, "anywhere": START_ANYWHERE}
    if not isinstance(start, str) or start not in codes:
        raise ConfigError(f"start must be 'line', 'random' or 'anywhere', got {start!r:.40}.")
    return codes[start]

"""The environment's settings (`ai-config.json`, or the tables `[racer.*]` of a recipe)."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotlap.config import FRACTION, Range, check_ranges, convert, load_settings, setting
from hotlap.envs.domain import DomainRules
from hotlap.sim.rewards import RULES_DTYPE, START_ON_LINE, START_RANDOM

# The types accepted as `config`.
SettingsSource: TypeAlias = "Mapping[str, Any] | str | PathLike[str] | RacerSettings | None"

StartName = Literal["line", "random"]
_START_CODES: dict[StartName, int] = {"line": START_ON_LINE, "random": START_RANDOM}

MAX_COUNT = 2**31 - 1
_COUNT = Range(1, MAX_COUNT)
_WEIGHT = Range(-(10**6), 10**6)


@dataclass(frozen=True)
class RewardRules:
    """What the terms of the reward weigh and when they apply; penalties are negative."""

    progress: float = setting(1.0, "Reward of a lap driven forwards.", _WEIGHT)
    speed_bonus: float = setting(0.0, "Reward of a tick at top speed; in proportion at less.", _WEIGHT)
    wall_penalty: float = setting(-0.002, "Reward of a tick in which a wall is touched.", _WEIGHT)
    off_track_penalty: float = setting(-0.001, "Reward of a tick in which the car's centre is off the road.", _WEIGHT)
    backward_penalty: float = setting(0.0, "Reward of a tick in which the car moves backwards along the lap.", _WEIGHT)
    stillness_penalty: float = setting(-0.001, "Reward of a tick in which the car stands still.", _WEIGHT)
    stillness_speed_mps: float = setting(
        2.0, "A car slower than this stands still.", Range(0, 10**6), unit="m/s", camel="stillnessSpeedThreshold"
    )
    progress_length_m: float = setting(
        0.0,
        "Progress counts multiples of this distance instead of laps, so that a metre is worth the same on every track; "
        "0: laps.",
        Range(0, 10**6),
        unit="m",
        camel="progressLength",
    )
    progress_time_s: float = setting(
        0.0,
        "Progress counts multiples of this time that a car on the guide would need for the distance: what a second is "
        "worth does not depend on how fast the road is; 0: progress counts distance.",
        Range(0, 10**6),
        unit="s",
        camel="progressTime",
    )
    penalty_min_speed_mps: float = setting(
        0.0,
        "A slower car pays neither for walls nor for leaving the road. Without it large penalties teach a car that has "
        "spun to stand still until its episode ends, because driving back costs more.",
        Range(0, 100),
        unit="m/s",
        camel="penaltyMinSpeed",
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class EpisodeRules:
    """When an episode begins and ends. A tick is 1/60 s."""

    max_ticks: int = setting(3000, "The episode is truncated after this time.", _COUNT, unit="ticks", camel="maxSteps")
    stillness_timeout_ticks: int = setting(
        180, "The episode is terminated when the car has stood still for this long.", _COUNT, unit="ticks"
    )
    start: StartName = setting(
        "line", "Standing on the line, or at a random place at a speed that the next corner allows."
    )
    spun_fraction: float = setting(
        0.0,
        "Fraction of the random starts in which the car has spun: on or beside the road, with any heading, standing or "
        "sliding along the road.",
        FRACTION,
    )
    num_gates: int = setting(30, "Gates that a lap must cross in order to count.", Range(3, 100))

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class RacerSettings:
    """All settings of the environment."""

    rewards: RewardRules = setting(RewardRules, "Rewards.", camel="weights")
    episode: EpisodeRules = setting(EpisodeRules, "Episodes.")
    domain: DomainRules = setting(DomainRules, "How cars differ.")

    @classmethod
    def load(cls, source: SettingsSource) -> "RacerSettings":
        """Settings from a dict, a JSON or TOML file, a RacerSettings, or None for the defaults."""
        return load_settings(cls, source)

    def rules(self) -> NDArray[np.void]:
        """The settings as the simulator's record, whose fields have their names."""
        values = {**vars(self.rewards), **vars(self.episode), "start": start_code(self.episode.start)}
        values |= self.domain.rules()
        record = np.zeros(1, RULES_DTYPE)
        for name, value in values.items():
            record[name] = value
        return record


def start_code(start: object) -> int:
    """The simulator's code for the name of a start."""
    name: StartName = convert(StartName, start, "start")
    return _START_CODES[name]

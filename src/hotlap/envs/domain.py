"""How the cars of an environment differ from the standard car: `domain` of its settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.config import Range, check_ranges, convert, setting
from hotlap.errors import ConfigError, closest, did_you_mean
from hotlap.sim.domain import own_records
from hotlap.sim.vehicle import CarParameters, car_record

MAX_DELAY_TICKS = 30  # half a second

_FACTOR = Range(0.5, 1.5)
_DELAY = Range(0, MAX_DELAY_TICKS)
_FACTORS = ("grip", "mass", "power")
_DELAY_NAME, _NOISE_NAME = "delay", "noise"
_RANGE_SIGN = ":"


@dataclass(frozen=True)
class DomainRules:
    """How cars differ from the standard car. Each episode draws between low and high; where both are equal, nothing."""

    grip_low: float = setting(1.0, "Least factor of the tyres' friction.", _FACTOR)
    grip_high: float = setting(1.0, "Greatest factor of the tyres' friction.", _FACTOR)
    mass_low: float = setting(1.0, "Least factor of the mass; the inertia grows with it.", _FACTOR)
    mass_high: float = setting(1.0, "Greatest factor of the mass.", _FACTOR)
    power_low: float = setting(1.0, "Least factor of the engine's power.", _FACTOR)
    power_high: float = setting(1.0, "Greatest factor of the engine's power.", _FACTOR)
    delay_low_ticks: int = setting(
        0, "Least time after which an action takes effect.", _DELAY, unit="ticks", camel="delayLow"
    )
    delay_high_ticks: int = setting(
        0, "Greatest time after which an action takes effect.", _DELAY, unit="ticks", camel="delayHigh"
    )
    observation_noise: float = setting(
        0.0,
        "Standard deviation of the noise on every column of the observation, whose range is 1 or 2; the sum stays in "
        "the range.",
        Range(0, 0.5),
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        for low, high in (
            *((f"{name}_low", f"{name}_high") for name in _FACTORS),
            ("delay_low_ticks", "delay_high_ticks"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise ConfigError(
                    f"{low} must not be more than {high}, got {getattr(self, low)} and {getattr(self, high)}."
                )

    @property
    def is_standard(self) -> bool:
        """Whether nothing differs: the standard car, actions at once, no noise."""
        return self == DomainRules()

    @property
    def is_drawn(self) -> bool:
        """Whether the cars of two episodes may differ."""
        return bool(list(self._drawn_factors())) or self.delay_low_ticks < self.delay_high_ticks

    @property
    def car(self) -> CarParameters:
        """The standard car with the factors that are the same in all episodes."""
        car, factors = CarParameters(), {name: self._fixed(name) for name in _FACTORS}
        return car._replace(
            friction=car.friction * factors["grip"],
            mass_kg=car.mass_kg * factors["mass"],
            yaw_inertia_kgm2=car.yaw_inertia_kgm2 * factors["mass"],
            power_w=car.power_w * factors["power"],
        )

    def car_records(self, num_cars: int) -> NDArray[np.void]:
        """The records of cars: one for all, or where cars draw factors one for each after it.

        Speeds are observed and rewarded as fractions of the standard car's top speed, whichever car drives.
        """
        records = car_record(self.car)
        records["top_speed_mps"] = CarParameters().top_speed_mps
        return own_records(records, num_cars) if list(self._drawn_factors()) else records

    def rules(self) -> dict[str, float]:
        """The fields of the simulator's rules. A factor that is the same in all episodes is the car's own."""
        values = dict(vars(self))
        for name in _FACTORS:
            if name not in self._drawn_factors():
                values |= {f"{name}_low": 1.0, f"{name}_high": 1.0}
        return values

    def __str__(self) -> str:
        """What differs, as `parse_domain` reads it: `grip=0.8:1.1,delay=3`."""
        ranges = [(name, getattr(self, f"{name}_low"), getattr(self, f"{name}_high")) for name in _FACTORS]
        ranges.append((_DELAY_NAME, self.delay_low_ticks, self.delay_high_ticks))
        parts = [
            f"{name}={low:g}" if low == high else f"{name}={low:g}{_RANGE_SIGN}{high:g}"
            for name, low, high in ranges
            if (low, high) not in ((1.0, 1.0), (0, 0)) or (name == _DELAY_NAME and high)
        ]
        if self.observation_noise:
            parts.append(f"{_NOISE_NAME}={self.observation_noise:g}")
        return ",".join(parts)

    def _drawn_factors(self) -> Iterator[str]:
        return (name for name in _FACTORS if getattr(self, f"{name}_low") < getattr(self, f"{name}_high"))

    def _fixed(self, name: str) -> float:
        return 1.0 if name in self._drawn_factors() else float(getattr(self, f"{name}_low"))


def parse_domain(text: str, where: str) -> DomainRules:
    """The cars that a text such as `grip=0.9,mass=1.1` or `grip=0.8:1.1,delay=3,noise=0.01` describes."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        known = (*_FACTORS, _DELAY_NAME, _NOISE_NAME)
        if name not in known or not sign:
            names = f"Known: {', '.join(known)}."
            hint = f"Give it a value: {name}=1." if name in known else did_you_mean(closest(name, known), names)
            raise ConfigError(f"{where}: {part.strip()!r:.40} is not NAME=NUMBER or NAME=LOW:HIGH. {hint}")
        keys = _keys_of(name)
        numbers = value.split(_RANGE_SIGN)
        if len(numbers) > len(keys) or keys[0] in values:
            raise ConfigError(
                f"{where}: {part.strip()!r:.40}: {name} takes one value{' or LOW:HIGH' * (len(keys) > 1)}, once."
            )
        for index, key in enumerate(keys):
            values[key] = _number_of(numbers[min(index, len(numbers) - 1)], key, f"{where}: {name}")
    try:
        return DomainRules(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _keys_of(name: str) -> tuple[str, ...]:
    if name == _NOISE_NAME:
        return ("observation_noise",)
    unit = "_ticks" if name == _DELAY_NAME else ""
    return f"{name}_low{unit}", f"{name}_high{unit}"


def _number_of(text: str, key: str, where: str) -> float:
    kind = int if key.startswith(_DELAY_NAME) else float
    try:
        number = kind(text)
    except ValueError:
        raise ConfigError(f"{where} must be a {'whole ' * (kind is int)}number, got {text!r:.40}.") from None
    return float(convert(float, number, where)) if kind is float else number

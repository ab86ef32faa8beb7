"""The defaults of a race, for environments and commands. Importing this loads nothing else."""

from typing import Literal

RaceStart = Literal["grid", "rolling"]

DEFAULT_CARS = 8
DEFAULT_LAPS = 3
DEFAULT_START: RaceStart = "grid"

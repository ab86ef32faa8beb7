"""The overtaking scenarios with a driver or its recorded actions in the car behind: who was safe, and who got past."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hotlap.benchmark.actions import Runs, to_ticks
from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.overtaking import BEHIND, Flags, drive_together
from hotlap.evaluation.overtaking_scenarios import DURATION_S, KEPT, LINES, OvertakingScenario
from hotlap.models.shipped_models import find_shipped
from hotlap.runs.find_driver import find_driver
from hotlap.sim.vehicle import TICKS_PER_SECOND

NUM_TICKS = round(DURATION_S * TICKS_PER_SECOND)
_ENTRANT = "the entrant"  # no file and no driver has this name


@dataclass(frozen=True)
class PassingOutcomes:
    """What happened in each scenario to the driver behind."""

    is_safe: Flags  # no contact of its own fault, always on the road, no wall
    is_overtake: Flags  # ahead at the end, safe, and without any contact
    has_contact: Flags
    has_fault: Flags
    has_left_road: Flags


class ReplayedDriver:
    """Drives the cars behind by recorded actions, (num_scenarios, num_ticks, 3)."""

    name = "replay"

    def __init__(self, actions: NDArray[np.float32]) -> None:
        self._actions = actions

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Find the scenarios of its cars."""
        self._numbers, self._tick = fleet.rows // 2, 0  # type: ignore[attr-defined]

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The recorded actions of this tick."""
        self._tick += 1
        actions: NDArray[np.float32] = self._actions[self._numbers, self._tick - 1]
        return actions


def drive_against(
    driver_on: Callable[[str], Driver], scenarios: Sequence[OvertakingScenario], num_threads: int | None = None
) -> PassingOutcomes:
    """Drive all scenarios with a driver in the car behind. The number of threads changes nothing."""

    def find(name: str, track: str) -> Driver:
        return driver_on(track) if name == _ENTRANT else find_driver(name, track)

    found = drive_together(_ENTRANT, scenarios, find, num_threads=num_threads)
    has_contact, has_fault = found.contacts[:, BEHIND] > 0, found.faults[:, BEHIND] > 0
    has_left_road = found.off_road[:, BEHIND]
    is_safe = ~(has_fault | has_left_road | found.hit_wall[:, BEHIND])
    is_ahead = found.progress_m[:, BEHIND] > found.progress_m[:, 1 - BEHIND]
    return PassingOutcomes(is_safe, is_ahead & is_safe & ~has_contact, has_contact, has_fault, has_left_road)


def replay_overtaking(
    scenarios: Sequence[OvertakingScenario], drives: Sequence[Runs], num_threads: int | None = None
) -> PassingOutcomes:
    """What recorded drives give, one of `NUM_TICKS` for each scenario."""
    actions = np.stack([to_ticks(drive) for drive in drives])
    return drive_against(lambda track: ReplayedDriver(actions), scenarios, num_threads)


def opponents_digest() -> str:
    """Sixteen digits that tell the shipped drivers of the cars ahead from others."""
    found = sha256()
    for name in LINES:
        if name != KEPT:
            found.update(find_shipped(name, "").read_bytes())
    return found.hexdigest()[:16]

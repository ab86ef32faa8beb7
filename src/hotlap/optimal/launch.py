"""The first metres from rest, where the optimiser's equations do not hold: driven in the simulator itself."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.optimal.collocation import Floats
from hotlap.optimal.model import NUM_STATES, State
from hotlap.sim.compilation import entry_point
from hotlap.sim.vehicle import TICK_S, CarParameters, advance, car_record

LAUNCH_SPEED_MPS = 8.0


@dataclass(frozen=True)
class Launch:
    """The car once it is moving: how far it came, how long that took, and its state."""

    distance_m: float
    time_s: float
    state: Floats


def launch(car: CarParameters) -> Launch:
    """Full throttle, straight ahead, from rest up to a speed at which the optimiser can take over."""
    body = np.zeros(NUM_STATES - State.FORWARD, np.float32)
    distance_m, ticks = _drive_off(np.float32(LAUNCH_SPEED_MPS), np.float32(car.rolling_mps2), car_record(car), body)
    state = np.zeros(NUM_STATES)
    state[State.FORWARD :] = body
    return Launch(float(distance_m), int(ticks) * float(TICK_S), state)


@entry_point()
def _drive_off(
    until_mps: np.float32, rolling_mps2: np.float32, cars: NDArray[np.void], body: NDArray[np.float32]
) -> tuple[np.float32, int]:
    """Distance and ticks; fills `body`. An entry point of its own, so that it is compiled once and kept on disk."""
    zero, one = np.float32(0.0), np.float32(1.0)
    pose, now = (zero, zero, zero), (zero, zero, zero, zero, zero, zero, zero)
    ticks = 0
    while now[0] < until_mps:
        pose, now = advance(pose, now, (zero, one, zero), one, rolling_mps2, cars[0])
        ticks += 1
    body[0], body[1], body[2], body[3], body[4], body[5], body[6] = now
    return pose[0], ticks

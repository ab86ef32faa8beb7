"""The first metres from rest, driven in the simulator: the optimiser's equations do not hold at walking speed."""

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
    """The end of the launch: distance from the line, time since the start, and the car's state (9,)."""

    distance_m: float
    time_s: float
    state: Floats


def launch(car: CarParameters) -> Launch:
    """Full throttle straight ahead from rest, until the car is fast enough for the optimiser's equations."""
    body = np.zeros(NUM_STATES - State.FORWARD, np.float32)
    distance_m, ticks = _accelerate(np.float32(LAUNCH_SPEED_MPS), np.float32(car.rolling_mps2), car_record(car), body)
    state = np.zeros(NUM_STATES)
    state[State.FORWARD :] = body
    return Launch(float(distance_m), int(ticks) * float(TICK_S), state)


@entry_point()
def _accelerate(
    until_mps: np.float32, rolling_mps2: np.float32, cars: NDArray[np.void], body: NDArray[np.float32]
) -> tuple[np.float32, int]:
    """Distance (m) and ticks; fills `body`. A separate entry point, so that its compiled code is cached on disk."""
    zero, one = np.float32(0.0), np.float32(1.0)
    pose, now = (zero, zero, zero), (zero, zero, zero, zero, zero, zero, zero)
    ticks = 0
    while now[0] < until_mps:
        pose, now = advance(pose, now, (zero, one, zero), one, rolling_mps2, cars[0])
        ticks += 1
    body[0], body[1], body[2], body[3], body[4], body[5], body[6] = now
    return pose[0], ticks

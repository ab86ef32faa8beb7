"""The first metres from rest, where the optimiser's equations do not hold: driven in the simulator itself."""

from dataclasses import dataclass

import numpy as np

from hotlap.optimal.collocation import Floats
from hotlap.optimal.model import NUM_STATES, State
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
    f = np.float32
    record = car_record(car)[0]
    pose, body = (f(0), f(0), f(0)), (f(0),) * 7
    command = (f(0), f(1), f(0))
    ticks = 0
    while body[0] < LAUNCH_SPEED_MPS:
        pose, body = advance(pose, body, command, f(1), f(car.rolling_mps2), record)
        ticks += 1
    state = np.zeros(NUM_STATES)
    state[State.FORWARD :] = body
    return Launch(float(pose[0]), ticks * float(TICK_S), state)

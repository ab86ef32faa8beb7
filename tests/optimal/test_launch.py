"""The launch: the simulator's own first metres."""

import numpy as np
import pytest

from hotlap.optimal.launch import LAUNCH_SPEED_MPS, launch
from hotlap.optimal.model import State
from hotlap.sim.vehicle import TICK_S
from optimal.kernels import CAR, sprint_s


def test_the_launch_ends_on_the_first_tick_at_speed_straight_and_at_full_throttle():
    start = launch(CAR)
    assert LAUNCH_SPEED_MPS <= start.state[State.FORWARD] < LAUNCH_SPEED_MPS + 10.0 * float(TICK_S)
    assert (start.time_s / float(TICK_S)) % 1.0 == pytest.approx(0.0, abs=1e-6)
    unused = [State.LATERAL, State.HEADING, State.LEFT, State.YAW, State.STEER, State.BRAKE]
    assert (start.state[unused] == 0.0).all()
    assert start.state[State.THROTTLE] == pytest.approx(1.0, abs=1e-3)
    assert start.state[State.SHIFT] > 0.0  # load on the rear axle


def test_the_launch_takes_as_long_as_in_the_simulator_and_longer_with_a_weaker_car():
    start = launch(CAR)
    assert sprint_s(np.zeros(7), start.distance_m) == pytest.approx(start.time_s, abs=1e-4)
    assert launch(CAR._replace(drive_force_n=5e3)).time_s > 1.5 * start.time_s

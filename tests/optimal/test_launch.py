"""The launch: the simulator's own first metres."""

import numpy as np
import pytest

from hotlap.optimal.launch import LAUNCH_SPEED_MPS, launch
from hotlap.optimal.model import State
from hotlap.sim.vehicle import TICK_S

from .kernels import CAR, sprint_s


def test_it_ends_on_the_first_tick_at_speed():
    start = launch(CAR)
    speed_mps = start.state[State.FORWARD]
    assert LAUNCH_SPEED_MPS <= speed_mps < LAUNCH_SPEED_MPS + 10.0 * float(TICK_S)
    assert (start.time_s / float(TICK_S)) % 1.0 == pytest.approx(0.0, abs=1e-6)


def test_it_goes_straight_at_full_throttle():
    state = launch(CAR).state
    assert (
        state[
            [
                State.LATERAL,
                State.HEADING,
                State.LEFT,
                State.YAW,
                State.STEER,
                State.BRAKE,
            ]
        ].tolist()
        == [0.0] * 6
    )
    assert state[State.THROTTLE] == pytest.approx(1.0, abs=1e-3)
    assert state[State.SHIFT] > 0.0  # on its rear wheels


def test_it_takes_as_long_as_the_simulator_for_the_same_metres():
    start = launch(CAR)
    assert sprint_s(np.zeros(7), start.distance_m) == pytest.approx(start.time_s, abs=1e-4)


def test_a_weaker_car_takes_longer():
    weak = launch(CAR._replace(drive_force_n=5e3))
    assert weak.time_s > 1.5 * launch(CAR).time_s

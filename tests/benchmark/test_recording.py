from types import SimpleNamespace

import numpy as np
import pytest

from hotlap.benchmark.actions import to_ticks
from hotlap.benchmark.recording import RecordingDriver, WithoutEyes, cut_drives
from hotlap.errors import DriverError


class Scripted:
    """Gives one action after the other to its only car."""

    name = "scripted"

    def __init__(self, *actions):
        self._actions, self.fleet = list(actions), None

    def begin(self, fleet, seed):
        self.fleet = fleet

    def act(self, obs):
        return np.array([self._actions.pop(0)], np.float32)


FLEET = SimpleNamespace(num_cars=1, tracks=[], settings=None, states=np.zeros(1), rows=np.array([3]), field="others")


def test_a_recorded_driver_drives_as_before_and_its_actions_are_kept():
    recorded = RecordingDriver(Scripted((0.1, 1.0, 0.0), (0.2, 0.0, 1.0)))
    recorded.begin(FLEET, 5)
    given = [recorded.act(np.zeros((1, 14), np.float32)) for _ in range(2)]
    np.testing.assert_array_equal(np.stack(recorded.actions), np.stack(given))
    assert recorded.rows.tolist() == [3]
    with pytest.raises(DriverError, match="driver scripted: an action is not a number"):
        RecordingDriver(Scripted((np.nan, 0.0, 0.0))).act(np.zeros((1, 14), np.float32))


def test_each_drive_is_cut_where_it_ended():
    """Two cars over four ticks; the first ended after two of them."""
    actions = [np.array([[tick, 0, 0], [10 + tick // 2, 0, 0]], np.float32) for tick in range(4)]
    first, second = cut_drives(actions, np.array([2, 4]))
    assert to_ticks(first)[:, 0].tolist() == [0.0, 1.0]
    assert second["ticks"].tolist() == [2, 2]
    assert to_ticks(second)[:, 0].tolist() == [10.0, 10.0, 11.0, 11.0]


def test_a_driver_without_eyes_is_not_shown_the_other_cars():
    driver = Scripted()
    WithoutEyes(driver).begin(FLEET, 0)
    assert driver.fleet.num_cars == 1
    assert driver.fleet.states is FLEET.states
    assert not hasattr(driver.fleet, "field")

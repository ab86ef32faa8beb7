import numpy as np
import pytest

from hotlap.errors import StateError, TrainingError
from hotlap.learning.distributed.processes import ALONE, Place, Processes
from hotlap.runs.snapshot import Snapshot
from hotlap.training.divided_cars import join_cars, take_cars


class Recorded(Processes):
    """A process whose peers have sent their messages before."""

    def __init__(self, rank, messages):
        super().__init__(Place(rank, len(messages[0])))
        self._messages = list(messages)

    def gather_bytes(self, own):
        found = list(self._messages.pop(0))
        found[self.rank] = own
        return found


def snapshot_of(cars, weight=1.0):
    columns = {"x": np.array(cars, np.float32), "obs": np.array([[car, car] for car in cars])}
    return Snapshot(
        {"learner": {"counters": {"num_timesteps": 7}}},
        {
            "policy": {"weight": np.array([weight])},
            "envs": {**columns, "is_reset": np.array(True)},
            "learner": {"log_ent_coef": np.ones(3)},
            "normalizer": {"returns": columns["x"], "obs_mean": np.zeros(2)},
        },
    )


class Echo(Processes):
    """A process that gets its own messages back."""

    def __init__(self):
        super().__init__(Place(0, 2))
        self.sent = []

    def gather_bytes(self, own):
        self.sent.append(own)
        return [own, own]


def messages(cars, **options):
    """What a process with these cars sends."""
    echo = Echo()
    join_cars(snapshot_of(cars, **options), echo)
    return echo.sent


def assert_equal(found, expected):
    assert found.plain == expected.plain
    assert {group: set(arrays) for group, arrays in found.groups.items()} == {
        group: set(arrays) for group, arrays in expected.groups.items()
    }
    for group, arrays in expected.groups.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(found.groups[group][name], array)


def test_the_joined_state_is_that_of_one_process_with_all_cars():
    other = messages([3, 4])
    processes = Recorded(0, [[b"", other[0]], [b"", other[1]]])
    assert_equal(join_cars(snapshot_of([1, 2]), processes), snapshot_of([1, 2, 3, 4]))


@pytest.mark.parametrize(("rank", "cars"), [(0, [1, 2]), (1, [3, 4])])
def test_each_process_takes_its_own_cars(rank, cars):
    assert_equal(take_cars(snapshot_of([1, 2, 3, 4]), Processes(Place(rank, 2))), snapshot_of(cars))


def test_a_process_that_is_alone_keeps_the_state():
    state = snapshot_of([1, 2, 3])
    assert join_cars(state, ALONE) is state
    assert take_cars(state, ALONE) is state


def test_cars_that_cannot_be_divided_are_refused():
    with pytest.raises(StateError, match="its 3 cars cannot be divided over 2 processes"):
        take_cars(snapshot_of([1, 2, 3]), Processes(Place(0, 2)))


def test_processes_with_different_weights_are_refused():
    other = messages([3, 4], weight=2.0)
    with pytest.raises(TrainingError, match="different weights"):
        join_cars(snapshot_of([1, 2]), Recorded(0, [[b"", other[0]], [b"", other[1]]]))

"""A model drives the same laps on a GPU as on the CPU, to the bit."""

import numpy as np
import pytest
from numba import typeof

from hotlap.errors import CudaError
from hotlap.evaluation.evaluate import drive_compiled, make_evaluation_fleet
from hotlap.sim import policy_drive_cuda
from hotlap.sim.policy_drive import DriveRules, begin_drives
from hotlap.sim.policy_forward import make_memory, pack_policy


class Follower:
    """A small policy that drives slowly towards the free side: it steers by the differences of its rays."""

    name, action_repeat = "follower", 3

    def __init__(self):
        weights, bias = np.zeros((3, 14), np.float32), np.array([0.0, 0.08, 0.0], np.float32)
        weights[0, :4], weights[0, 5:9] = (0.5, 1.0, 1.5, 2.0), (-2.0, -1.5, -1.0, -0.5)
        bounds = np.array([-1, 0, 0], np.float32), np.ones(3, np.float32)
        self.packed = pack_policy([(weights, bias)], activation="tanh", bounds=bounds)


def laps_of(device):
    fleet = make_evaluation_fleet("track-01", 300)
    fleet.seed(np.arange(300, dtype=np.uint64))
    fleet.reset(start="random")
    counter = drive_compiled(Follower(), fleet, 1, device=device)
    return counter.laps, counter.returns, counter.wall_contacts, fleet.states.copy()


@pytest.mark.gpu
@pytest.mark.timeout(300)
def test_a_gpu_drives_the_laps_of_the_cpu():
    (laps, returns, contacts, states), (gpu_laps, gpu_returns, gpu_contacts, gpu_states) = (
        laps_of("cpu"),
        laps_of("cuda"),
    )
    assert gpu_laps == laps
    assert len(laps) > 100
    np.testing.assert_array_equal(gpu_returns, returns)
    assert gpu_contacts == contacts
    assert gpu_states.tobytes() == states.tobytes()


def test_without_a_gpu_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(policy_drive_cuda, "find_problem", lambda: "no NVIDIA GPU was found. Use --device cpu.")
    with pytest.raises(CudaError, match=r"^--device cuda: no NVIDIA GPU was found"):
        laps_of("cuda")


def parts_of(kind):
    """The types in a named tuple's type: numba has another class for named tuples of one type only."""
    return tuple(getattr(kind, "types", (kind,)))


def test_the_kernels_types_are_those_of_the_arrays_it_gets(monkeypatch):
    """Known without a GPU: numba's own types of the arrays on the CPU."""
    given = []
    monkeypatch.setattr(policy_drive_cuda, "exact_kernel", lambda function, signature, **_: given.append(signature))
    policy_drive_cuda._kernel.__wrapped__()
    fleet, packed = make_evaluation_fleet("track-01", 4), Follower().packed
    rules = DriveRules(1, 3, 3600, 120.0)
    drives = begin_drives(fleet.batch, np.full(4, 900.0), 1)
    arguments = (packed, make_memory(packed, 4, 4), rules, *fleet.scenario, fleet.batch, drives, 600)
    for type_given, argument in zip(given[0], arguments, strict=True):
        assert parts_of(type_given) == parts_of(typeof(argument))

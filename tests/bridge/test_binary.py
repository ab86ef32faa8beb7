"""The binary format: its exact layout, and round trips."""

import struct

import numpy as np
import pytest

from hotlap.bridge import binary
from hotlap.bridge.binary import BOOL_COLUMNS, FLOAT_COLUMNS, INT_COLUMNS, read_step, write_step
from hotlap.errors import BridgeError
from hotlap.sim.step import Batch, make_batch


def filled_batch(num_cars: int, num_observations: int = 14) -> Batch:
    """A batch filled with random numbers."""
    batch = make_batch(num_cars, num_observations)
    rng = np.random.default_rng(num_cars)
    for array in (batch.obs, batch.rewards, batch.final_obs):
        array[:] = rng.normal(size=array.shape)
    for infos in (batch.infos, batch.final_infos):
        for name in FLOAT_COLUMNS:
            infos[name] = rng.normal(size=num_cars)
        for name in INT_COLUMNS:
            infos[name] = rng.integers(0, 2**31 - 1, num_cars)
        for name in BOOL_COLUMNS:
            infos[name] = rng.random(num_cars) < 0.5
    batch.terminated[:] = rng.random(num_cars) < 0.5
    batch.truncated[:] = rng.random(num_cars) < 0.5
    return batch


def test_one_car_byte_by_byte():
    batch = make_batch(1)
    batch.obs[0] = np.arange(14)
    batch.rewards[0] = 100.0
    for number, name in enumerate(FLOAT_COLUMNS):
        batch.infos[name] = 200.0 + number
    for number, name in enumerate(INT_COLUMNS):
        batch.infos[name] = 300 + number
    batch.terminated[0], batch.infos["lapClean"] = True, True
    expected = struct.pack("<II", 1, 0)
    expected += struct.pack("<23f", *range(14), 100.0, *range(200, 208))
    expected += struct.pack("<5i", *range(300, 305))
    expected += bytes([1, 0, 0, 1])  # terminated, truncated, wallContact, lapClean
    assert write_step(batch, np.zeros(0, np.intp)) == expected


@pytest.mark.parametrize("num_obs", [14, 58])
@pytest.mark.parametrize(("num_cars", "ended"), [(1, []), (1, [0]), (5, []), (5, [1, 4]), (7, list(range(7)))])
def test_a_step_round_trips(num_cars, ended, num_obs):
    batch = filled_batch(num_cars, num_obs)
    step = read_step(write_step(batch, np.array(ended, np.intp)), num_obs)
    for name in ("obs", "rewards", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(step, name), getattr(batch, name))
        assert getattr(step, name).dtype == getattr(batch, name).dtype
    assert step.ended.tolist() == ended
    np.testing.assert_array_equal(step.final_obs, batch.final_obs[ended])
    for name in (*FLOAT_COLUMNS, *INT_COLUMNS, *BOOL_COLUMNS):
        np.testing.assert_array_equal(step.infos[name], batch.infos[name])
        np.testing.assert_array_equal(step.final_infos[name], batch.final_infos[name][ended])
        assert step.infos[name].dtype == batch.infos[name].dtype
    for array in (step.obs, step.rewards, step.terminated, step.infos["lap"], step.final_obs):
        assert array.flags.writeable


@pytest.mark.parametrize("cut", [0, 4, 7, 8, 60, -1])
def test_a_reply_of_the_wrong_length_is_refused(cut):
    data = write_step(filled_batch(3), np.array([2]))
    for wrong in (data[:cut], data + b"\0"):
        with pytest.raises(BridgeError, match="a binary reply"):
            read_step(wrong)
    with pytest.raises(BridgeError, match="a binary reply"):
        read_step(data, 58)
    with pytest.raises(BridgeError, match="a binary reply of 4294967295"):
        read_step(struct.pack("<II", 2**32 - 1, 2**32 - 1))


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
def test_a_reply_with_a_car_outside_the_batch_is_refused(index):
    data = write_step(filled_batch(3), np.array([2]))
    offset = 8 + 3 * (28 * 4 + 4)
    assert data[offset : offset + 4] == struct.pack("<i", 2)
    with pytest.raises(BridgeError, match="names a car that is not in the batch"):
        read_step(data[:offset] + struct.pack("<i", index) + data[offset + 4 :])


def test_actions_round_trip_and_need_the_right_length():
    actions = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    data = binary.write_actions(actions)
    assert data == struct.pack("<12f", *actions.ravel().tolist())
    np.testing.assert_array_equal(binary.read_actions(data, 4), actions)
    for num_bytes in (0, 11, 13, 24):
        with pytest.raises(BridgeError, match=rf"a binary step of 1 car\(s\) is 12 bytes .* got {num_bytes}\."):
            binary.read_actions(bytes(num_bytes), 1)

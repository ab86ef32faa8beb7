"""The binary form: its layout, byte by byte, and there and back."""

import struct

import numpy as np
import pytest

from hotlap.bridge.binary import (
    BOOL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    read_actions,
    read_step,
    write_actions,
    write_step,
)
from hotlap.errors import BridgeError
from hotlap.sim.step import Batch, make_batch


def filled_batch(num_cars: int) -> Batch:
    """A batch in which every number is another."""
    batch = make_batch(num_cars)
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


def test_the_columns_are_those_documented():
    assert FLOAT_COLUMNS == (
        "progress", "speed", "wall", "offTrack", "backward", "stillness", "rawSpeed", "lapTime"
    )  # fmt: skip
    assert INT_COLUMNS == ("lap", "checkpoint", "stepCount", "tick", "stillnessCounter")
    assert BOOL_COLUMNS == ("wallContact", "lapClean")


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


@pytest.mark.parametrize(("num_cars", "ended"), [(1, []), (1, [0]), (5, []), (5, [1, 4]), (7, list(range(7)))])
def test_a_step_comes_out_as_it_went_in(num_cars, ended):
    batch = filled_batch(num_cars)
    step = read_step(write_step(batch, np.array(ended, np.intp)))
    for name in ("obs", "rewards", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(step, name), getattr(batch, name))
        assert getattr(step, name).dtype == getattr(batch, name).dtype
    assert step.ended.tolist() == ended
    np.testing.assert_array_equal(step.final_obs, batch.final_obs[ended])
    for name in (*FLOAT_COLUMNS, *INT_COLUMNS, *BOOL_COLUMNS):
        np.testing.assert_array_equal(step.infos[name], batch.infos[name])
        np.testing.assert_array_equal(step.final_infos[name], batch.final_infos[name][ended])
        assert step.infos[name].dtype == batch.infos[name].dtype


def test_what_was_read_may_be_changed():
    step = read_step(write_step(filled_batch(3), np.array([1])))
    for array in (step.obs, step.rewards, step.terminated, step.infos["lap"], step.final_obs):
        array[:] = 0


@pytest.mark.parametrize("cut", [0, 4, 7, 8, 60, -1])
def test_a_reply_of_the_wrong_length_is_refused(cut):
    data = write_step(filled_batch(3), np.array([2]))
    for wrong in (data[:cut], data + b"\0"):
        with pytest.raises(BridgeError, match="a binary reply"):
            read_step(wrong)


def test_a_reply_that_promises_more_than_memory_holds_is_refused():
    with pytest.raises(BridgeError, match="a binary reply of 4294967295"):
        read_step(struct.pack("<II", 2**32 - 1, 2**32 - 1))


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
def test_a_reply_about_a_car_that_is_not_there_is_refused(index):
    data = write_step(filled_batch(3), np.array([2]))
    place = 8 + 3 * (28 * 4 + 4)
    assert data[place : place + 4] == struct.pack("<i", 2)
    with pytest.raises(BridgeError, match="names a car beyond them"):
        read_step(data[:place] + struct.pack("<i", index) + data[place + 4 :])


def test_actions_there_and_back():
    actions = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    data = write_actions(actions)
    assert data == struct.pack("<12f", *actions.ravel().tolist())
    np.testing.assert_array_equal(read_actions(data, 4), actions)


@pytest.mark.parametrize("num_bytes", [0, 11, 13, 24])
def test_actions_of_the_wrong_length_are_refused(num_bytes):
    with pytest.raises(BridgeError, match=rf"a binary step of 1 car\(s\) is 12 bytes .* got {num_bytes}\."):
        read_actions(bytes(num_bytes), 1)

"""States of cars over the bridge: saved and restored bit for bit, and refused where they do not fit."""

import json

import numpy as np
import pytest

from bridge.json_clients import FULL_THROTTLE, SHORT_RANDOM, JsonSession
from hotlap.bridge.car_states import COLUMN_NAMES, MAX_CARS_PER_MESSAGE, read_columns, state_columns
from hotlap.bridge.protocol import MAX_REQUEST_BYTES, SetState, encode
from hotlap.sim.world import STATE_DTYPE


def driven(num_envs: int | None, num_steps: int = 40) -> JsonSession:
    """A session whose cars have driven a while."""
    ask = JsonSession()
    ask(type="reset", numEnvs=num_envs, seed=3, config=SHORT_RANDOM, trackId="track-02", actionRepeat=2)
    for _ in range(num_steps):
        ask(type="step", action=[FULL_THROTTLE] * num_envs if num_envs else FULL_THROTTLE)
    return ask


def fleet_of(ask: JsonSession):
    return ask.session._simulation.fleet


@pytest.mark.parametrize("num_envs", [None, 5])
def test_a_restored_simulation_continues_bit_identically(num_envs):
    ask, other = driven(num_envs), driven(num_envs, 0)
    state = ask(type="get_state")["state"]
    assert list(state) == list(COLUMN_NAMES)
    reply = other(type="set_state", state=state)
    assert reply["type"] == "set_state_result"
    assert reply["observation"] == fleet_of(ask).batch.obs.tolist()
    for _ in range(60):  # over the ends of episodes: the seeds and episode counts are part of the state
        action = [FULL_THROTTLE] * num_envs if num_envs else FULL_THROTTLE
        assert ask(type="step", action=action) == other(type="step", action=action)
    assert ask(type="reset", config=SHORT_RANDOM, trackId="track-02", numEnvs=num_envs) == other(
        type="reset", config=SHORT_RANDOM, trackId="track-02", numEnvs=num_envs
    )


def test_a_state_of_some_cars_leaves_the_others_alone():
    ask, other = driven(5), driven(5, 0)
    before = fleet_of(other).get_state()
    state = ask(type="get_state")["state"]
    rows = {name: column[1:3] for name, column in state.items()}
    assert np.shape(other(type="set_state", first=2, state=rows)["observation"]) == (2, 14)
    after = fleet_of(other).get_state()
    for name in COLUMN_NAMES:
        assert after[name][2:4].tolist() == state[name][1:3]
        assert after[name][[0, 1, 4]].tolist() == before[name][[0, 1, 4]].tolist()


def test_the_numbers_of_a_message_are_read_back_exactly_and_fit_into_a_request():
    rng = np.random.default_rng(0)
    state = {}
    for name in COLUMN_NAMES:
        column = np.frombuffer(rng.bytes(MAX_CARS_PER_MESSAGE * STATE_DTYPE[name].itemsize), STATE_DTYPE[name]).copy()
        if column.dtype.kind == "f":
            column[~np.isfinite(column)] = -np.finfo(np.float32).tiny
        else:
            column[0] = np.iinfo(column.dtype).min
            column[1] = np.iinfo(column.dtype).max
        state[name] = column
    data = encode(SetState(state_columns(state), 999))
    assert 0.5 * MAX_REQUEST_BYTES < len(data) < MAX_REQUEST_BYTES
    again = read_columns(json.loads(data)["state"], MAX_CARS_PER_MESSAGE)
    for name, column in state.items():
        assert (again[name].dtype, again[name].tobytes()) == (column.dtype, column.tobytes())

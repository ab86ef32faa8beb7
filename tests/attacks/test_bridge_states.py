"""States of cars that a client made up: refused where no car can have them, and harmless where they are accepted."""

import time

import numpy as np
import pytest

from bridge.json_clients import JsonSession
from hotlap.envs.fleet import MAX_MAGNITUDES

BAD_COLUMNS: dict[str, tuple[str, list[object]]] = {
    "an unknown column": ("wings", [0.0, 0.0]),
    "a column too short": ("x_m", [0.0]),
    "a column too long": ("x_m", [0.0] * 3),
    "a fraction for a whole number": ("lap", [1.5, 1.0]),
    "a track that is not there": ("track", [0, 1]),
    "a negative track": ("track", [0, -1]),
    "a node beyond the track": ("node", [0, 2**31 - 1]),
    "a negative node": ("node", [-1, 0]),
    "a gate too many": ("next_gate", [0, 30]),
    "a whole number too large for its type": ("node", [0, 2**31]),
    "a whole number of 400 digits": ("tick", [0, 10**400]),
    "a whole number of 400 digits for a fraction": ("x_m", [0, 10**400]),
    "a negative seed": ("seed", [0, -1]),
    "a seed too large": ("seed", [0, 2**64]),
    "a car too far away": ("x_m", [0.0, 1e7]),
    "a number too large for float32": ("y_m", [0.0, 1e300]),
    "a car too fast": ("forward_mps", [0.0, 1e4]),
}


@pytest.mark.parametrize("attack", BAD_COLUMNS)
def test_a_state_that_no_car_can_have_is_refused_and_changes_nothing(attack):
    ask = JsonSession()
    ask(type="reset", numEnvs=2, seed=1)
    state = ask(type="get_state")["state"]
    name, column = BAD_COLUMNS[attack]
    refused = ask(type="set_state", state={**state, name: column})
    assert (refused["type"], refused["message"].startswith("state: ")) == ("error", True)
    assert ask(type="get_state")["state"] == state


def test_a_state_of_other_cars_than_there_are_is_refused_and_changes_nothing():
    ask = JsonSession()
    ask(type="reset", numEnvs=2, seed=1)
    state = ask(type="get_state")["state"]
    missing = {name: column for name, column in state.items() if name != "lap"}
    for first, rows in ((1, state), (2, state), (1023, state), (0, {}), (0, missing), (0, {key: [] for key in state})):
        assert ask(type="set_state", first=first, state=rows)["type"] == "error"
        assert ask(type="get_state")["state"] == state


def test_any_state_that_is_accepted_can_be_driven_on_in_no_time():
    ask, rng = JsonSession(), np.random.default_rng(0)
    ask(type="reset", numEnvs=64, seed=1, observation="road")
    first, accepted = ask(type="get_state")["state"], 0
    limits = {**MAX_MAGNITUDES, "track": 0, "node": 500, "next_gate": 29, "seed": 2**62}
    for _ in range(30):
        state = {}
        for name, column in first.items():
            limit = limits.get(name, 2**31 - 1)
            if name in MAX_MAGNITUDES:
                state[name] = rng.choice(
                    [-limit, 0.0, limit * 1e-30, limit, *rng.uniform(-limit, limit, 9)], 64
                ).tolist()
            else:
                state[name] = rng.choice([0, limit, *rng.integers(0, limit + 1, 9)], 64).tolist()
            state[name] = column if rng.random() < 0.3 else state[name]
        accepted += ask(type="set_state", state=state)["type"] == "set_state_result"
        began_s = time.perf_counter()
        reply = ask(type="step", action=rng.uniform(-1, 1, (64, 3)).tolist())
        assert time.perf_counter() - began_s < 5.0
        assert np.isfinite(reply["observation"]).all()
    assert accepted == 30

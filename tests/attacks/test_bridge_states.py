"""States of cars that a client made up: refused where no car can have them, and harmless where they are accepted."""

import time

import numpy as np
import pytest

from bridge.json_clients import JsonSession
from hotlap.envs.fleet import MAX_MAGNITUDES
from hotlap.envs.race_fleet import MAX_RACE_MAGNITUDES

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


RACE_LIMITS = {f"race_{name}": limit for name, limit in MAX_RACE_MAGNITUDES.items()} | {"race_race_time_s": 1e38}
FLOATS = {*MAX_MAGNITUDES, *RACE_LIMITS} - {"race_laps_done"}


@pytest.mark.parametrize(("num_cars", "kind"), [(64, {"observation": "road"}), (16, {"race": {"laps": 1}})])
def test_any_state_that_is_accepted_can_be_driven_on_in_no_time(num_cars, kind):
    ask, rng = JsonSession(), np.random.default_rng(0)
    ask(type="reset", numEnvs=num_cars, seed=1, **kind)
    first, accepted = ask(type="get_state")["state"], 0
    limits = {**MAX_MAGNITUDES, **RACE_LIMITS, "track": 0, "node": 500, "next_gate": 29, "seed": 2**62}
    limits |= {"race_status": 2, "race_slot": num_cars - 1, "race_laps_done": 10**6}
    for _ in range(30):
        state = {}
        for name, column in first.items():
            limit = limits.get(name, 2**31 - 1)
            if name in FLOATS:
                choices = [-limit, 0.0, limit * 1e-30, limit, *rng.uniform(-limit, limit, 9)]
            else:
                choices = [0, limit, *rng.integers(0, limit + 1, 9)]
            state[name] = rng.choice(choices, num_cars).tolist()
            is_kept = rng.random() < 0.3 and name not in ("race_status", "race_race_time_s")
            state[name] = column if is_kept else state[name]
        accepted += ask(type="set_state", state=state)["type"] == "set_state_result"
        began_s = time.perf_counter()
        reply = ask(type="step", action=rng.uniform(-1, 1, (num_cars, 3)).tolist())
        assert time.perf_counter() - began_s < 5.0
        assert np.isfinite(reply["observation"]).all()
        assert np.isfinite(np.array(list(reply["info"].values()), np.float64)[:13]).all()
    assert accepted == 30


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("race_status", [0, 3]),
        ("race_slot", [0, 2]),
        ("race_laps_done", [0, -(2**31)]),
        ("race_tick", [0, -1]),
        ("race_contact_mps", [0.0, 1e300]),
        ("race_slipstream", [0.0, None]),
        ("race_race_time_s", [None, "soon"]),
    ],
)
def test_a_state_that_no_car_in_a_race_can_have_is_refused_and_changes_nothing(name, column):
    ask = JsonSession()
    ask(type="reset", numEnvs=2, seed=1, race={})
    state = ask(type="get_state")["state"]
    assert ask(type="set_state", state={**state, name: column})["type"] == "error"
    assert ask(type="set_state", state={**state, "race_status": [0, 1]})["type"] == "error"  # finished, but never
    assert ask(type="get_state")["state"] == state

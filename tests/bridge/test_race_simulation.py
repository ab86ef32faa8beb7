"""Races over the bridge: the bits of RaceVectorEnv in both formats, and one line for what cannot be raced."""

import json

import numpy as np
import pytest

import hotlap
from bridge.json_clients import JsonSession, strict_json
from hotlap.bridge.binary import StepArrays, read_step, write_actions
from hotlap.sim.race import FINISHED

NUM_OBS = 90
RACE_KEYS = {"position", "raceProgress", "contact", "atFault", "overtakes", "slipstream", "finished"}


def begin(ask: JsonSession, num_cars: int = 3, **race) -> dict:
    """A race over the bridge, seeded 8."""
    reply = ask(type="reset", numEnvs=num_cars, race=race, seed=8)
    assert reply["type"] == "reset_result", reply
    return reply


def jostle(num_steps: int, num_cars: int) -> np.ndarray:
    """Actions with which cars meet: every other one brakes, and all steer a little."""
    actions = np.zeros((num_steps, num_cars, 3), np.float32)
    actions[:, ::2, 1] = actions[:, 1::2, 2] = 1.0
    actions[:, :, 0] = np.random.default_rng(3).uniform(-0.02, 0.02, num_cars)
    return actions


def ask_binary(ask: JsonSession, actions: np.ndarray) -> StepArrays:
    frame = ask.session.answer(write_actions(actions), is_binary=True)
    assert frame.is_binary, frame.data
    return read_step(frame.data, NUM_OBS, is_race=True)


def assert_same_columns(columns: dict, info: dict, rows: np.ndarray) -> None:
    """Columns of the bridge hold what the local info has, for the cars in `rows`."""
    for name, values in columns.items():
        if f"_{name}" in info:
            valid = info[f"_{name}"] & rows
            np.testing.assert_array_equal(np.asarray(values)[valid], info[name][valid], name)


@pytest.mark.parametrize("start", ["grid", "rolling"])
def test_both_formats_have_the_bits_of_the_local_race(ask, start):
    other, env = JsonSession(), hotlap.RaceVectorEnv(num_races=1, num_cars=6, laps=2, start=start)
    other(type="hello", binary=True)
    first, again = (begin(one, 6, laps=2, start=start) for one in (ask, other))
    obs, info = env.reset(seed=8)
    assert first == again
    assert first["observation"] == obs.tolist()
    assert {name: first["info"][name] for name in RACE_KEYS} == {name: info[name].tolist() for name in RACE_KEYS}
    everyone, touched = np.ones(6, bool), 0
    for actions in jostle(200, 6):
        obs, rewards, terminated, truncated, info = env.step(actions)
        reply, step = ask(type="step", action=actions.tolist()), ask_binary(other, actions)
        assert reply["observation"] == step.obs.tolist() == obs.tolist()
        assert reply["reward"] == step.rewards.tolist() == rewards.tolist()
        assert reply["terminated"] == step.terminated.tolist() == terminated.tolist()
        assert reply["truncated"] == step.truncated.tolist() == truncated.tolist()
        assert set(reply["info"]) >= RACE_KEYS
        assert_same_columns(reply["info"], info, everyone)
        assert_same_columns(step.infos, info, everyone)
        assert (step.infos["atFault"].dtype, step.infos["position"].dtype) == (np.bool_, np.int32)
        touched += int(info["contact"].any())
    assert touched > 0


def test_the_end_of_a_race_is_in_the_finals_and_the_next_one_has_begun(ask):
    """The state of a race whose first car is home and whose second is one tick from the line."""
    other, env = JsonSession(), hotlap.RaceVectorEnv(num_races=1, num_cars=2, laps=1)
    other(type="hello", binary=True)
    env.reset(seed=8)
    for one in (ask, other):
        begin(one, 2, laps=1)
    state, nodes = env.get_state(), env.fleet.tracks[0].nodes
    last = nodes.num_nodes - 1
    state["race_status"][0], state["race_race_time_s"][0] = FINISHED, 12.5
    state["race_laps_done"][1], state["node"][1], state["share"][1], state["lateral_m"][1] = 0, last, 0.8, 0.0
    state["x_m"][1], state["y_m"][1] = (0.2 * values[last] + 0.8 * values[0] for values in (nodes.x_m, nodes.y_m))
    state["yaw_rad"][1], state["forward_mps"][1] = np.arctan2(nodes.tangent_y[0], nodes.tangent_x[0]), 30.0
    for name in ("arc_m", "race_arc_m"):
        state[name][1] = nodes.length_m - 0.2
    env.set_state(state)
    sent = {name: [None if value != value else value for value in column.tolist()] for name, column in state.items()}
    for one in (ask, other):
        assert one(type="set_state", state=sent)["type"] == "set_state_result"
    actions = np.zeros((2, 3), np.float32)
    obs, _, terminated, _, info = env.step(actions)
    reply, step = ask(type="step", action=actions.tolist()), ask_binary(other, actions)
    assert terminated.tolist() == reply["terminated"] == step.terminated.tolist() == [True, True]
    assert reply["observation"] == step.obs.tolist() == obs.tolist()
    finals = [reply["finals"][str(car)] for car in range(2)]
    assert [final["observation"] for final in finals] == step.final_obs.tolist() == info["final_obs"].tolist()
    assert "raceTime" not in reply["info"]
    assert np.isnan(step.infos["raceTime"]).all()
    local_s = info["final_info"]["raceTime"][1]
    assert local_s == np.float32(finals[1]["info"]["raceTime"]) == step.final_infos["raceTime"][1]
    assert local_s == pytest.approx(0.2 / 30.0, abs=0.003)  # of a race that had not driven a tick
    assert "raceTime" not in finals[0]["info"]
    assert [final["info"]["finished"] for final in finals] == [True, True]
    everyone = np.ones(2, bool)
    assert_same_columns(
        {name: [final["info"][name] for final in finals] for name in RACE_KEYS}, info["final_info"], everyone
    )
    assert_same_columns(step.final_infos, info["final_info"], everyone)
    assert (
        fleet_states(ask) == fleet_states(other) == {name: column.tolist() for name, column in cleaned(env.get_state())}
    )


def cleaned(state: dict) -> list:
    return [(name, np.nan_to_num(column)) for name, column in state.items()]


def fleet_states(ask: JsonSession) -> dict:
    return {name: column.tolist() for name, column in cleaned(ask.session._simulation.fleet.get_state())}


def test_a_car_that_comes_in_while_others_race_reports_its_time_once(ask):
    begin(ask, 2, laps=1)
    fleet = ask.session._simulation.fleet
    fleet.entrants["laps_done"][0] = 0  # on the grid a car is one crossing behind
    reply = {"info": {}}
    while "raceTime" not in reply["info"]:
        reply = ask(type="step", action=[[0, 1, 0], [0, 0, 1]])
        assert reply["info"]["tick"][0] < 300
    assert reply["info"]["raceTime"][1] is None
    assert 1.0 < reply["info"]["raceTime"][0] < 5.0
    assert reply["info"]["finished"] == [True, False]
    assert "raceTime" not in ask(type="step", action=[[0, 1, 0], [0, 0, 1]])["info"]


def test_a_grid_is_of_one_race_and_reuses_the_simulation(ask):
    env = hotlap.RaceVectorEnv(num_cars=3, laps=1)
    begin(ask, laps=1)
    drawn, fleet = ask(type="get_state")["state"]["x_m"], ask.session._simulation.fleet
    expected, _ = env.reset(seed=8, options={"grid": [2, 0, 1]})
    reply = begin(ask, laps=1, grid=[2, 0, 1])
    assert reply["observation"] == expected.tolist()
    assert reply["info"]["position"][1] == 3
    assert ask.session._simulation.fleet is fleet
    begin(ask, laps=1)
    assert ask(type="get_state")["state"]["x_m"] == drawn
    begin(ask, laps=2)
    assert ask.session._simulation.fleet is not fleet


def test_action_repeat_and_a_state_that_is_sent_back(ask):
    env, other = hotlap.RaceVectorEnv(num_cars=3), JsonSession()
    for one in (ask, other):
        one(type="reset", numEnvs=3, race={}, seed=1, actionRepeat=4)
    env.reset(seed=1)
    for actions in jostle(5, 3):
        reply = ask(type="step", action=actions.tolist())
        for _ in range(4):
            obs, *_ = env.step(actions)
    assert reply["observation"] == obs.tolist()
    state = ask(type="get_state")["state"]
    assert state["race_race_time_s"] == [None] * 3
    other(type="set_state", state=state)
    step = {"type": "step", "action": [[0.1, 1, 0]] * 3}
    assert ask(**step) == other(**step)
    state["race_contact_mps"][1] = None
    assert "'race_contact_mps' must hold numbers, got null" in other(type="set_state", state=state)["message"]
    other(type="reset", numEnvs=3)
    assert "columns are not those" in other(type="set_state", state=state)["message"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"numEnvs": 0}, "numEnvs of a race must be from 1 to 32, got 0."),
        ({"numEnvs": 33}, "numEnvs of a race must be from 1 to 32, got 33."),
        ({"numEnvs": None}, "race: needs numEnvs, the number of its cars, from 1 to 32."),
        ({"race": {"laps": 0}}, "race: laps must be from 1 to 1000, got 0."),
        ({"race": {"laps": 1001}}, "race: laps must be from 1 to 1000, got 1001."),
        ({"race": {"laps": 2.5}}, "race: laps must be a whole number, got 2.5."),
        ({"race": {"laps": True}}, "race: laps must be a whole number, got True."),
        ({"race": {"lap": 3}}, "race: unknown key 'lap'. Did you mean 'laps'?"),
        ({"race": {"start": "line"}}, "race: start must be one of 'grid', 'rolling', got 'line'."),
        ({"race": {"grid": [0, 0, 1]}}, "grid: must name each car from 0 to 2 once, got [0, 0, 1]."),
        ({"race": {"grid": [0, 1]}}, "grid: must name each car from 0 to 2 once, got [0, 1]."),
        ({"race": {"grid": "no"}}, "race: grid must be a list, got 'no'."),
        ({"race": 5}, "race must be an object, got 5."),
        ({"race": []}, "race must be an object, got []."),
        ({"trackId": ["track-01", "track-02"]}, "trackId: the cars of a race share one road, got 2 tracks."),
        ({"start": "random"}, "start: a race starts from a grid."),
        ({"observation": "road"}, "observation of a race must be 'race', got 'road'."),
        ({"race": None, "observation": "race"}, "observation: 'race' needs other cars."),
        ({"seed": [1, 2, 3]}, "seed: a race has one for all its cars, got a list of 3."),
        ({"seed": -1}, "seed must be zero or more, got -1."),
        ({"trackId": "nowhere"}, "is not known"),
        ({"actionRepeat": 61}, "actionRepeat must be from 1 to 60 ticks, got 61."),
    ],
)  # fmt: skip
def test_what_cannot_be_raced_gets_one_line_and_changes_nothing(ask, fields, words):
    begin(ask)
    reply = ask(**{"type": "reset", "numEnvs": 3, "race": {}} | fields)
    assert reply["type"] == "error", reply
    assert words in reply["message"]
    assert "\n" not in reply["message"]
    assert ask(type="step", action=[[0, 1, 0]] * 3)["info"]["tick"] == [1, 1, 1]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "null", "1e999", '"gas"', "[0]"])
def test_a_bad_action_names_its_car_and_no_car_moves(ask, text):
    before = begin(ask)
    ask(type="hello", binary=True)
    state = ask(type="get_state")
    data = '{"type":"step","action":[[0,1,0],[0,1,BAD],[0,1,0]]}'.replace("BAD", text)
    message = strict_json(ask.session.answer(data.encode()).data)["message"]
    assert message.startswith("action of car_1 must be three finite numbers, got [0, 1, ")
    assert message.endswith("; nothing moved.")
    for bad in (np.nan, np.inf):
        actions = np.zeros((3, 3), np.float32)
        actions[2, 0] = bad
        refused = strict_json(ask.session.answer(write_actions(actions), is_binary=True).data)["message"]
        assert refused.startswith("action of car_2 must be finite")
    assert ask(type="get_state") == state
    assert ask(type="reset", numEnvs=3, race={}, seed=8) == before


def test_a_batch_of_cars_alone_names_the_car_too(ask):
    ask(type="reset", numEnvs=2)
    data = json.dumps({"type": "step", "action": [[0, 1, 0], [0, float("nan"), 0]]})
    message = strict_json(ask.session.answer(data.encode()).data)["message"]
    assert message == "action of car 1 must be three finite numbers, got [0, nan, 0]; nothing moved."
    for broken in ('{"type":"step","action":[[0,1,0],[0,1,0]]', '{"type":"step","action":7}', "[[0]]"):
        assert strict_json(ask.session.answer(broken.encode()).data)["message"].startswith("request: ")


def test_one_car_alone_in_its_race_drives_as_without_one(ask):
    env = hotlap.RacerEnv()
    obs, _ = env.reset(seed=8)
    assert begin(ask, 1)["observation"][0][:14] == obs.tolist()
    for actions in jostle(60, 1):
        obs, reward, *_ = env.step(actions[0])
        reply = ask(type="step", action=actions.tolist())
    assert reply["observation"][0][:14] == obs.tolist()
    assert reply["reward"] == [reward]

"""The cars behind the environments: holding an action, saving and restoring, and refusing what does not fit."""

import copy
from collections import Counter

import numpy as np
import pytest

from hotlap.envs.fleet import CARS_WORTH_A_THREAD, LARGEST, MAX_REPEAT, Fleet, suited_engine
from hotlap.envs.racer import RacerEnv, step_info
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.sim.batch_cpu import CpuEngine, default_threads
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.golden_traces import reflexes

FLOAT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.float32]
INT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.int32]


def make_fleet(track_ids=("track-01", "track-03"), num_cars=4, num_threads=1, **settings) -> Fleet:
    fleet = Fleet(list(track_ids), RacerSettings.load(settings), num_cars, CpuEngine(num_threads))
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset(start="random")
    return fleet


def drive(fleet: Fleet, num_ticks: int) -> None:
    for tick in range(num_ticks):
        fleet.step(reflexes(fleet.batch.obs, tick), autoreset=True)


@pytest.fixture
def fleet() -> Fleet:
    fleet = make_fleet()
    drive(fleet, 20)
    return fleet


def refused(fleet: Fleet, state: object, words: str) -> None:
    """Setting `state` fails, and leaves cars and observations alone."""
    before, obs = fleet.states.copy(), fleet.batch.obs.copy()
    with pytest.raises(StateError, match=words):
        fleet.set_state(state)
    np.testing.assert_array_equal(fleet.states, before)
    np.testing.assert_array_equal(fleet.batch.obs, obs)


def test_cars_take_the_tracks_in_turn():
    assert make_fleet(num_cars=5).states["track"].tolist() == [0, 1, 0, 1, 0]


def test_a_fleet_needs_a_track_that_exists():
    with pytest.raises(ConfigError, match="at least one track"):
        make_fleet(track_ids=())
    with pytest.raises(UnknownTrackError, match="Did you mean 'track-01'"):
        make_fleet(track_ids=("track-1",))


def test_fleets_on_the_same_tracks_share_them():
    assert make_fleet()._setting.ribbons is make_fleet()._setting.ribbons


def test_the_state_is_columns_of_plain_arrays_and_a_copy(fleet):
    state = fleet.get_state()
    assert list(state) == list(STATE_DTYPE.names)
    assert {column.shape for column in state.values()} == {(4,)}
    state["x_m"][:] = 1e6
    assert (fleet.states["x_m"] < 1e5).all()


def test_a_restored_fleet_goes_on_bit_for_bit(fleet):
    state = fleet.get_state()
    other = make_fleet()
    other.set_state(state)
    np.testing.assert_array_equal(other.batch.obs, fleet.batch.obs)
    for one in (fleet, other):
        drive(one, 300)
    np.testing.assert_array_equal(other.states, fleet.states)
    np.testing.assert_array_equal(other.batch.obs, fleet.batch.obs)
    np.testing.assert_array_equal(other.batch.rewards, fleet.batch.rewards)


@pytest.mark.parametrize("state", [None, {}, [], "state", 5])
def test_what_is_no_state_is_refused(fleet, state):
    refused(fleet, state, "its columns are not this version's")


def test_a_missing_or_a_further_column_is_refused(fleet):
    state = fleet.get_state()
    refused(fleet, {name: column for name, column in state.items() if name != "node"}, "columns")
    refused(fleet, {**state, "boost": state["steer"]}, "columns")


def test_a_state_of_another_number_of_cars_is_refused(fleet):
    refused(fleet, make_fleet(num_cars=3).get_state(), r"shape \(4,\), got .* \(3,\)")
    refused(fleet, {name: column[:, None] for name, column in fleet.get_state().items()}, r"shape \(4,\)")


@pytest.mark.parametrize("kind", [np.float64, np.int64, object, "U5"])
def test_a_column_of_another_type_is_refused(fleet, kind):
    refused(fleet, {**fleet.get_state(), "x_m": fleet.get_state()["x_m"].astype(kind)}, "column 'x_m' must be float32")


@pytest.mark.parametrize("name", FLOAT_COLUMNS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused(fleet, name, value):
    state = fleet.get_state()
    state[name][2] = value
    refused(fleet, state, f"column '{name}'")


@pytest.mark.parametrize("name", INT_COLUMNS)
def test_a_negative_count_is_refused(fleet, name):
    state = fleet.get_state()
    state[name][3] = -1
    refused(fleet, state, f"column '{name}' must not be negative")


def test_indices_that_would_read_foreign_memory_are_refused(fleet):
    for name, value, words in (
        ("track", 2, "more tracks than the 2"),
        ("node", 2**31 - 1, "beyond the end of its track"),
        ("next_gate", 30, "a gate that does not exist"),
    ):
        state = fleet.get_state()
        state[name][1] = value
        refused(fleet, state, words)
    state = fleet.get_state()
    state["node"][:] = [fleet.tracks[k % 2].nodes.num_nodes - 1 for k in range(4)]
    fleet.set_state(state)


@pytest.mark.parametrize("name", FLOAT_COLUMNS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_absurd_number_is_refused_and_the_largest_allowed_drives_on(fleet, name, sign):
    state = fleet.get_state()
    state[name][1] = np.float32(sign * LARGEST[name] * 1.01)
    refused(fleet, state, f"column '{name}' must be finite and at most")
    state[name][:] = sign * LARGEST[name]
    fleet.set_state(state)
    for _ in range(100):
        fleet.step(np.full((4, 3), 0.5, np.float32), autoreset=True)
        assert ((fleet.batch.obs >= -1.0) & (fleet.batch.obs <= 1.0)).all()
        assert np.isfinite(fleet.batch.rewards).all()
    assert np.isfinite([fleet.states[column] for column in FLOAT_COLUMNS]).all()


def test_every_number_of_the_state_has_a_limit():
    assert set(LARGEST) == set(FLOAT_COLUMNS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_one_bad_action_stops_all_cars(bad, num_threads):
    fleet = make_fleet(num_threads=num_threads)
    drive(fleet, 5)
    before = fleet.states.copy()
    actions = np.full((4, 3), 0.5, np.float32)
    actions[2, 1] = bad
    with pytest.raises(ActionError, match="car 2 must be finite"):
        fleet.step(actions, autoreset=True)
    np.testing.assert_array_equal(fleet.states, before)


def test_threads_do_not_change_a_bit():
    one, two = make_fleet(num_cars=37), make_fleet(num_cars=37, num_threads=2)
    for fleet in (one, two):
        drive(fleet, 100)
    np.testing.assert_array_equal(one.states, two.states)
    np.testing.assert_array_equal(one.batch.obs, two.batch.obs)


def test_only_the_masked_cars_begin_anew(fleet):
    before = fleet.states.copy()
    fleet.reset(mask=np.array([True, False, True, False]))
    assert fleet.states["tick"].tolist() == [0, 20, 0, 20]
    np.testing.assert_array_equal(fleet.states[1::2], before[1::2])


def test_few_cars_get_one_thread_and_many_get_all():
    assert suited_engine(1).num_threads == suited_engine(CARS_WORTH_A_THREAD).num_threads == 1
    assert suited_engine(1 << 16).num_threads == default_threads()


def test_a_copy_of_a_fleet_counts_its_own_episodes(fleet):
    twin = copy.deepcopy(fleet)
    twin.next_episode()
    assert twin.states["episode"].tolist() == [1, 1, 1, 1]
    assert fleet.states["episode"].tolist() == [0, 0, 0, 0]


# --- one action for several ticks ---

ALL_TERMS = {
    "weights": {"speedBonus": 0.01, "wallPenalty": -0.02, "backwardPenalty": -0.003, "stillnessPenalty": -0.0013},
    "episode": {"maxSteps": 130, "stillnessTimeoutTicks": 20, "start": "random"},
}
TERMS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")
SUMMED = (*TERMS, "reward")


def place_before_the_line(state: dict, cars: list[int], nodes, metres: float = 8.0) -> None:
    """Put cars shortly before the line, fast, with all gates but the line behind them."""
    node = nodes.num_nodes - round(metres / nodes.step_m)
    for name, value in (
        ("x_m", nodes.x_m[node]),
        ("y_m", nodes.y_m[node]),
        ("yaw_rad", np.arctan2(nodes.tangent_y[node], nodes.tangent_x[node])),
        ("forward_mps", 40.0),
        ("node", node),
        ("share", 0.0),
        ("lateral_m", 0.0),
        ("arc_m", node * nodes.step_m),
        ("next_gate", 0),
        ("clock_runs", 1),
    ):
        state[name][cars] = value


def hold(env: RacerEnv, action: np.ndarray, repeat: int):
    """What `repeat` single steps give, told as one: the meaning of `repeat`, spelled out."""
    sums, lap, touched = None, {}, False
    for _ in range(repeat):
        obs, reward, terminated, truncated, info = env.step(action)
        gains = np.array([info[name] for name in TERMS] + [reward], np.float32)
        sums = gains if sums is None else sums + gains
        touched |= info["wallContact"]
        if "lapTime" in info:
            lap = {"lapTime": info["lapTime"], "lapClean": info["lapClean"]}
        if terminated or truncated:
            break
    told = dict(zip(SUMMED, sums.tolist(), strict=True))
    reward = told.pop("reward")
    return obs, reward, terminated, truncated, {**info, **told, **lap, "wallContact": touched}


@pytest.mark.parametrize(("repeat", "num_threads"), [(1, 1), (2, 1), (3, 2), (7, 1), (MAX_REPEAT, 2)])
def test_an_action_held_is_that_many_single_steps_to_the_last_bit(repeat, num_threads):
    num_cars = 9
    fleet = make_fleet(("track-01",), num_cars, num_threads, **ALL_TERMS)
    fleet.reset()
    singles = [RacerEnv(config=ALL_TERMS) for _ in range(num_cars)]
    for car, env in enumerate(singles):
        env.reset(seed=car)
    rng = np.random.default_rng(repeat)
    seen = Counter()
    for decision in range(400 // repeat + 5):
        if decision % 40 == 0:  # laps, and driving backwards, come quickly this way
            state = fleet.get_state()
            place_before_the_line(state, [1, 4], fleet.tracks[0].nodes)
            state["forward_mps"][6] = -5.0
            fleet.set_state(state)
            for car, env in enumerate(singles):
                env.set_state({name: column[car : car + 1] for name, column in state.items()})
        actions = rng.uniform([-1, 0, 0], [1, 1, 0.2], (num_cars, 3)).astype(np.float32)
        actions[::4], actions[1::4] = [0.0, 0.0, 1.0], [0.5, 0.6, 0.0]
        fleet.step(actions, autoreset=True, repeat=repeat)
        batch = fleet.batch
        for car, env in enumerate(singles):
            ticks = env.fleet.states["tick"][0]
            obs, reward, terminated, truncated, info = hold(env, actions[car], repeat)
            assert (batch.rewards[car], batch.terminated[car], batch.truncated[car]) == (reward, terminated, truncated)
            ended = terminated or truncated
            seen["cut short"] += ended and info["tick"] - ticks < repeat
            records, last = (batch.final_infos, batch.final_obs) if ended else (batch.infos, batch.obs)
            np.testing.assert_array_equal(last[car], obs)
            assert step_info(records[car].item()) == info
            if ended:
                env.reset()
                np.testing.assert_array_equal(batch.obs[car], env.fleet.batch.obs[0])
            assert fleet.states[car] == env.fleet.states[0]
            seen.update(terminated=terminated, truncated=truncated, laps="lapTime" in info)
            seen.update({name: info[name] != 0.0 for name in TERMS})
    assert min(seen[what] for what in ("terminated", "truncated", "laps", *TERMS)) > 0
    assert (seen["cut short"] > 0) == (repeat > 1)


def test_without_autoreset_a_car_that_ended_goes_on_by_single_ticks():
    fleet = make_fleet(episode={"maxSteps": 5})
    gas = np.full((4, 3), 0.5, np.float32)
    for expected in (3, 5, 6, 7):
        fleet.step(gas, autoreset=False, repeat=3)
        assert fleet.states["tick"].tolist() == [expected] * 4


def test_a_lap_that_ended_in_an_earlier_tick_of_the_step_is_told():
    fleet = make_fleet(("track-01",), 1)
    state = fleet.get_state()
    place_before_the_line(state, [0], fleet.tracks[0].nodes, metres=2.0)
    fleet.set_state(state)
    fleet.step(np.zeros((1, 3), np.float32), autoreset=True, repeat=20)
    assert fleet.batch.infos["lap"][0] == 2
    # Two metres at 40 m/s take three ticks, and the clock had run for some ticks before.
    np.testing.assert_allclose(fleet.batch.infos["lapTime"][0], (state["tick"][0] + 3) / 60, atol=1.01 / 60)


@pytest.mark.parametrize("repeat", [0, -1, MAX_REPEAT + 1, 2.5, "2", None])
def test_a_number_of_ticks_that_makes_no_sense_is_refused_and_nobody_moves(fleet, repeat):
    before = fleet.states.copy()
    with pytest.raises(ConfigError, match="whole number of ticks from 1 to 60"):
        fleet.step(np.zeros((4, 3), np.float32), autoreset=True, repeat=repeat)
    np.testing.assert_array_equal(fleet.states, before)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_bad_action_is_not_held_either(num_threads):
    fleet = make_fleet(num_threads=num_threads)
    before = fleet.states.copy()
    actions = np.full((4, 3), np.nan, np.float32)
    with pytest.raises(ActionError, match="nothing moved"):
        fleet.step(actions, autoreset=True, repeat=3)
    np.testing.assert_array_equal(fleet.states, before)

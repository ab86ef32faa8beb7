"""The fleet: action repeat, saving and restoring, and states that are refused."""

import copy
import itertools
from collections import Counter

import numpy as np
import pytest

from envs.oracles import HoldAction, place_before_the_line
from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.envs import fleet as fleet_module
from hotlap.envs.fleet import MAX_MAGNITUDES, MAX_REPEAT, MIN_CARS_PER_THREAD, Fleet, join_ribbons, make_engine
from hotlap.envs.infos import REWARD_KEYS, step_info
from hotlap.envs.racer import RacerEnv
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.sim.batch_cpu import CpuEngine, default_threads
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.golden_traces import scripted_actions
from hotlap.tracks.registry import load_tracks

FLOAT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.float32]
INT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.int32]


def make_fleet(track_ids=("track-01", "track-03"), num_cars=4, num_threads=1, **settings) -> Fleet:
    fleet = Fleet(list(track_ids), RacerSettings.load(settings), num_cars, CpuEngine(num_threads))
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset(start="random")
    return fleet


def drive(fleet: Fleet, num_ticks: int) -> None:
    for tick in range(num_ticks):
        fleet.step(scripted_actions(fleet.batch.obs, tick), autoreset=True)


@pytest.fixture
def fleet() -> Fleet:
    fleet = make_fleet()
    drive(fleet, 20)
    return fleet


def refused(fleet: Fleet, state: object, words: str) -> None:
    """Setting `state` fails and changes neither cars nor observations."""
    before, obs = fleet.states.copy(), fleet.batch.obs.copy()
    with pytest.raises(StateError, match=words):
        fleet.set_state(state)
    np.testing.assert_array_equal(fleet.states, before)
    np.testing.assert_array_equal(fleet.batch.obs, obs)


def test_cars_drive_the_tracks_in_turn():
    assert make_fleet(num_cars=5).states["track"].tolist() == [0, 1, 0, 1, 0]


def test_a_track_named_several_times_is_packed_once_and_cars_still_take_the_list_in_turn():
    names = ["track-03", "track-01", "track-03", "track-03", "track-02"]
    fleet = make_fleet(names, num_cars=12)
    assert [track.track_id for track in fleet.tracks] == ["track-03", "track-01", "track-02"]
    assert [fleet.tracks[index].track_id for index in fleet.states["track"]] == [names[car % 5] for car in range(12)]
    assert len(fleet.scenario.ribbons.tracks) == 3
    action = np.array([[0.1, 0.8, 0.0]], np.float32)
    for _ in range(50):
        fleet.step(np.repeat(action, 12, axis=0), autoreset=True)
    for car in range(5):
        alone = Fleet([names[car]], fleet.settings, 1, CpuEngine())
        alone.seed(np.array([car], np.uint64))
        alone.reset(start="random")
        for _ in range(50):
            alone.step(action, autoreset=True)
        np.testing.assert_array_equal(alone.batch.obs[0], fleet.batch.obs[car])


def test_tracks_that_no_car_drives_are_not_built_but_must_exist():
    fleet = make_fleet(["track-01", "track-02", "track-03"], num_cars=2)
    assert [track.track_id for track in fleet.tracks] == ["track-01", "track-02"]
    with pytest.raises(UnknownTrackError, match="track 'nowhere' is not known"):
        make_fleet(["track-01", "nowhere"], num_cars=1)


def test_joined_ribbons_are_those_packed_together():
    tracks = load_tracks(["track-02", "track-01", "train-004"])
    joined = join_ribbons([track.ribbon for track in tracks])
    packed = pack_ribbons([track.nodes for track in tracks], [track.start_speed_mps for track in tracks])
    for part, expected in zip(joined, packed, strict=True):
        assert part.dtype == expected.dtype
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(tracks[1].ribbon.tracks["first_node"], 0)  # the parts are not changed


def test_cached_ribbons_take_limited_memory(monkeypatch):
    cache = ByteLimitedCache(1 << 20)
    monkeypatch.setattr(fleet_module, "_RIBBONS", cache)
    for first, second in itertools.permutations(["track-01", "track-02", "track-03", "train-000"], 2):
        make_fleet((first, second))
        assert cache.num_bytes <= 1 << 20
    assert 1 <= len(cache) < 12


def test_a_fleet_needs_a_track_that_exists():
    with pytest.raises(ConfigError, match="at least one track"):
        make_fleet(track_ids=())
    with pytest.raises(UnknownTrackError, match="Did you mean 'track-01'"):
        make_fleet(track_ids=("track-1",))


def test_fleets_on_the_same_tracks_share_their_arrays():
    assert make_fleet().scenario.ribbons is make_fleet().scenario.ribbons


def test_a_state_is_a_copy_with_one_array_per_column(fleet):
    state = fleet.get_state()
    assert list(state) == list(STATE_DTYPE.names)
    assert {column.shape for column in state.values()} == {(4,)}
    state["x_m"][:] = 1e6
    assert (fleet.states["x_m"] < 1e5).all()


@pytest.mark.parametrize("state", [None, {}, [], "state", 5])
def test_something_else_than_a_state_is_refused(fleet, state):
    refused(fleet, state, "its columns are not those of this version")


def test_a_state_with_other_columns_is_refused(fleet):
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
def test_a_state_with_nan_or_infinity_is_refused(fleet, name, value):
    state = fleet.get_state()
    state[name][2] = value
    refused(fleet, state, f"column '{name}'")


@pytest.mark.parametrize("name", INT_COLUMNS)
def test_a_negative_count_is_refused(fleet, name):
    state = fleet.get_state()
    state[name][3] = -1
    refused(fleet, state, f"column '{name}' must not be negative")


def test_indices_out_of_range_are_refused(fleet):
    for name, value, words in (
        ("track", 2, "more tracks than the 2"),
        ("node", 2**31 - 1, "beyond the end of its track"),
        ("next_gate", 30, "must be less than the number of gates"),
    ):
        state = fleet.get_state()
        state[name][1] = value
        refused(fleet, state, words)
    state = fleet.get_state()
    state["node"][:] = [fleet.tracks[k % 2].nodes.num_nodes - 1 for k in range(4)]
    fleet.set_state(state)


@pytest.mark.parametrize("name", FLOAT_COLUMNS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_too_large_number_is_refused_and_the_largest_allowed_can_be_driven(fleet, name, sign):
    state = fleet.get_state()
    state[name][1] = np.float32(sign * MAX_MAGNITUDES[name] * 1.01)
    refused(fleet, state, f"column '{name}' must be finite and at most")
    state[name][:] = sign * MAX_MAGNITUDES[name]
    fleet.set_state(state)
    for _ in range(100):
        fleet.step(np.full((4, 3), 0.5, np.float32), autoreset=True)
        assert ((fleet.batch.obs >= -1.0) & (fleet.batch.obs <= 1.0)).all()
        assert np.isfinite(fleet.batch.rewards).all()
    assert np.isfinite([fleet.states[column] for column in FLOAT_COLUMNS]).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("num_threads", "repeat"), [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_one_bad_action_stops_all_cars(bad, num_threads, repeat):
    fleet = make_fleet(num_threads=num_threads)
    drive(fleet, 5)
    before = fleet.states.copy()
    actions = np.full((4, 3), 0.5, np.float32)
    actions[2, 1] = bad
    with pytest.raises(ActionError, match=r"car 2 must be finite.*nothing moved"):
        fleet.step(actions, autoreset=True, repeat=repeat)
    np.testing.assert_array_equal(fleet.states, before)


def test_only_the_masked_cars_are_reset(fleet):
    before = fleet.states.copy()
    fleet.reset(mask=np.array([True, False, True, False]))
    assert fleet.states["tick"].tolist() == [0, 20, 0, 20]
    np.testing.assert_array_equal(fleet.states[1::2], before[1::2])


def test_few_cars_get_one_thread_and_many_get_all():
    assert make_engine(1).num_threads == make_engine(MIN_CARS_PER_THREAD).num_threads == 1
    assert make_engine(1 << 16).num_threads == default_threads()


def test_a_copy_of_a_fleet_counts_its_own_episodes(fleet):
    twin = copy.deepcopy(fleet)
    twin.next_episode()
    assert twin.states["episode"].tolist() == [1, 1, 1, 1]
    assert fleet.states["episode"].tolist() == [0, 0, 0, 0]


# --- action repeat ---

ALL_TERMS = {
    "weights": {"speedBonus": 0.01, "wallPenalty": -0.02, "backwardPenalty": -0.003, "stillnessPenalty": -0.0013},
    "episode": {"maxSteps": 130, "stillnessTimeoutTicks": 20, "start": "random"},
}


@pytest.mark.parametrize(("repeat", "num_threads"), [(1, 1), (2, 1), (3, 2), (7, 1), (MAX_REPEAT, 2)])
def test_a_repeated_action_is_bit_identical_to_single_steps(repeat, num_threads):
    num_cars = 9
    fleet = make_fleet(("track-01",), num_cars, num_threads, **ALL_TERMS)
    fleet.reset()
    singles = [HoldAction(RacerEnv(config=ALL_TERMS), repeat) for _ in range(num_cars)]
    for car, env in enumerate(singles):
        env.reset(seed=car)
    rng = np.random.default_rng(repeat)
    seen = Counter()
    for decision in range(400 // repeat + 5):
        if decision % 40 == 0:  # so that there are laps and cars that drive backwards
            state = fleet.get_state()
            place_before_the_line(state, [1, 4], fleet.tracks[0].nodes)
            state["forward_mps"][6] = -5.0
            fleet.set_state(state)
            for car, env in enumerate(singles):
                env.unwrapped.set_state({name: column[car : car + 1] for name, column in state.items()})
        actions = rng.uniform([-1, 0, 0], [1, 1, 0.2], (num_cars, 3)).astype(np.float32)
        actions[::4], actions[1::4] = [0.0, 0.0, 1.0], [0.5, 0.6, 0.0]
        fleet.step(actions, autoreset=True, repeat=repeat)
        batch = fleet.batch
        for car, env in enumerate(singles):
            ticks = env.unwrapped.fleet.states["tick"][0]
            obs, reward, terminated, truncated, info = env.step(actions[car])
            assert (batch.rewards[car], batch.terminated[car], batch.truncated[car]) == (reward, terminated, truncated)
            ended = terminated or truncated
            seen["cut short"] += ended and info["tick"] - ticks < repeat
            records, last = (batch.final_infos, batch.final_obs) if ended else (batch.infos, batch.obs)
            np.testing.assert_array_equal(last[car], obs)
            assert step_info(records[car].item()) == info
            if ended:
                env.reset()
                np.testing.assert_array_equal(batch.obs[car], env.unwrapped.fleet.batch.obs[0])
            assert fleet.states[car] == env.unwrapped.fleet.states[0]
            seen.update(terminated=terminated, truncated=truncated, laps="lapTime" in info)
            seen.update({name: info[name] != 0.0 for name in REWARD_KEYS})
    assert min(seen[what] for what in ("terminated", "truncated", "laps", *REWARD_KEYS)) > 0
    assert (seen["cut short"] > 0) == (repeat > 1)


def test_without_autoreset_a_car_that_ended_continues_by_single_ticks():
    fleet = make_fleet(episode={"maxSteps": 5})
    gas = np.full((4, 3), 0.5, np.float32)
    for expected in (3, 5, 6, 7):
        fleet.step(gas, autoreset=False, repeat=3)
        assert fleet.states["tick"].tolist() == [expected] * 4


def test_a_lap_completed_on_an_earlier_tick_of_the_step_is_reported():
    fleet = make_fleet(("track-01",), 1)
    state = fleet.get_state()
    place_before_the_line(state, [0], fleet.tracks[0].nodes, metres=2.0)
    fleet.set_state(state)
    fleet.step(np.zeros((1, 3), np.float32), autoreset=True, repeat=20)
    assert fleet.batch.infos["lap"][0] == 2
    # Two metres at 40 m/s take three ticks, and the clock was running before.
    np.testing.assert_allclose(fleet.batch.infos["lapTime"][0], (state["tick"][0] + 3) / 60, atol=1.01 / 60)


@pytest.mark.parametrize("repeat", [0, -1, MAX_REPEAT + 1, 2.5, "2", None])
def test_an_invalid_repeat_is_refused_and_no_car_moves(fleet, repeat):
    before = fleet.states.copy()
    with pytest.raises(ConfigError, match=r"action_repeat must be (from 1 to 60 ticks|a whole number), got"):
        fleet.step(np.zeros((4, 3), np.float32), autoreset=True, repeat=repeat)
    np.testing.assert_array_equal(fleet.states, before)

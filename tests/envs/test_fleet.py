"""The cars behind the environments: saving and restoring them, and refusing what does not fit."""

import numpy as np
import pytest

from hotlap.envs.fleet import CARS_WORTH_A_THREAD, LARGEST, Fleet, suited_threads
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.golden import reflexes

FLOAT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.float32]
INT_COLUMNS = [name for name in STATE_DTYPE.names if STATE_DTYPE[name] == np.int32]


def make_fleet(track_ids=("track-01", "track-03"), num_cars=4, num_threads=1, **settings) -> Fleet:
    fleet = Fleet(list(track_ids), RacerSettings.load(settings), num_cars, num_threads)
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
    assert make_fleet()._ribbons is make_fleet()._ribbons


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
    assert suited_threads(1) == suited_threads(CARS_WORTH_A_THREAD) == 1
    assert suited_threads(1 << 16) == default_threads()

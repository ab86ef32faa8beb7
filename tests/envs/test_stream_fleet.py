"""Cars on a stream of roads: which road lies where, what is replaced, and states."""

import numpy as np
import pytest

from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.envs.stream_fleet import NEXT_ROAD, StreamFleet, StreamPlan
from hotlap.errors import StateError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.tracks.golden_traces import scripted_actions
from hotlap.tracks.registry import load_track
from road_sources import ShippedRoads, track_of

MAX_NODES, NUM_SLOTS = 4096, 3
SETTINGS = RacerSettings.load({"episode": {"start": "random", "maxSteps": 60}})


def make_fleet(num_cars=6, new_roads=2, next_road=None, **part):
    plan = StreamPlan(NUM_SLOTS, new_roads, MAX_NODES, num_cars, **part)
    fleet = StreamFleet(ShippedRoads(), plan, SETTINGS, CpuEngine(), next_road=next_road)
    first = part.get("first_car", 0)
    fleet.seed(np.arange(first, first + num_cars, dtype=np.uint64))
    fleet.reset()
    return fleet


def drive(fleet, num_ticks=40, first_tick=0):
    for tick in range(first_tick, first_tick + num_ticks):
        fleet.step(scripted_actions(fleet.batch.obs, tick), autoreset=True)


def bits(heads, nodes, portals):
    """The bits of a road, without its place in the arrays."""
    figures = [heads[0][name].tobytes() for name in ("num_nodes", "step_m", "length_m", "widest_wall_m")]
    return [*figures, nodes.tobytes(), portals.tobytes()]


def road_in(fleet, slot):
    parts = zip(fleet.scenario.ribbons, fleet.slot_parts(slot), strict=True)
    return bits(*(array[part] for array, part in parts))


def road_of(number):
    return bits(*load_track(track_of(number)).guided_ribbon)


def test_new_roads_replace_the_oldest_ones_in_place():
    fleet = make_fleet()
    places = [array.ctypes.data for array in fleet.scenario.ribbons]
    assert fleet.take_changed() == [0, 1, 2]
    for numbers, changed in (([3, 4, 2], [0, 1]), ([6, 4, 5], [0, 2]), ([6, 7, 8], [1, 2])):
        fleet.renew_roads()
        assert [road_in(fleet, slot) for slot in range(NUM_SLOTS)] == [road_of(number) for number in numbers]
        assert fleet.take_changed() == changed
    assert [array.ctypes.data for array in fleet.scenario.ribbons] == places
    assert fleet._source.taken == list(range(9))


def test_cars_on_a_stream_are_those_on_the_same_tracks():
    fleet = make_fleet()
    same = Fleet([track_of(number) for number in (0, 0, 1, 1, 2, 2)], SETTINGS, 6, CpuEngine())
    same.seed(np.arange(6, dtype=np.uint64))
    same.reset()
    for tick in range(100):
        for one in (fleet, same):
            one.step(scripted_actions(one.batch.obs, tick), autoreset=True)
        np.testing.assert_array_equal(fleet.batch.obs, same.batch.obs)
    np.testing.assert_array_equal(fleet.states, same.states)


def test_only_the_cars_on_a_replaced_road_begin_an_episode():
    fleet = make_fleet()
    drive(fleet)
    before, obs = fleet.states.copy(), fleet.batch.obs.copy()
    restarted = fleet.renew_roads()
    assert restarted.tolist() == [True] * 4 + [False] * 2
    np.testing.assert_array_equal(fleet.states[~restarted], before[~restarted])
    np.testing.assert_array_equal(fleet.batch.obs[~restarted], obs[~restarted])
    assert (fleet.states["episode"][restarted] == before["episode"][restarted] + 1).all()
    assert (fleet.batch.obs[restarted] != obs[restarted]).any(axis=1).all()
    begun = make_fleet(next_road=5)
    begun.states["episode"] = before["episode"] + 1
    begun.reset()
    np.testing.assert_array_equal(fleet.batch.obs[restarted], begun.batch.obs[restarted])


@pytest.mark.parametrize("next_road", [None, 8])
def test_a_restored_fleet_continues_bit_identically_on_the_roads_of_its_time(next_road):
    fleet = make_fleet()
    for _ in range(2):
        drive(fleet)
        fleet.renew_roads()
    state = fleet.get_state()
    assert int(state[NEXT_ROAD]) == 7
    restored = make_fleet(next_road=next_road)
    restored.set_state(state)
    for one in (fleet, restored):
        drive(one, first_tick=80)
        one.renew_roads()
        drive(one, first_tick=120)
    np.testing.assert_array_equal(fleet.states, restored.states)
    np.testing.assert_array_equal(fleet.batch.obs, restored.batch.obs)


def test_processes_lay_only_the_roads_of_their_cars_and_drive_as_one_with_all():
    whole = make_fleet()
    parts = [make_fleet(num_cars=3, first_car=first, total_cars=6) for first in (0, 3)]
    for fleet in (whole, *parts):
        for _ in range(3):
            drive(fleet)
            fleet.renew_roads()
    np.testing.assert_array_equal(np.concatenate([part.states for part in parts]), whole.states)
    assert sorted(parts[0]._source.taken) == [0, 1, 3, 4, 6, 7]
    assert sorted(parts[1]._source.taken) == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize("bad", [2, 3.5, [5], None])
def test_a_state_without_a_fitting_road_number_is_refused(bad):
    fleet = make_fleet()
    state = fleet.get_state()
    del state[NEXT_ROAD]
    before = fleet.states.copy()
    with pytest.raises(StateError, match=r"^state: next_road must be a whole number from 3\.$"):
        fleet.set_state(state if bad is None else {**state, NEXT_ROAD: np.array(bad)})
    np.testing.assert_array_equal(fleet.states, before)


def test_a_thousand_roads_of_seven_kilometres_fit_into_half_a_gigabyte():
    plan = StreamPlan(1000, 0, 7168, num_cars=1, total_cars=1000)
    fleet = StreamFleet(ShippedRoads(), plan, SETTINGS, CpuEngine())
    assert 400 < sum(array.nbytes for array in fleet.scenario.ribbons) / 2**20 < 500

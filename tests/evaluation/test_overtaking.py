"""The overtaking benchmark: scenarios whose outcomes are known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.line_keeper import LineKeeper
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.evaluation.overtaking import (
    OvertakingOutcomes,
    drive_scenarios,
    measure_overtaking,
    place_cars,
    road_room_m,
    wilson_interval,
)
from hotlap.evaluation.overtaking_scenarios import KEPT, OvertakingScenario, draw_scenarios

# The car ahead keeps to the left with little throttle.
SLOW = OvertakingScenario("track-01", KEPT, 0.9, 12.0, 0.3, 0.5, -0.5, 0.8)


class Stone:
    """Brakes until it stands."""

    name = "stone"

    def begin(self, fleet, seed):
        self._num_cars = fleet.num_cars

    def act(self, obs):
        return np.tile(np.array([0.0, 0.0, 1.0], np.float32), (self._num_cars, 1))


class Straight(Stone):
    """Full throttle and no steering."""

    name = "straight"

    def act(self, obs):
        return np.tile(np.array([0.0, 1.0, 0.0], np.float32), (self._num_cars, 1))


def drive(driver, *scenarios, **options):
    return drive_scenarios("tested", scenarios, lambda name, track: driver, **options)


def keeper(offset, num_cars=1):
    return LineKeeper(np.full(num_cars, offset))


def placed(*scenarios):
    fleet = RaceFleet([one.track for one in scenarios], RacerSettings(), len(scenarios), 2)
    place_cars(fleet, scenarios)
    return fleet


# --- placing ---


def test_cars_are_placed_where_the_scenario_says():
    scenarios = [SLOW, replace(SLOW, track="track-02", place=0.5, gap_m=9.5, pace=0.6)]
    fleet = placed(*scenarios)
    progress_m = fleet.progress_m.reshape(2, 2)
    assert progress_m[:, 0] - progress_m[:, 1] == pytest.approx([12.0, 9.5], abs=1e-3)
    lengths_m = [track.nodes.length_m for track in fleet.tracks]
    assert progress_m[:, 0] == pytest.approx([0.9 * lengths_m[0], 0.5 * lengths_m[1]], rel=1e-5)
    # Road 1 is 11.5 m wide, road 2 13 m; half of the half-width to either side.
    assert fleet.states["lateral_m"] == pytest.approx([2.875, -2.875, 3.25, -3.25], abs=1e-3)
    assert list(fleet.entrants["position"]) == [1, 2, 1, 2]
    assert road_room_m(fleet) == pytest.approx([2.875, 2.875, 3.25, 3.25], abs=1e-3)


def test_the_place_in_the_world_is_the_place_on_the_road():
    fleet = placed(*draw_scenarios(60))
    before = fleet.states.copy()
    fleet.step(np.zeros((fleet.num_cars, 3), np.float32), autoreset=False)
    moved_m = np.hypot(fleet.states["x_m"] - before["x_m"], fleet.states["y_m"] - before["y_m"])
    along_m = np.abs(fleet.entrants["moved_m"])
    # Found from the coordinates after a tick: a step along the road (longer or shorter in a bend), none across.
    assert along_m == pytest.approx(moved_m, rel=0.4, abs=0.02)
    assert fleet.states["lateral_m"] == pytest.approx(before["lateral_m"], abs=0.05)


def test_a_car_behind_the_line_is_behind_one_beyond_it():
    fleet = placed(replace(SLOW, place=0.005))  # 4.5 m beyond the line
    assert list(fleet.entrants["laps_done"]) == [0, -1]
    assert np.diff(fleet.progress_m)[0] == pytest.approx(-12.0, abs=1e-3)


def test_both_cars_begin_at_the_speed_of_the_slower_place():
    scenarios = draw_scenarios(120)
    fleet = placed(*scenarios)
    speeds_mps = fleet.states["forward_mps"].reshape(-1, 2)
    assert (speeds_mps[:, 1] <= speeds_mps[:, 0]).all()
    assert (speeds_mps[:, 1] == speeds_mps[:, 0]).mean() > 0.3
    assert (speeds_mps > 3.0).all()


# --- outcomes ---


def test_a_faster_car_on_the_other_side_of_the_road_overtakes():
    found = drive(keeper(-0.5), SLOW)
    assert found.is_overtake.all()
    assert found.is_safe.all()
    assert found.is_faster.all()
    assert not (found.has_contact | found.has_left_road | found.has_hit_wall | found.other_left_road).any()


def test_a_faster_car_on_the_same_line_runs_into_the_one_ahead_and_that_is_its_fault():
    found = drive(keeper(0.5), replace(SLOW, own_offset=0.5))
    assert found.has_contact.all()
    assert found.has_fault.all()
    assert found.is_faster.all()  # were it alone
    assert not found.is_safe.any()
    assert not found.is_overtake.any()


def test_a_car_that_stands_is_safe_and_overtakes_nobody():
    found = drive(Stone(), *[replace(SLOW, place=place) for place in (0.1, 0.5)])
    assert found.is_safe.all()
    assert not (found.is_ahead | found.is_faster | found.is_overtake).any()


def test_a_car_that_leaves_the_road_is_not_safe():
    found = drive(Straight(), SLOW)
    assert found.has_left_road.all()
    assert not found.is_safe.any()


@pytest.mark.parametrize(
    ("given", "is_safe", "is_overtake"),
    [
        ({"is_ahead": True}, True, True),
        ({}, True, False),
        ({"is_ahead": True, "has_contact": True}, True, False),  # the other's fault: safe, but not clean
        ({"is_ahead": True, "has_contact": True, "has_fault": True}, False, False),
        ({"is_ahead": True, "has_left_road": True}, False, False),
        ({"is_ahead": True, "has_hit_wall": True}, False, False),
    ],
)
def test_what_is_safe_and_what_is_an_overtake(given, is_safe, is_overtake):
    names = ("has_contact", "has_fault", "has_left_road", "has_hit_wall", "is_ahead", "is_faster", "other_left_road")
    found = OvertakingOutcomes(**{name: np.array([given.get(name, False)]) for name in names})
    assert (found.is_safe[0], found.is_overtake[0]) == (is_safe, is_overtake)


def test_a_scenario_has_the_same_outcome_alone_and_among_others_on_any_number_of_threads():
    scenarios = [SLOW, replace(SLOW, place=0.5), replace(SLOW, own_offset=0.5)]
    many, one = drive(keeper(0.5, 3), *scenarios, num_threads=2), drive(keeper(0.5), scenarios[2], num_threads=1)
    assert {name: flags[2] for name, flags in vars(many).items()} == {
        name: flags[0] for name, flags in vars(one).items()
    }
    assert list(many.has_fault) == [True, False, True]


# --- rates ---


def test_rates_are_those_of_the_outcomes_in_all_and_in_parts():
    scenarios = [SLOW, replace(SLOW, place=0.5), replace(SLOW, track="track-02")]
    found = measure_overtaking("tested", scenarios, lambda name, track: Stone())
    assert (found.driver, found.other_left_road) == ("tested", 0)
    assert {track: rates.scenarios for track, rates in found.by_track.items()} == {"track-01": 2, "track-02": 1}
    assert {line: rates.scenarios for line, rates in found.by_line.items()} == {KEPT: 3}
    assert (found.overall.safe_rate, found.overall.safe_high, found.overall.overtake_rate) == (1.0, 1.0, 0.0)
    assert found.as_dict()["overall"]["contact_rate"] == 0.0


def test_the_interval_of_a_rate_is_wilsons():
    assert wilson_interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson_interval(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)

"""Races between drivers: fair grids, and counts of contacts, overtakes and laps that are known beforehand."""

from dataclasses import dataclass

import numpy as np
import pytest

from evaluation.statue import Statue
from hotlap.drivers.casual import CasualDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, ConfigError
from hotlap.evaluation.race_results import summarise_races
from hotlap.evaluation.races import Entry, RaceCounter, race, turn_grids
from hotlap.runs.find_driver import find_driver
from hotlap.sim.batch_cpu import CpuEngine


class Lost(Statue):
    """Does not know what to do."""

    def act(self, obs):
        return np.full((self._num_cars, 3), np.nan, np.float32)


class Watcher(Statue):
    """Keeps what it sees, of the second version of the road."""

    name, observation = "watcher", "road-2"

    def act(self, obs):
        self.seen = obs
        return super().act(obs)


# --- grids ---


@pytest.mark.parametrize("num_cars", [1, 2, 5, 8])
def test_every_car_starts_equally_often_from_every_slot(num_cars):
    slots = turn_grids(num_cars * 6, num_cars, seed=4)
    assert all(sorted(row) == list(range(num_cars)) for row in slots)
    for car in range(num_cars):
        assert (np.bincount(slots[:, car], minlength=num_cars) == 6).all()
    assert (turn_grids(3, num_cars, seed=4) == slots[:3]).all()


# --- counting ---


@dataclass
class Script:
    """A fleet whose entrants are written by hand: what happens in each step of a race of three cars."""

    steps: list[dict]

    def play(self):
        fleet = RaceFleet(["track-01"], RacerSettings(), 1, 3)
        fleet.seed(np.zeros(1, np.uint64))
        fleet.reset()
        counter = RaceCounter(fleet)
        for step in self.steps:
            for name in ("touched", "passed", "overtakes", "at_fault", "contact_mps"):
                fleet.entrants[name] = step.get(name, (0, 0, 0))
            counter.add_step(step.get("ticks", 6))
        return counter.finish(np.arange(3)[None])


TOUCH = {"touched": (0b010, 0b001, 0), "contact_mps": (2.0, 2.0, 0.0), "at_fault": (1, 0, 0)}
PASS = {"passed": (0b010, 0, 0), "overtakes": (1, 0, 0)}
QUIET_2S = {"ticks": 121}


def test_cars_that_keep_touching_are_one_contact():
    counts = Script([TOUCH, TOUCH, TOUCH]).play()
    assert list(counts.contacts[0]) == [1, 1, 0]
    assert list(counts.faults[0]) == [1, 0, 0]
    assert list(counts.hard_faults[0]) == [0, 0, 0]


def test_a_contact_half_a_second_later_is_another_one_and_a_hard_one_is_counted():
    hard = TOUCH | {"contact_mps": (4.5, 4.5, 0.0)}
    counts = Script([TOUCH, {"ticks": 30}, hard]).play()
    assert list(counts.contacts[0]) == [2, 2, 0]
    assert list(counts.hard_faults[0]) == [1, 0, 0]


@pytest.mark.parametrize(
    ("steps", "clean"),
    [
        ([PASS], 1),
        ([TOUCH, PASS], 0),  # pushed past
        ([PASS, TOUCH], 0),  # hit right after
        ([TOUCH, QUIET_2S, PASS, QUIET_2S, TOUCH], 1),  # long before and long after
        ([PASS, QUIET_2S, PASS], 2),
        ([PASS, TOUCH, QUIET_2S, PASS], 1),
        ([PASS, {"touched": (0b100, 0, 0b001), "contact_mps": (2.0, 0.0, 2.0)}], 1),  # a contact with a third car
        ([PASS, {"touched": (0, 0b001, 0), "contact_mps": (0.0, 2.0, 0.0)}], 0),  # seen from the other car
    ],
)
def test_an_overtake_is_clean_without_a_contact_between_the_two_within_two_seconds(steps, clean):
    counts = Script(steps).play()
    assert counts.clean_overtakes[0, 0] == clean
    assert counts.overtakes[0, 0] == sum("passed" in step for step in steps)


# --- driving ---


def champion():
    return find_driver("champion", "track-01")


def test_races_are_the_same_alone_and_at_once_and_on_any_number_of_threads():
    def drive(**options):
        entries = [Entry("champion", champion(), 2), Entry("slow", champion(), 1, max_throttle=0.6)]
        return race(entries, "track-01", laps=1, start="rolling", **options)

    many, one = drive(num_races=3, seed=5, num_threads=2), drive(num_races=1, seed=5, num_threads=1)
    again = drive(num_races=3, seed=5, num_threads=1)
    for name in ("positions", "race_times_s", "distances_m", "contacts", "overtakes", "best_laps_s", "slots"):
        assert getattr(many, name).tobytes() == getattr(again, name).tobytes(), name
        assert getattr(many, name)[0].tobytes() == getattr(one, name)[0].tobytes(), name


def test_a_driver_with_less_throttle_comes_in_later():
    entries = [Entry("champion", champion()), Entry("champion@0.5", champion(), max_throttle=0.5)]
    counts = race(entries, "track-01", laps=1, num_races=4)
    assert (counts.positions[:, 0] == 1).all()
    results = summarise_races("track-01", 1, entries, counts)
    first, second = results.drivers
    assert (first.driver, first.wins, first.win_rate, first.mean_position) == ("champion", 4, 1.0, 1.0)
    assert first.elo > 1500.0 > second.elo
    assert {(pair.driver, pair.ahead_rate) for pair in results.pairs} == {("champion", 1.0), ("champion@0.5", 0.0)}
    assert first.best_lap_time_sec is None or first.best_lap_time_sec > 28.0


def test_cars_that_never_move_retire_and_the_race_ends():
    counts = race([Entry("statue", Statue(), 2)], "track-01", laps=1)
    assert not counts.has_finished.any()
    assert np.isnan(counts.race_times_s).all()
    result = summarise_races("track-01", 1, [Entry("statue", Statue(), 2)], counts).drivers[0]
    assert (result.cars, result.finish_rate, result.contacts_per_km) == (2, 0.0, 0.0)
    assert result.best_lap_time_sec is None
    assert result.clean_overtake_rate is None


def test_an_action_that_is_no_number_names_the_driver():
    with pytest.raises(ActionError, match=r"^lost: an action is not finite"):
        race([Entry("lost", Lost(), 1), Entry("statue", Statue(), 1)], "track-01", laps=1)


@pytest.mark.parametrize("num_cars", [0, 33])
def test_a_race_has_from_1_to_32_cars(num_cars):
    with pytest.raises(ConfigError, match=f"from 1 to 32 cars, got {num_cars}"):
        race([Entry("casual", CasualDriver(), num_cars)], "track-01")


def test_a_driver_in_a_race_gets_the_version_of_the_road_that_it_sees():
    watcher, fleets = Watcher(), []
    race(
        [Entry("watcher", watcher, 2), Entry("statue", Statue(), 1)], "track-01", on_step=lambda f, _: fleets.append(f)
    )
    alone = Fleet(["track-01"], RacerSettings(), 3, CpuEngine(), "road-2")
    alone.set_state({name: fleets[-1].states[name] for name in fleets[-1].states.dtype.names})
    assert watcher.seen[:, :144].tobytes() == alone.batch.obs[:2].tobytes()  # the cars never moved

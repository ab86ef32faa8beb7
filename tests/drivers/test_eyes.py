"""The casual driver among others: it keeps apart, waits and passes."""

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.casual_kernels import NODE_SPEED
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.evaluation.races import DrivenCars, Entry, race
from hotlap.sim.race import RETIRED


class SlowCasual(CasualDriver):
    """A tenth slower everywhere."""

    name = "slow"

    def _points_of(self, nodes):
        points = super()._points_of(nodes)
        points[:, NODE_SPEED] *= 0.9
        return points


class Parked(CasualDriver):
    """Stands on the grid until it retires."""

    name = "parked"

    def act(self, obs):
        return np.zeros_like(super().act(obs))


def test_eight_of_them_hardly_touch():
    """A lap of four races from the grid; 0.2 faults a km are allowed over many races."""
    counts = race([Entry("casual", CasualDriver(), 8)], "track-01", laps=1, num_races=4, seed=1)
    assert counts.has_finished.mean() > 0.9
    assert 1000.0 * counts.faults.sum() / counts.distances_m.sum() < 0.4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_among_many_races_it_touches_little_and_passes_cars_that_are_a_tenth_slower():
    eight = race([Entry("casual", CasualDriver(), 8)], "track-01", laps=3, num_races=40, seed=11)
    assert 1000.0 * eight.faults.sum() / eight.distances_m.sum() < 0.2
    entries = [Entry("casual", CasualDriver()), Entry("slow", SlowCasual())]
    pair = race(entries, "track-01", laps=3, num_races=50, seed=13)
    assert (pair.positions[:, 0] == 1).mean() >= 0.8


def test_it_drives_around_a_parked_car():
    entries = [Entry("casual", CasualDriver()), Entry("parked", Parked(), 3)]
    counts = race(entries, "track-01", laps=1, num_races=2, seed=0)
    assert counts.has_finished[:, 0].all()
    assert (counts.contacts[:, 0] == 0).all()


def test_a_car_that_has_spun_turns_and_drives_on():
    """Every heading, in the middle and half-way to either wall: all are back up to speed within 15 s."""
    headings_rad, sides = np.linspace(-np.pi, np.pi, 13)[:-1], np.array([-1.0, 0.0, 1.0])
    num_races = len(headings_rad) * len(sides)
    fleet = RaceFleet(["track-01"], RacerSettings(), num_races, 2, 1, "grid", 1)
    fleet.seed(np.zeros(num_races, np.uint64))
    fleet.reset()
    rows = 2 * np.arange(num_races)
    node, states = fleet.scenario.ribbons.nodes[60], fleet.states
    across_m = np.tile(0.5 * node["wall_left_m"] * sides, len(headings_rad))
    states["x_m"][rows] = node["x_m"] - node["tangent_y"] * across_m
    states["y_m"][rows] = node["y_m"] + node["tangent_x"] * across_m
    road_rad = np.arctan2(node["tangent_y"], node["tangent_x"])
    states["yaw_rad"][rows] = road_rad + np.repeat(headings_rad, len(sides))
    states["node"][rows], states["lateral_m"][rows] = 60, across_m
    driver, actions = CasualDriver(), np.zeros((2 * num_races, 3), np.float32)
    driver.begin(DrivenCars(fleet, rows), 5)
    for _ in range(15 * 60):
        actions[rows] = driver.act(np.zeros((num_races, 0), np.float32))
        fleet.step(actions, autoreset=False)
    assert (fleet.entrants["status"][rows] != RETIRED).all()
    assert (states["forward_mps"][rows] > 8.0).all()


def test_alone_in_a_race_it_drives_as_without_one():
    from hotlap.evaluation.telemetry import record_laps

    counts = race([Entry("casual", CasualDriver())], "track-01", laps=1, seed=7)
    alone = record_laps(CasualDriver(), "track-01", num_laps=1, seed=7)
    assert counts.race_times_s[0, 0] == np.float32(alone.laps[0].time_s)

"""The other cars as a driver sees them."""

import numpy as np
import pytest

from hotlap.sim.opponent_view import COLUMNS_PER_OPPONENT, NUM_OPPONENTS
from sim.race_worlds import RaceWorld
from sim.worlds import nodes_of

OVAL = nodes_of("oval")
PLACE_M = 100.0  # on a straight


def views(cars: list[dict]) -> np.ndarray:
    """What the first car sees, one row an opponent."""
    world = RaceWorld(OVAL, len(cars))
    for number, car in enumerate(cars):
        world.put(car=number, **(car | {"arc_m": (PLACE_M + car["arc_m"]) % OVAL.length_m}))
    world.observe()
    return world.batch.obs[0, -NUM_OPPONENTS * COLUMNS_PER_OPPONENT :].reshape(NUM_OPPONENTS, COLUMNS_PER_OPPONENT)


def test_a_car_ahead_to_the_left_and_slower():
    (seen, *others) = views([{"arc_m": 0.0, "speed_mps": 30.0}, {"arc_m": 20.0, "left_m": 3.0, "speed_mps": 20.0}])
    assert seen == pytest.approx([1.0, 20 / 50, 20 / 50, 3 / 10, -10 / 20, 0.0, 0.0, 0.0], abs=1e-3)
    assert (np.array(others) == 0.0).all()


def test_positions_and_velocities_are_in_the_cars_own_frame():
    """The car faces left across the road: what is ahead on the road is on its right."""
    own = {"arc_m": 0.0, "turn_rad": np.pi / 2, "speed_mps": 10.0}
    seen = views([own, {"arc_m": 5.0, "speed_mps": 10.0}])[0]
    assert seen == pytest.approx([1.0, 5 / 50, 0.0, -5 / 10, -10 / 20, -10 / 20, -0.5, 0.0], abs=1e-3)


def test_the_nearest_four_come_first_ahead_or_behind_and_none_beyond_fifty_metres():
    places = [0.0, 30.0, -10.0, 51.0, 1.0, -45.0, 49.0, -60.0]
    seen = views([{"arc_m": place, "left_m": (k % 2) * 4.0 - 2.0} for k, place in enumerate(places)])
    assert seen[:, 1] * 50.0 == pytest.approx([1.0, -10.0, 30.0, -45.0], abs=0.01)
    assert list(seen[:, 7]) == [1.0, 0.0, 0.0, 0.0]
    assert (views([{"arc_m": 0.0}, {"arc_m": 51.0}]) == 0.0).all()


def test_cars_at_the_same_distance_come_in_the_order_of_their_numbers():
    seen = views([{"arc_m": 0.0}, {"arc_m": 10.0, "left_m": 2.0}, {"arc_m": 10.0, "left_m": -2.0}, {"arc_m": -10.0}])
    assert seen[:3, 3] * 10.0 == pytest.approx([2.0, -2.0, 0.0], abs=1e-3)


def test_a_car_is_seen_across_the_line():
    seen = views([{"arc_m": -PLACE_M - 5.0}, {"arc_m": -PLACE_M + 5.0}])
    assert seen[0, 1] * 50.0 == pytest.approx(10.0, abs=0.01)


def test_a_car_that_left_the_road_is_not_seen():
    world = RaceWorld(OVAL, 2)
    world.entrants["status"][1] = 1
    world.observe()
    assert (world.batch.obs[0, -32:] == 0.0).all()

"""Of the cars of a race only those that learn have rows; the others are driven all the same."""

import pytest
import torch

from race_runs import RACE, race_config
from small_learners import ours

LEARNERS = [0, 1, 2, 3, 4]  # of two races of four cars: all of the first, one of the second


@pytest.fixture
def seats():
    cars = ours(race_config())._cars
    return cars._races


def test_rows_are_those_of_the_cars_that_learn(seats):
    seats.actions[:] = torch.tensor([0.0, 1.0, 0.0])
    for _ in range(3):
        seats.step()
    everyone = seats._all
    for name in ("obs", "final_obs", "rewards", "terminated", "truncated", "infos", "final_infos"):
        own, full = getattr(seats, name), getattr(everyone, name)
        assert (len(own), len(full)) == (5, 8)
        torch.testing.assert_close(own, full[LEARNERS], rtol=0.0, atol=0.0, equal_nan=True)
    assert everyone.actions[LEARNERS, 1].eq(1.0).all()
    assert everyone.actions[5:].abs().sum(1).gt(0.0).all()  # the opponents' own


def test_the_ends_of_races_are_spread_over_their_length(seats):
    assert seats._fleet.entrants["tick"].tolist() == [0] * 4 + [60] * 4  # of 120 ticks


def test_a_metre_gained_counts_as_a_metre_of_progress():
    """The only car whose throttle is open gains on the other three, and the reward grows with `gain`."""

    def rewards_with(gain):
        cars = ours(race_config(race={**RACE, "gain": gain, "contact_penalty": 0.0, "fault_cost": 0.0}))._cars
        seats = cars._races
        for _ in range(4):
            seats.actions.zero_()
            seats.actions[0, 1], seats.actions[1:, 2] = 1.0, 1.0
            seats.step()
        return seats.rewards[:4]

    extra = rewards_with(2.0) - rewards_with(0.0)
    assert extra[0] > 0.0
    assert (extra[1:] < 0.0).any()

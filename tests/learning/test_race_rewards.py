"""What other cars add to the reward, by hand: metres gained, positions, contacts and faults."""

import pytest
import torch

from hotlap.hyperparameters import RaceSettings
from hotlap.learning.race_rewards import Decision, metres_gained, race_reward

LENGTH_M = torch.tensor([[1000.0]])


def decision(arc_m, moved_m, *, racing=None, gained=None, contact_mps=None, fault=None):
    """One race; what is not given did not happen."""
    count = len(arc_m)
    return Decision(
        moved_m=torch.tensor([moved_m]),
        arc_m=torch.tensor([arc_m]),
        is_racing=torch.tensor([racing or [True] * count]),
        positions_gained=torch.tensor([gained or [0] * count]),
        contact_mps=torch.tensor([contact_mps or [0.0] * count]),
        is_at_fault=torch.tensor([fault or [False] * count]),
    )


def test_metres_are_gained_on_the_mean_of_the_cars_within_50_m():
    # The third car is 60 m ahead of the second and 90 m ahead of the first.
    gained = metres_gained(decision([100.0, 130.0, 190.0], [4.0, 3.0, 9.0]), LENGTH_M)
    assert gained.tolist() == [[1.0, -1.0, 0.0]]


def test_the_line_lies_between_near_cars_too():
    gained = metres_gained(decision([990.0, 10.0], [2.0, 5.0]), LENGTH_M)
    assert gained.tolist() == [[-3.0, 3.0]]


def test_cars_out_of_the_race_count_for_nobody():
    gained = metres_gained(decision([100.0, 110.0, 120.0], [4.0, 0.0, 2.0], racing=[True, False, True]), LENGTH_M)
    assert gained.tolist() == [[2.0, 0.0, -2.0]]


def test_the_terms_of_the_reward_are_added():
    settings = RaceSettings(
        num_cars=2, gain=2.0, overtake=0.5, contact_penalty=-0.01, fault_penalty=-0.1, fault_cost=-1.0
    )
    one = decision([100.0, 110.0], [5.0, 3.0], gained=[1, -1], contact_mps=[3.0, 3.0], fault=[True, False])
    found = race_reward(settings, one, LENGTH_M, torch.tensor([[100.0]]))
    # Two metres gained are 2 * 2 / 100; the contact costs both 0.03, and the one at fault 0.3 and 1 more.
    assert found[0].tolist() == pytest.approx([0.04 + 0.5 - 0.03 - 0.3 - 1.0, -0.04 - 0.5 - 0.03])


def test_a_touch_too_soft_for_a_fault_costs_nothing():
    settings = RaceSettings(num_cars=2, contact_penalty=-1.0, fault_penalty=-1.0, fault_cost=-1.0)
    soft = decision([100.0, 102.0], [1.0, 1.0], contact_mps=[0.5, 0.5], fault=[True, True])
    assert race_reward(settings, soft, LENGTH_M, LENGTH_M).tolist() == [[0.0, 0.0]]

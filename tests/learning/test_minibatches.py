"""The orders of an update: alone those of stable-baselines3's buffer, in several processes different ones."""

import numpy as np

from hotlap.learning.distributed.processes import ALONE, Place, Processes
from hotlap.learning.minibatches import draw_orders

NUM_STEPS, NUM_CARS = 4, 3


def test_alone_the_rows_are_those_the_library_counts_environment_by_environment():
    [order] = draw_orders(NUM_STEPS, NUM_CARS, 1, np.random.RandomState(7), ALONE)
    numbers = np.random.RandomState(7).permutation(NUM_STEPS * NUM_CARS)
    assert order.tolist() == [number % NUM_STEPS * NUM_CARS + number // NUM_STEPS for number in numbers]


def test_several_processes_draw_different_permutations_and_leave_equal_generators():
    rngs = [np.random.RandomState(7) for _ in range(2)]
    orders = [
        tuple(order.tolist())
        for rank, rng in enumerate(rngs)
        for order in draw_orders(NUM_STEPS, NUM_CARS, 2, rng, Processes(Place(rank, 2)))
    ]
    assert all(sorted(order) == list(range(NUM_STEPS * NUM_CARS)) for order in orders)
    assert len(set(orders)) == 4
    assert rngs[0].randint(2**31) == rngs[1].randint(2**31)

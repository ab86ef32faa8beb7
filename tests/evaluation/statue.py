"""A driver that never moves, for tests."""

import numpy as np


class Statue:
    """Never moves."""

    name = "statue"

    def begin(self, fleet, seed):
        self._num_cars = fleet.num_cars

    def act(self, obs):
        return np.zeros((self._num_cars, 3), np.float32)

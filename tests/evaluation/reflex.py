"""A policy of one layer as a driver, for compiled code and for the Python loop."""

import numpy as np

from hotlap.sim.policy_forward import decide_cars, make_memory, pack_policy


class Reflex:
    """A policy of one layer that steers to the open side and goes slowly near walls; it laps from most starts."""

    name = "reflex"
    action_repeat = 4

    def __init__(self, bias=(0.0, 0.4, -0.2), gain=1.0, centring=5.0):
        weight = np.zeros((3, 14), np.float32)
        weight[0, :4], weight[0, 5:9] = [centring, centring, 2.0, 2.0], [-2.0, -2.0, -centring, -centring]
        weight[1, [4, 9]], weight[2, [4, 9]] = [1.0, -4.0], [-2.0, 2.0]
        bounds = np.array([-1, 0, 0], np.float32), np.ones(3, np.float32)
        layer = np.float32(gain) * weight, np.array(bias, np.float32)
        self.packed = pack_policy([layer], activation="tanh", bounds=bounds)

    def begin(self, fleet, seed):
        self._memory, self._tick = make_memory(self.packed, fleet.num_cars), 0

    def act(self, obs):
        if self._tick % self.action_repeat == 0:
            decide_cars(self.packed, obs, self._memory)
        self._tick += 1
        return self._memory.actions


class Interpreted:
    """The same driver, without what compiled code needs: it is driven in the Python loop."""

    def __init__(self, driver):
        self.name, self.begin, self.act = driver.name, driver.begin, driver.act

"""Recorded actions drive N cars in compiled code, with the rules of the evaluation; nobody looks, so no ray is cast."""

import numpy as np

from hotlap.sim.compilation import entry_point
from hotlap.sim.policy_drive import count_tick
from hotlap.sim.step import drive_car


@entry_point()
def replay_cars(begin, end, runs, firsts, actions, rules, ribbons, cars, episode_rules, batch, drives, ticks_left):
    """Drive the cars from `begin` to `end`, car i with the runs from firsts[i] on; a car stops when it is done.

    `ticks_left` gets the ticks of its runs that a car did not drive.
    """
    for i in range(begin, end):
        drive, action = drives.cars[i], actions[i]
        for row in range(firsts[i], firsts[i + 1]):
            run = runs[row]
            action[0], action[1], action[2] = run.steer, run.throttle, run.brake
            for tick in range(run.ticks):
                if not drive.is_running:
                    ticks_left[i] += np.int64(run.ticks) - np.int64(tick)
                    break
                drive_car(i, actions, ribbons, cars, episode_rules, batch, 1)
                count_tick(i, rules, batch, drives)

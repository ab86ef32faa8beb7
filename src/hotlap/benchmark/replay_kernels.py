"""Recorded actions drive N cars in compiled code, with the rules of the evaluation; nobody looks, so no ray is cast."""

import numpy as np

from hotlap.benchmark.actions import RUN_DTYPE
from hotlap.sim.compilation import entry_point
from hotlap.sim.policy_drive import DriveRules, begin_drives, count_tick
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.step import drive_car, make_batch
from hotlap.sim.vehicle import CAR_DTYPE


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


def warm_up() -> None:
    """Compile the loop, or load it from the disk cache, before the first drive."""
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(1, NODE_DTYPE), np.zeros(1, PORTAL_DTYPE))
    batch, none = make_batch(0), np.zeros(0, np.int64)
    world = ribbons, np.zeros(1, CAR_DTYPE), np.zeros(1, RULES_DTYPE)
    drives, rules = begin_drives(batch, np.zeros(0), num_laps=1), DriveRules(1, 1, 1, 1.0)
    runs, actions = np.zeros(0, RUN_DTYPE), np.zeros((0, 3), np.float32)
    replay_cars(0, 0, runs, none, actions, rules, *world, batch, drives, none)

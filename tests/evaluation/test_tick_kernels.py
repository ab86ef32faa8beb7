"""What is counted on every tick."""

import numpy as np

from hotlap.evaluation.tick_kernels import PROGRESS_DTYPE, count_tick, find_stuck
from hotlap.sim.world import INFO_DTYPE, STATE_DTYPE


def test_a_contact_counts_when_it_begins_and_cars_that_are_done_count_nothing():
    infos, running = np.zeros(3, INFO_DTYPE), np.array([True, True, False])
    infos["lapTime"] = np.nan
    infos["wallContact"] = [True, False, True]
    returns, touched, rewards = np.zeros(3), np.zeros(3, np.bool_), np.array([1.0, 2.0, 4.0], np.float32)
    assert count_tick(infos, rewards, running, returns, touched) == (1, 0)
    infos["lapTime"] = [np.nan, 31.5, 30.0]
    assert count_tick(infos, rewards, running, returns, touched) == (0, 1)  # the same contact goes on
    assert returns.tolist() == [2.0, 4.0, 0.0]
    infos["wallContact"][0] = False
    count_tick(infos, rewards, running, returns, touched)
    infos["wallContact"][0] = True
    assert count_tick(infos, rewards, running, returns, touched)[0] == 1


def test_a_car_is_stuck_that_gets_no_further_and_crossing_the_line_is_further():
    states, progress, stuck = np.zeros(3, STATE_DTYPE), np.zeros(3, PROGRESS_DTYPE), np.zeros(3, np.bool_)
    progress["lap_m"], progress["arc_m"] = 100.0, 90.0
    for tick in range(1, 21):
        states["arc_m"] = [(90.0 + tick) % 100.0, 90.0 + 0.001 * tick, 90.0 - tick]  # forwards, hardly, backwards
        find_stuck(states, progress, tick, 10, 1.0, stuck)
        assert stuck.tolist() == [False, tick > 10, tick > 10]
    assert progress["distance_m"].round(3).tolist() == [20.0, 0.02, -20.0]

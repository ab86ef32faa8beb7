"""What a car's info says of its race."""

import numpy as np

from hotlap.envs.race_infos import RACE_KEYS, race_columns, race_progress_m
from hotlap.sim.race import ENTRANT_DTYPE, FINISHED


def entrants():
    found = np.zeros(3, ENTRANT_DTYPE)
    found["laps_done"], found["arc_m"] = [0, 0, 2], [-8.0, 12.5, 30.0]
    found["position"], found["at_fault"] = [3, 2, 1], [0, 2, 0]
    found["status"][2] = FINISHED
    return found


def test_progress_is_laps_and_metres_and_negative_on_the_grid():
    lengths_m = np.array([1000.0, 1000.0, 1000.0], np.float32)
    assert race_progress_m(entrants(), lengths_m).tolist() == [-8.0, 12.5, 2030.0]


def test_every_car_has_every_column_and_later_ticks_do_not_change_it():
    cars = entrants()
    columns = race_columns(cars, np.full(3, 1000.0, np.float32))
    assert tuple(columns) == RACE_KEYS
    cars["position"], cars["overtakes"], cars["status"] = 9, 9, 0
    assert columns["position"].tolist() == [3, 2, 1]
    assert columns["overtakes"].tolist() == [0, 0, 0]
    assert columns["atFault"].tolist() == [False, True, False]
    assert columns["finished"].tolist() == [False, False, True]

"""Races of a fleet: their grids and how far their cars are."""

import numpy as np
import pytest

from hotlap.envs.race_fleet import RaceFleet, check_grid
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError


@pytest.mark.parametrize("grid", [[2, 0, 1], (2, 0, 1), np.array([2, 0, 1])])
def test_a_grid_names_every_car_once(grid):
    assert check_grid(grid, 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize("grid", [None, "012", [0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2.0], {0, 1, 2}, [[0], [1], [2]]])
def test_any_other_grid_is_refused_in_one_line(grid):
    with pytest.raises(ConfigError, match="grid: must name each car from 0 to 2 once") as caught:
        check_grid(grid, 3)
    assert str(caught.value).isprintable()


def test_cars_stand_behind_the_line_and_the_first_slot_is_ahead(compiled):
    fleet = RaceFleet(["track-01"], RacerSettings(), 2, 3, 1, "grid", num_threads=1)
    fleet.seed(np.arange(2, dtype=np.uint64))
    fleet.reset()
    progress_m = fleet.progress_m.reshape(2, 3)
    assert (progress_m < 0.0).all()
    assert (np.sort(fleet.entrants["position"].reshape(2, 3)) == [1, 2, 3]).all()
    for own_m, positions in zip(progress_m, fleet.entrants["position"].reshape(2, 3), strict=True):
        assert np.argsort(-own_m).tolist() == np.argsort(positions).tolist()

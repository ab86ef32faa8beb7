"""Races of a fleet: their grids and how far their cars are."""

import numpy as np
import pytest

from hotlap.envs.fleet import Fleet
from hotlap.envs.race_fleet import RaceFleet, check_grid
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine


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


@pytest.mark.parametrize("own", ["race", "race-2"])
def test_cars_see_either_version_of_the_road_whichever_the_fleet_has(compiled, own):
    fleet = RaceFleet(["track-01"], RacerSettings(), 1, 3, 1, "rolling", num_threads=1, observation=own)
    fleet.seed(np.zeros(1, np.uint64))
    fleet.reset()
    fleet.step(np.full((3, 3), [0.0, 1.0, 0.0], np.float32), autoreset=False, repeat=30)
    assert fleet.see(own) is fleet.batch.obs
    assert fleet.see("rays") is fleet.batch.obs
    first, second = fleet.see("race"), fleet.see("race-2")
    assert (first.shape, second.shape) == ((3, 90), (3, 176))
    assert first[:, :14].tobytes() == second[:, :14].tobytes()
    assert first[:, -32:].tobytes() == second[:, -32:].tobytes()
    assert np.count_nonzero(first[:, -32:]) > 8
    for name, seen in (("road", first), ("road-2", second)):
        alone = Fleet(["track-01"], RacerSettings(), 3, CpuEngine(), name)
        alone.set_state({column: fleet.states[column] for column in fleet.states.dtype.names})
        assert seen[:, : alone.batch.obs.shape[1]].tobytes() == alone.batch.obs.tobytes()

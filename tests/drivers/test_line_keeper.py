"""The line keeper drives at its distance from the centreline, whoever is there."""

import numpy as np

from hotlap.drivers.line_keeper import LineKeeper
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.sim.batch_cpu import CpuEngine

OFFSETS = np.array([-0.5, 0.0, 0.5])


def test_each_car_drives_on_its_own_line():
    fleet = Fleet(["track-01"], RacerSettings(), 3, CpuEngine())
    fleet.seed(np.zeros(3, np.uint64))
    fleet.reset()
    driver = LineKeeper(OFFSETS)
    driver.begin(fleet, 0)
    lateral_m = []
    for tick in range(900):
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        if tick > 300:
            lateral_m.append(fleet.states["lateral_m"].copy())
    # Half of 5.75 m to either side of the centreline; bends are cut a little.
    assert np.abs(np.mean(lateral_m, axis=0) - 5.75 * OFFSETS).max() < 0.6
    assert np.abs(np.array(lateral_m) - 5.75 * OFFSETS).max() < 1.5
    assert (fleet.states["arc_m"] > 150.0).all()

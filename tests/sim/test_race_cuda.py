"""Races on the CUDA engine have the CPU's bits, under numba's simulator. They were not tried on a GPU yet."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hotlap
from hotlap.sim.race_cpu import CpuRaceEngine
from sim.cuda_race_simulator import CASES, drive, scenario

# This source and these tests, whichever are installed.
MODULES = os.pathsep.join(str(Path(path).resolve().parents[1]) for path in (hotlap.__file__, __file__))
SIMULATOR_S = 300  # it compiles the phases once more


@pytest.mark.slow  # compiling takes a minute
@pytest.mark.timeout(SIMULATOR_S)
def test_races_have_the_bits_of_the_cpu_under_the_simulator(tmp_path):
    # No optimisation, which compiles faster; its code must not get into the user's cache.
    compiling = {"NUMBA_OPT": "0", "HOTLAP_CACHE": str(tmp_path)}
    environ = {**os.environ, **compiling, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": MODULES}
    command = [sys.executable, "-m", "sim.cuda_race_simulator", str(tmp_path / "found.npz")]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=SIMULATOR_S)
    assert answer.returncode == 0, answer.stderr
    engine, world, wanted = CpuRaceEngine(), scenario(), {}
    for case in CASES:
        wanted |= drive(engine, world, case)
    with np.load(tmp_path / "found.npz") as found:
        assert set(found) == set(wanted)
        assert [name for name in wanted if found[name].tobytes() != wanted[name].tobytes()] == []
    for cars in (3, 8):  # cars touched, and a race ended and began anew
        assert any((wanted[f"{cars} cars, {step}: entrants touched"] != 0).any() for step in range(6))
        assert wanted[f"{cars} cars, 5: states episode"].min() > 0

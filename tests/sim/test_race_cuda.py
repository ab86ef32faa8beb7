"""Races on the CUDA engine have the CPU's bits: under numba's simulator everywhere, on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hotlap
from hotlap.sim.race import START_GRID, START_ROLLING
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_cuda import CudaRaceEngine, CudaRaces
from hotlap.tracks.golden_races import race_version
from hotlap.tracks.golden_traces import scripted_actions
from sim.cuda_race_simulator import CASES, drive, scenario
from sim.race_worlds import RaceWorld, assert_same_bits
from sim.worlds import nodes_of

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


@pytest.mark.gpu
def test_the_race_version_is_the_same_on_the_gpu():
    assert race_version(CudaRaceEngine()) == hotlap.RACE_VERSION


COMPARE_EVERY = 25  # steps
GPU_S = 540


@pytest.mark.gpu
@pytest.mark.timeout(GPU_S)
@pytest.mark.parametrize(
    ("cars_per_race", "start", "repeat", "num_cars", "num_ticks"),
    [
        (1, START_GRID, 4, 16384, 50_000_000),
        (2, START_ROLLING, 1, 16384, 50_000_000),
        (5, START_GRID, 3, 16385, 50_000_000),
        (8, START_ROLLING, 4, 65536, 800_000_000),
        (32, START_ROLLING, 4, 32768, 100_000_000),
    ],
)
def test_a_billion_ticks_of_cars_on_a_real_gpu_have_the_bits_of_the_cpu(
    cars_per_race, start, repeat, num_cars, num_ticks, record_property
):
    num_races = num_cars // cars_per_race
    options = {"laps": 1, "start": start, "race_ticks": 2000}
    world = RaceWorld(nodes_of("track-02"), cars_per_race, num_races, **options)
    races = CudaRaces(world.scenario, world.race, num_races)
    races.upload(world.states)
    races.upload_entrants(world.entrants)
    num_steps = -(-num_ticks // (world.num_cars * repeat))
    contacts = ends = 0
    for step in range(num_steps):
        if step % 5 == 0:
            actions = scripted_actions(world.batch.obs, step)
        races.actions.copy_to_device(actions)
        races.step(autoreset=True, repeat=repeat)
        world.step(actions, autoreset=True, num_threads=os.cpu_count(), repeat=repeat)
        contacts += np.count_nonzero(world.entrants["contact_mps"])
        ends += np.count_nonzero(world.batch.terminated | world.batch.truncated)
        if step % COMPARE_EVERY == 0 or step == num_steps - 1:
            for mine, other in zip((*world.batch, *world.field), (*races.batch, *races.field), strict=True):
                found = other.copy_to_host()
                assert_same_bits(mine, found)
                assert mine.dtype.names or mine.tobytes() == found.tobytes(), step
    assert ends > 0
    assert contacts > 0 or cars_per_race == 1
    ticks = num_steps * world.num_cars * repeat
    record_property("figure", f"{cars_per_race} cars a race: {ticks:,} ticks, {contacts:,} contacts, no difference")

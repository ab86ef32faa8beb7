"""The CUDA engine gives the CPU's bits: under numba's simulator everywhere, on a real GPU where there is one."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hotlap
from hotlap.envs.spaces import num_observations
from hotlap.errors import CudaError
from hotlap.sim import batch_cuda
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.batch_cuda import CudaCars, find_problem
from hotlap.sim.cuda_compilation import check_exact
from hotlap.sim.cuda_engine import CudaEngine
from hotlap.sim.rewards import START_RANDOM
from hotlap.tracks.golden_traces import physics_version
from sim.cuda_simulator import drive, make_cases
from sim.worlds import World, nodes_of

# This source and these tests, whichever are installed.
MODULES = os.pathsep.join(str(Path(path).resolve().parents[1]) for path in (hotlap.__file__, __file__))


SIMULATOR_S = 300  # it compiles the step once more


@pytest.mark.timeout(SIMULATOR_S)
def test_the_kernels_give_the_bits_of_the_cpu_under_the_simulator(tmp_path):
    # No optimisation, which compiles five times as fast; its code must not get into the user's cache.
    compiling = {"NUMBA_OPT": "0", "HOTLAP_CACHE": str(tmp_path)}
    environ = {**os.environ, **compiling, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": MODULES}
    cases = make_cases()
    (path := tmp_path / "cases").write_bytes(pickle.dumps(cases))
    command = [sys.executable, "-m", "sim.cuda_simulator", str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=SIMULATOR_S)
    assert answer.returncode == 0, answer.stderr
    answers = json.loads(answer.stdout)
    assert answers.pop("unlike_ribbons") == []
    for observation in cases:
        found, expected = answers[observation], drive(CpuEngine(), *cases[observation])
        for step, (mine, other) in enumerate(zip(found["after"], expected["after"], strict=True)):
            assert [name for name in mine if mine[name] != other[name]] == [], f"{observation}: call {step}"
        assert found == expected
        assert found["bad_car"] == 1
        assert found["num_episodes"] >= 2


@pytest.mark.parametrize(
    "instruction",
    ["fma.rn.f32 %f1, %f2, %f3;", "mul.f32 %f1, %f2;", "div.full.f32 %f1;", "sqrt.approx.f32 %f1;",
     "add.ftz.f32 %f1;", "cvt.f64.f32 %fd1;"],
)  # fmt: skip
def test_machine_code_that_rounds_unlike_the_cpu_is_refused(instruction):
    with pytest.raises(CudaError, match=r"kernel step: holds the instruction .* use --device cpu"):
        check_exact(f"add.rn.f32 %f4, %f5;\n\t{instruction}", "step")


def test_machine_code_that_rounds_like_the_cpu_passes():
    check_exact(
        "mul.rn.f32 %f1, %f2;\nadd.rn.f32 %f1;\nsub.f32 %f3;\ndiv.rn.f32 %f1;\nsqrt.rn.f32 %f2;\nmad.lo.s32 %r1;", ""
    )


def test_without_a_gpu_the_engine_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(batch_cuda, "find_problem", lambda: "no NVIDIA GPU with a working driver was found. Use …")
    with pytest.raises(CudaError, match=r"--device cuda: no NVIDIA GPU"):
        CudaCars(World([nodes_of("track-01")]).scenario, 1)


@pytest.mark.gpu
def test_the_physics_version_is_the_same_on_the_gpu():
    assert physics_version(CudaEngine()) == hotlap.PHYSICS_VERSION


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("repeat", "observation", "rules"),
    [
        (1, "rays", {}),
        (4, "rays", {}),
        (4, "road", {"start": START_RANDOM, "spun_fraction": 0.3, "penalty_min_speed_mps": 8.0}),
        (4, "road-2", {"start": START_RANDOM, "spun_fraction": 0.3, "progress_time_s": 24.0}),
    ],
)
def test_8192_cars_on_a_real_gpu_give_the_bits_of_the_cpu(repeat, observation, rules):
    tracks = [nodes_of(f"track-0{number}") for number in (1, 2, 3)]
    num_obs = num_observations(observation)
    world, twin = (World(tracks, 8192, num_obs=num_obs, max_ticks=400, **rules) for _ in range(2))
    engine, rng = CudaEngine(), np.random.default_rng(0)
    for _ in range(300):
        actions = rng.uniform([-1, 0, 0], [1, 1, 0.3], (8192, 3)).astype(np.float32)
        world.step(actions, autoreset=True, repeat=repeat)
        engine.step(actions, twin.scenario, twin.batch, autoreset=True, repeat=repeat)
    for mine, other in zip(world.batch, twin.batch, strict=True):
        for column in mine.dtype.names or (None,):
            pair = (mine, other) if column is None else (mine[column], other[column])
            assert pair[0].tobytes() == pair[1].tobytes(), column


def test_here_the_problem_is_named_or_there_is_none():
    problem = find_problem()
    assert problem is None or problem.endswith("Use --device cpu.") or "hotlap[gpu]" in problem

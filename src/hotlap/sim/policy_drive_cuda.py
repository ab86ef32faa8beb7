"""`policy_drive.py` on a GPU, with the CPU's bits: one thread drives one car through its laps."""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, types

from hotlap.errors import CudaError
from hotlap.sim.batch_cuda import THREADS_PER_BLOCK, array_type, batch_type, find_problem, ribbons_type
from hotlap.sim.cuda_compilation import exact_kernel
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.policy_drive import DRIVE_DTYPE, DriveRules, Drives, drive_on
from hotlap.sim.policy_forward import LAYER_DTYPE, POLICY_DTYPE, PackedPolicy, PolicyMemory
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.step import Batch
from hotlap.sim.vehicle import CAR_DTYPE


def _drive(policy, memory, rules, ribbons, cars, episode_rules, batch, drives, num_ticks):
    i = cuda.grid(1)
    if i < batch.states.shape[0] and drives.cars[i].is_running:
        drive_on(i, i, policy, memory, rules, ribbons, cars, episode_rules, batch, drives, num_ticks)


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """The kernel, compiled for the GPU in use."""
    floats, table = array_type(np.float32), array_type(np.float32, 2)
    policy = types.NamedTuple((array_type(POLICY_DTYPE), array_type(LAYER_DTYPE), floats), PackedPolicy)
    memory = types.NamedTuple((table, table, table), PolicyMemory)
    rules = types.NamedTuple((types.int64, types.int64, types.int64, types.float64), DriveRules)
    laps = array_type(np.int32, 2), table, array_type(np.bool_, 2)
    drives = types.NamedTuple((array_type(DRIVE_DTYPE), *laps), Drives)
    scenario = ribbons_type(), array_type(CAR_DTYPE), array_type(RULES_DTYPE)
    arguments = (policy, memory, rules, *scenario, batch_type(), drives, types.int64)
    return exact_kernel(_drive, arguments, sums_float64=True)


def drive_further_on_gpu(
    policy: PackedPolicy,
    memory: PolicyMemory,
    rules: DriveRules,
    scenario: Scenario,
    batch: Batch,
    drives: Drives,
    num_ticks: int,
) -> int:
    """`policy_drive.drive_further` on a GPU; the memory needs one worker per car."""
    problem = find_problem()
    if problem:
        raise CudaError(f"--device cuda: {problem}")
    changing = (memory, batch, drives)
    on_device = [type(part)(*map(cuda.to_device, part)) for part in changing]
    constant = [type(part)(*map(cuda.to_device, part)) for part in (policy, scenario.ribbons)]
    cars, episode_rules = cuda.to_device(scenario.cars), cuda.to_device(scenario.rules)
    num_blocks = max(1, -(-len(batch.states) // THREADS_PER_BLOCK))
    plain_rules = DriveRules(int(rules.num_laps), int(rules.repeat), int(rules.stuck_after_ticks), rules.stuck_within_m)
    device_memory, device_batch, device_drives = on_device
    _kernel()[num_blocks, THREADS_PER_BLOCK](
        constant[0],
        device_memory,
        plain_rules,
        constant[1],
        cars,
        episode_rules,
        device_batch,
        device_drives,
        num_ticks,
    )
    for part, computed in zip(changing, on_device, strict=True):
        for array, result in zip(part, computed, strict=True):
            array[...] = result.copy_to_host()  # type: ignore[attr-defined]
    bad = np.flatnonzero(drives.cars["has_bad_action"])
    return int(bad[0]) if len(bad) else ALL_FINE

"""Runs the CUDA engine under numba's simulator beside the CPU's: a process of its own, prints differences."""

import sys
from typing import Any

import numpy as np
from numba import cuda

from hotlap.envs.spaces import num_observations
from hotlap.sim import batch_cuda
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.engine import Engine, Scenario
from hotlap.sim.ribbon import FAR_SPAN, Ribbons, pack_ribbons
from hotlap.sim.step import Batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks import golden_traces
from hotlap.tracks.registry import load_track

NUM_CARS = 3
NUM_STEPS = 12


def as_plain(value: Any) -> Any:
    """The NumPy array inside the simulator's wrapper: compiled functions take no wrappers."""
    if isinstance(value, tuple):
        return type(value)(*map(as_plain, value))
    value = getattr(value, "_item", value)
    return getattr(value, "_ary", value)


def simulated_kernel(function: Any, signature: Any) -> Any:
    """`function` as a kernel of the simulator, which finds `cuda` in the globals of the function it is given."""
    names = function.__globals__
    names["_as_plain"] = as_plain
    exec(f"def simulated{function.__name__}(*a): {function.__name__}(*map(_as_plain, a))", names)
    return cuda.jit(names[f"simulated{function.__name__}"])


def scenario() -> Scenario:
    tracks = [load_track(name) for name in ("track-01", "track-03")]
    rules = golden_traces.golden_rules()
    rules["max_ticks"] = 7  # every car ends an episode several times
    # Some of the cars have spun, some are slower than the least speed that pays, and all count as still.
    rules["spun_fraction"], rules["penalty_min_speed_mps"], rules["stillness_speed_mps"] = 0.5, 14.0, 100.0
    ribbons = pack_ribbons([track.nodes for track in tracks], [track.start_speed_mps for track in tracks])
    return Scenario(ribbons, car_record(), rules)


def differences(one: Batch, other: Batch) -> list[str]:
    found = []
    for name, left, right in zip(Batch._fields, one, other, strict=True):
        for column in left.dtype.names or (None,):
            pair = (left, right) if column is None else (left[column], right[column])
            if pair[0].tobytes() != pair[1].tobytes():
                found.append(f"{name} {column or ''}")
    return found


def unlike_ribbons(world: Scenario, engine: Any) -> list[str]:
    """What of the ribbons is different on the GPU after another second track was uploaded alone."""
    num_nodes = int(world.ribbons.tracks[0]["num_nodes"])
    parts = slice(1, 2), slice(num_nodes, None), slice(num_nodes + 2 * FAR_SPAN, None)
    ribbons = Ribbons(*(array.copy() for array in world.ribbons))
    for array, part in zip(ribbons, parts, strict=True):
        array[part].view(np.uint8)[:] += np.uint8(1)
    engine._cars.upload_ribbon(ribbons, parts)
    pairs = zip(Ribbons._fields, engine._cars._ribbons, ribbons, strict=True)
    return [name for name, mine, other in pairs if mine.copy_to_host().tobytes() != other.tobytes()]


def main() -> int:
    batch_cuda.exact_kernel = simulated_kernel
    batch_cuda.find_problem = lambda: None
    engines: tuple[Engine, ...] = (CpuEngine(), batch_cuda.CudaEngine())
    world, batches, found = scenario(), [], []
    for engine in engines:
        batch = engine.make_batch(NUM_CARS, num_observations("road"))
        batch.states["track"], batch.states["seed"] = np.arange(NUM_CARS) % 2, np.arange(NUM_CARS)
        engine.reset(np.ones(NUM_CARS, np.bool_), world, batch)
        batches.append(batch)
    found += differences(*batches)
    for step in range(NUM_STEPS):
        actions = golden_traces.scripted_actions(batches[0].obs, step)
        for engine, batch in zip(engines, batches, strict=True):
            engine.step(actions, world, batch, autoreset=True, repeat=1 + step % 3)
        found += differences(*batches)
    actions[1, 2] = np.nan
    bad = [e.step(actions, world, b, autoreset=True, repeat=1) for e, b in zip(engines, batches, strict=True)]
    found += [] if bad == [1, 1] else [f"bad action {bad}"]
    for engine, batch in zip(engines, batches, strict=True):
        batch.obs[:] = 0.0
        engine.observe(world, batch)
    found += differences(*batches)
    found += unlike_ribbons(world, engines[1])
    print(sorted(set(found)), int(batches[0].states["episode"].min()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the CUDA engine under numba's simulator, in a process of its own, and prints what it did as JSON.

usage: python -m sim.cuda_simulator FILE (the pickled cases: that process would compile all that makes them)
"""

import hashlib
import json
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.simulator.kernel import BlockThread

from hotlap.envs.domain import DomainRules
from hotlap.envs.spaces import num_observations
from hotlap.sim import batch_cuda
from hotlap.sim.cuda_engine import CudaEngine
from hotlap.sim.domain import make_actions
from hotlap.sim.engine import Engine, Scenario
from hotlap.sim.guide_line import add_guides
from hotlap.sim.ribbon import FAR_SPAN, Ribbons, pack_ribbons
from hotlap.sim.step import Batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks import golden_traces
from hotlap.tracks.registry import load_track

NUM_CARS = 3
NUM_STEPS = 12
# Each is a thread of this process, those without a car too. The cars are in two blocks, and one thread has no car.
THREADS_PER_BLOCK = 2
# Everything by which cars can differ.
DOMAIN = DomainRules(0.8, 1.1, 0.9, 1.2, 0.7, 1.0, 1, 4, 0.02)


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
    return Scenario(add_guides(ribbons, [track.nodes for track in tracks]), car_record(), rules)


def different_cars(plain: Scenario) -> Scenario:
    """Cars that all differ, and whose actions arrive late."""
    rules = plain.rules.copy()
    for name, value in DOMAIN.rules().items():
        rules[name] = value
    return plain._replace(cars=DOMAIN.car_records(NUM_CARS), rules=rules)


def make_cases() -> dict[str, tuple[Scenario, str]]:
    """What is driven, and what is observed, by name."""
    plain = scenario()
    return {"road": (plain, "road"), "road-2": (plain, "road-2"), "domain": (different_cars(plain), "road-2")}


def digests(batch: Batch) -> dict[str, str]:
    """A digest of every column of a batch; the padding of records does not count."""
    found = {}
    for name, array in batch._asdict().items():
        for column in array.dtype.names or (None,):
            values = array if column is None else array[column]
            found[f"{name} {column or ''}"] = hashlib.sha256(values.tobytes()).hexdigest()
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


def drive(engine: Engine, world: Scenario, observation: str) -> dict[str, Any]:
    """Reset, step and observe some cars: the digests after each call, and what the last ones returned."""
    batch = engine.make_batch(NUM_CARS, num_observations(observation))
    batch.states["track"], batch.states["seed"] = np.arange(NUM_CARS) % 2, np.arange(NUM_CARS)
    engine.reset(np.ones(NUM_CARS, np.bool_), world, batch)
    after, actions = [digests(batch)], make_actions(NUM_CARS, int(world.rules["delay_high_ticks"][0]))
    for step in range(NUM_STEPS):
        actions[:, :3] = golden_traces.scripted_actions(batch.obs, step)
        engine.step(actions, world, batch, autoreset=True, repeat=1 + step % 3)
        after.append(digests(batch))
    actions[1, 2] = np.nan
    bad_car = engine.step(actions, world, batch, autoreset=True, repeat=1)
    batch.obs[:] = 0.0
    engine.observe(world, batch)
    after.append(digests(batch))
    return {"after": after, "bad_car": bad_car, "num_episodes": int(batch.states["episode"].min())}


def start_and_wait(thread: BlockThread) -> None:
    """Run a simulated thread until it ends or waits for others: together they would all wait for the compiler."""
    threading.Thread.start(thread)
    while thread.is_alive() and not thread.syncthreads_blocked:
        thread.join(0.01)


def main(cases: dict[str, tuple[Scenario, str]]) -> dict[str, Any]:
    BlockThread.start = start_and_wait
    batch_cuda.exact_kernel = simulated_kernel
    batch_cuda.find_problem = lambda: None
    batch_cuda.THREADS_PER_BLOCK = THREADS_PER_BLOCK
    engine = CudaEngine()
    found: dict[str, Any] = {name: drive(engine, *case) for name, case in cases.items()}
    world, _ = cases["road"]
    engine.observe(world, engine.make_batch(NUM_CARS))
    return {**found, "unlike_ribbons": unlike_ribbons(world, engine)}


if __name__ == "__main__":
    print(json.dumps(main(pickle.loads(Path(sys.argv[1]).read_bytes()))))

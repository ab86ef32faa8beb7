"""Golden traces: cars driven by fixed rules on shipped tracks, digested bit for bit into the physics version.

`python -m hotlap.tracks.golden_traces` prints the physics version as this machine computes it.
"""

import hashlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.engine import Engine, Scenario
from hotlap.sim.rewards import RULES_DTYPE, START_RANDOM
from hotlap.sim.ribbon import GUIDE, NODE_DTYPE, pack_ribbons
from hotlap.sim.vehicle import car_record
from hotlap.tracks.registry import load_track

EDITION = 1  # incremented when the physics are changed on purpose

GOLDEN_TRACKS = ("track-01", "track-02", "track-03", "train-000", "train-001", "test-000")
CARS_PER_TRACK = 8
TICKS = 3000
DIGEST_EVERY = 25
# Every reward term, random starts, and episodes short enough for several resets. A rule that is not named has its
# default and is not in the digest, so that a new rule whose default changes nothing keeps the version.
RULES = {
    "progress": 1.0,
    "speed_bonus": 0.01,
    "wall_penalty": -0.002,
    "off_track_penalty": -0.001,
    "backward_penalty": -0.003,
    "stillness_penalty": -0.001,
    "stillness_speed_mps": 2.0,
    "max_ticks": 2500,
    "stillness_timeout_ticks": 120,
    "num_gates": 30,
    "start": START_RANDOM,
}


def physics_version(engine: Engine | None = None) -> str:
    """The physics version as an engine computes it on this machine, by default the CPU engine."""
    return f"{EDITION}-{golden_digest(engine or CpuEngine())[:12]}"


def golden_digest(engine: Engine) -> str:
    """SHA-256 over the parameters and the cars' states, observations, rewards and infos."""
    tracks = [load_track(track_id) for track_id in GOLDEN_TRACKS]
    ribbons = pack_ribbons([track.nodes for track in tracks], [track.start_speed_mps for track in tracks])
    num_cars = len(tracks) * CARS_PER_TRACK
    batch = engine.make_batch(num_cars)
    batch.states["track"] = np.arange(num_cars) % len(tracks)
    batch.states["seed"] = np.arange(num_cars)
    scenario = Scenario(ribbons, car_record(), golden_rules())
    digest = hashlib.sha256()
    # The guide is only seen: no car drives otherwise for it.
    nodes = ribbons.nodes[[name for name in NODE_DTYPE.names or () if name not in GUIDE]]
    for constant in (ribbons.tracks, nodes, ribbons.portals, scenario.cars, scenario.rules[list(RULES)]):
        update_digest(digest, constant)
    engine.reset(np.ones(num_cars, np.bool_), scenario, batch)
    for tick in range(TICKS):
        engine.step(scripted_actions(batch.obs, tick), scenario, batch, autoreset=True, repeat=1)
        if tick % DIGEST_EVERY == 0:
            for array in batch:
                update_digest(digest, array)
    return digest.hexdigest()


def golden_rules() -> NDArray[np.void]:
    """RULES as the record that kernels take."""
    rules = np.zeros(1, RULES_DTYPE)
    for name, value in RULES.items():
        rules[name] = value
    return rules


def scripted_actions(obs: NDArray[np.float32], tick: int) -> NDArray[np.float32]:
    """Steer to the side with more room and slow down before walls; some cars at times act erratically.

    Float32 adds and multiplies only, so that the actions are bit-identical everywhere, too.
    """
    f = np.float32
    actions = np.zeros((len(obs), 3), np.float32)
    lean = (obs[:, 1] - obs[:, 7]) + (obs[:, 2] - obs[:, 6]) + (obs[:, 3] - obs[:, 5])
    actions[:, 0] = np.clip(lean * f(4.0), f(-1.0), f(1.0))
    margin = np.minimum(np.minimum(obs[:, 3], obs[:, 4]), obs[:, 5]) * f(2.5) + f(0.25) - obs[:, 9]
    actions[:, 1] = np.clip(margin * f(3.0), f(0.0), f(1.0))
    actions[:, 2] = np.clip(margin * f(-4.0), f(0.0), f(1.0))
    wild = (np.arange(len(obs)) * 7 + tick // 40) % 11 == 0
    actions[wild] = np.array([1.5 if tick % 80 < 40 else -1.5, 1.0, 0.2 if tick % 3 == 0 else 0.0], np.float32)
    return actions


def update_digest(digest: "hashlib._Hash", array: NDArray[Any]) -> None:
    """Digest an array column by column (records have padding), little-endian, with one bit pattern for NaN."""
    columns = [array[name] for name in array.dtype.names] if array.dtype.names else [array]
    for column in columns:
        plain = np.where(np.isnan(column), np.float32(-1.0), column) if column.dtype == np.float32 else column
        digest.update(np.ascontiguousarray(plain, column.dtype.newbyteorder("<")).tobytes())


if __name__ == "__main__":
    sys.stdout.write(physics_version() + "\n")

"""Golden races: cars driven by fixed rules against each other, digested bit for bit into the race version.

`python -m hotlap.tracks.golden_races` prints the race version as this machine computes it.
"""

import hashlib
import sys
from typing import NamedTuple

import numpy as np

from hotlap.sim.engine import RaceEngine, Races, Scenario
from hotlap.sim.race import START_GRID, START_ROLLING, Field, make_field, race_rules
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS
from hotlap.sim.step import Batch, make_batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks.golden_traces import golden_rules, scripted_actions, update_digest
from hotlap.tracks.registry import load_track

EDITION = 1  # incremented when races are changed on purpose

DIGEST_EVERY = 20  # steps


class GoldenRace(NamedTuple):
    """One race, which begins anew when it is over, and for how long it is driven."""

    track_id: str
    num_cars: int
    start: int
    laps: int
    max_ticks: int
    seed: int
    repeat: int
    num_steps: int


# Together they have finishes, retirements, races that end by all three rules, and 32 cars, all that a race may have.
GOLDEN_RACES = (
    GoldenRace("track-02", 2, START_ROLLING, laps=1, max_ticks=2400, seed=9, repeat=4, num_steps=400),
    GoldenRace("track-03", 8, START_GRID, laps=1, max_ticks=2000, seed=8, repeat=2, num_steps=1200),
    GoldenRace("track-01", 8, START_ROLLING, laps=1, max_ticks=2400, seed=6, repeat=4, num_steps=600),
    GoldenRace("track-01", 32, START_ROLLING, laps=1, max_ticks=1500, seed=4, repeat=1, num_steps=1800),
)


def race_version(engine: RaceEngine | None = None) -> str:
    """The race version as an engine computes it on this machine, by default the CPU engine."""
    return f"{EDITION}-{golden_digest(engine or CpuRaceEngine())[:12]}"


def golden_digest(engine: RaceEngine) -> str:
    """SHA-256 over states, entrants, observations and rewards of the cars of all golden races."""
    digest = hashlib.sha256()
    for golden in GOLDEN_RACES:
        _digest_race(digest, engine, golden)
    return digest.hexdigest()


def _digest_race(digest: "hashlib._Hash", engine: RaceEngine, golden: GoldenRace) -> None:
    """Drive one golden race and digest it."""
    scenario = Scenario(load_track(golden.track_id).ribbon, car_record(), golden_rules())
    race = race_rules(golden.num_cars, golden.laps, golden.start, golden.max_ticks)
    batch, field = make_batch(golden.num_cars, NUM_RACE_OBSERVATIONS), make_field(golden.num_cars)
    batch.states["seed"] = golden.seed
    races = Races(scenario, race, batch, field)
    engine.reset(np.ones(1, np.bool_), races)
    _update(digest, batch, field)
    for step in range(golden.num_steps):
        actions = scripted_actions(batch.obs, step)
        engine.step(actions, races, autoreset=True, repeat=golden.repeat)
        if step % DIGEST_EVERY == 0:
            _update(digest, batch, field)


def _update(digest: "hashlib._Hash", batch: Batch, field: Field) -> None:
    for array in (batch.states, batch.obs, batch.rewards, field.entrants, field.final_entrants):
        update_digest(digest, array)


if __name__ == "__main__":
    sys.stdout.write(race_version() + "\n")

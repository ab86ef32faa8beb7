"""Replays driven in the simulator: verified to the last bit, and recorded from drivers."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hotlap.drivers.driver import Driver, observation_of
from hotlap.envs.fleet import MAX_REPEAT, Fleet
from hotlap.envs.settings import MAX_COUNT, RacerSettings
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import DriverError, ReplayError
from hotlap.evaluation.evaluate import Lap, LapCounter, StuckDetector
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track
from hotlap.web.page_data import recorded_drive
from hotlap.web.replay_format import MAX_TICKS, Actions, Replay, quantise

__all__ = [
    "Replay",
    "best_lap",
    "find_recorded",
    "record_drive",
    "record_typical_drive",
    "simulate",
    "verify",
    "verify_drive",
]


def make_race_fleet(
    track_id: str, seed: int = 0, observation: ObservationName = DEFAULT_OBSERVATION, num_cars: int = 1
) -> Fleet:
    """Cars standing on the line, one by default, under the rules of the page: the default ones without time limits."""
    defaults = RacerSettings()
    episode = replace(defaults.episode, max_ticks=MAX_COUNT, stillness_timeout_ticks=MAX_COUNT)
    fleet = Fleet([track_id], replace(defaults, episode=episode), num_cars, CpuEngine(), observation)
    fleet.seed(np.full(num_cars, seed, np.uint64))
    fleet.reset(start="line")
    return fleet


def simulate(replay: Replay, track_id: str) -> list[Lap]:
    """The laps that the replay's inputs drive on a track; a ReplayError if it is of another road or physics."""
    return [lap for lap, _ in _drive(replay, track_id)]


def _drive(replay: Replay, track_id: str) -> list[tuple[Lap, int]]:
    """The laps, each with the number of ticks until its end."""
    if replay.physics != PHYSICS_VERSION:
        raise ReplayError(f"replay: it was driven with physics {replay.physics}; this version has {PHYSICS_VERSION}.")
    fleet = make_race_fleet(track_id, replay.seed)
    digest = track_digest(fleet.tracks[0].nodes)
    if replay.track_digest != digest:
        raise ReplayError(f"replay: it was driven on road {replay.track_digest}; that of {track_id} is {digest}.")
    running = np.ones(1, np.bool_)
    found: list[tuple[Lap, int]] = []
    for first, num_ticks in _runs(replay.actions):
        action, before = replay.actions[first : first + 1], fleet.states.copy()
        fleet.step(action, autoreset=False, repeat=num_ticks)
        if np.isnan(fleet.batch.infos["lapTime"][0]):
            continue
        # A lap ended in this run of equal inputs: once more, tick by tick.
        fleet.states[:] = before
        for tick in range(first, first + num_ticks):
            counter = LapCounter(1)
            fleet.step(action, autoreset=False)
            counter.add_tick(fleet, running)
            found += [(lap, tick + 1) for lap in counter.laps]
    return found


def verify(replay: Replay, track_id: str) -> Lap:
    """The lap that the replay claims, as the simulator drives it; a ReplayError if it does not, to the last bit."""
    return verify_drive(replay, track_id)[0]


def verify_drive(replay: Replay, track_id: str) -> tuple[Lap, int]:
    """The lap that the replay claims, verified, and the number of ticks until its end."""
    laps = _drive(replay, track_id)
    found, num_ticks = next(((lap, ticks) for lap, ticks in laps if lap.number == replay.lap), (None, 0))
    if found is None:
        raise ReplayError(f"replay: it claims lap {replay.lap}, but re-simulated it completes {len(laps)} laps.")
    if _bits(found.time_s) != _bits(float(replay.lap_time_s)):
        raise ReplayError(
            f"replay: it claims lap {replay.lap} in {replay.lap_time_s:.6f} s, but re-simulated it takes "
            f"{found.time_s:.6f} s."
        )
    return found, num_ticks


def best_lap(laps: list[Lap]) -> Lap:
    """The lap that counts: a clean one if there is any, then the fastest."""
    return min(laps, key=lambda lap: (not lap.is_clean, lap.time_s, lap.number))


def record_drive(driver: Driver, track_id: str, num_laps: int, seed: int = 0, *, is_quantised: bool = False) -> Replay:
    """A driver's laps from the line as a replay that claims the best of them; a DriverError if it completes none.

    With `is_quantised` the driver's actions are quantised before they are simulated: the replay is smaller, but not
    bit for bit the lap of `hotlap evaluate`.
    """
    fleet = make_race_fleet(track_id, seed, observation_of(driver))
    driver.begin(fleet, seed)
    laps, stuck = LapCounter(1), StuckDetector(fleet)
    running = np.ones(1, np.bool_)
    actions: list[Actions] = []
    while len(actions) < MAX_TICKS and len(laps.laps) < num_laps and not stuck.is_stuck(len(actions))[0]:
        action = driver.act(fleet.batch.obs)
        if not np.isfinite(action).all():
            raise DriverError(
                f"driver {driver.name}: on tick {len(actions)} its action is not a number. Choose another driver."
            )
        action = quantise(action) if is_quantised else action
        fleet.step(action, autoreset=False)
        laps.add_tick(fleet, running)
        actions.append(action[0].copy())
    if not laps.laps:
        raise DriverError(f"driver {driver.name}: it completed no lap of {track_id}. Choose another driver or track.")
    best = best_lap(laps.laps)
    digest = track_digest(fleet.tracks[0].nodes)
    return Replay(digest, np.stack(actions), best.number, np.float32(best.time_s), seed, is_quantised=is_quantised)


def record_typical_drive(driver: Driver, track_id: str, num_cars: int, lap_s: float | None = None) -> Replay:
    """A standing and a flying lap of a driver with noise, quantised: of `num_cars` drives the one with a typical lap.

    That is the one whose clean flying lap is nearest to `lap_s`, by default the median of all; a DriverError if no car
    completes one. The cars have the noise of the episodes of `hotlap evaluate`.
    """
    fleet = make_race_fleet(track_id, 0, observation_of(driver), num_cars)
    driver.begin(fleet, 0)
    counter, stuck = LapCounter(num_cars), StuckDetector(fleet)
    running = np.ones(num_cars, np.bool_)
    actions: list[Actions] = []
    ends = np.zeros(num_cars, np.int64)
    while running.any() and len(actions) < MAX_TICKS:
        actions.append(quantise(driver.act(fleet.batch.obs)))
        fleet.step(actions[-1], autoreset=False)
        counter.add_tick(fleet, running)
        ends[running] = len(actions)
        running &= ~((fleet.states["lap"] > 2) | stuck.is_stuck(len(actions)))
    flying = [lap for lap in counter.laps if lap.number == 2 and lap.is_clean]
    if not flying:
        raise DriverError(f"driver {driver.name}: no clean flying lap of {track_id}. Choose another driver or track.")
    wanted_s = float(np.median([lap.time_s for lap in flying])) if lap_s is None else lap_s
    typical = min(flying, key=lambda lap: (abs(lap.time_s - wanted_s), lap.car))
    inputs = np.stack([action[typical.car] for action in actions[: ends[typical.car]]])
    digest = track_digest(fleet.tracks[0].nodes)
    return Replay(digest, inputs, typical.number, np.float32(typical.time_s), 0, is_quantised=True)


def find_recorded(driver_id: str, track: Track) -> Replay | None:
    """A driver's laps that ship for a track; None if there are none of this physics and road."""
    content = recorded_drive(driver_id, track.track_id)
    replay = Replay.from_bytes(content) if content else None
    if replay is None or replay.physics != PHYSICS_VERSION or replay.track_digest != track_digest(track.nodes):
        return None
    return replay


def _runs(actions: Actions) -> Iterator[tuple[int, int]]:
    """First tick and number of ticks of each run of equal actions, of at most as many ticks as one step may take."""
    bits = actions.view(np.int32)
    changes = np.flatnonzero((bits[1:] != bits[:-1]).any(axis=1)) + 1
    bounds = [0, *changes.tolist(), len(actions)]
    for begin, end in pairwise(bounds):
        for first in range(begin, end, MAX_REPEAT):
            yield first, min(MAX_REPEAT, end - first)


def _bits(value: float) -> bytes:
    return struct.pack("<f", value)

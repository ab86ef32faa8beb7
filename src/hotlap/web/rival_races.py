"""Races against rivals, driven again to the bit: the person by the replay's inputs, the rivals by their drivers."""

import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import observation_with
from hotlap.errors import DriverError, ReplayError
from hotlap.evaluation.race_replay import RaceReplay
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.sim.vehicle import TICKS_PER_SECOND, car_record
from hotlap.sim.version import RACE_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, load_track
from hotlap.web.drivers import policy_of
from hotlap.web.policy_file import read_policy_bytes
from hotlap.web.race_replay_format import RivalGroup, RivalRace
from hotlap.web.replay_format import MAX_TICKS
from hotlap.web.rival_kernels import (
    CASUAL_VERSION,
    MIND_DTYPE,
    REACTION_S,
    ROAD_DTYPE,
    SEEN_DTYPE,
    drive_casually,
    profile_speeds,
    see,
)

SLOWEST_THROTTLE = 0.86  # of the last of several cars of one driver, as in static/js/rivals.js
GRIP_SHARES = (0.78, 0.68)  # of the first and the last casual driver
CASUAL = "casual"
_PAGE_TICKS = 60 * 60 * 20  # the page's limit of a race, which MAX_TICKS of inputs never reach

PolicyFinder = Callable[[str, str], bytes]  # the policy file of a driver on a track
Floats = NDArray[np.float64]


class RivalPilot(Protocol):
    """Drives some cars of the race."""

    def act(self, actions: NDArray[np.float32]) -> None:
        """Fill the actions of its cars for the next tick."""


def verify_race(race: RivalRace, track_id: str, find_policy: PolicyFinder = policy_of) -> RaceReplay:
    """The race with every car's inputs, as the simulator drives it; a ReplayError if it does not come out as claimed.

    What `hotlap race --replay` writes: `hotlap report` makes a page of it.
    """
    fleet = start_race(race, track_id)
    actions = _drive(race, fleet, make_pilots(race, fleet, find_policy))
    times_s = fleet.entrants["race_time_s"].copy()
    is_same = (times_s.view(np.int32) == race.race_times_s.view(np.int32)) | (
        np.isnan(times_s) & np.isnan(race.race_times_s)
    )
    if not is_same.all():
        wrong = int(np.flatnonzero(~is_same)[0])
        raise ReplayError(
            f"race: it claims that car {wrong} takes {_seconds(race.race_times_s[wrong])}, but re-simulated it takes "
            f"{_seconds(times_s[wrong])}."
        )
    return RaceReplay(
        track=track_id,
        track_digest=race.track_digest,
        laps=race.laps,
        start="grid",
        seed=0,
        drivers=race.names(),
        slots=list(race.slots),
        repeat=1,
        actions=np.stack(actions),
        race_times_s=[None if np.isnan(time_s) else float(time_s) for time_s in times_s],
    )


def start_race(race: RivalRace, track_id: str) -> RaceFleet:
    """The cars on the grid; a ReplayError if the race is of another version or road."""
    if race.race_version != RACE_VERSION:
        raise ReplayError(f"race: it was driven with race version {race.race_version}; this is {RACE_VERSION}.")
    track = load_track(track_id)
    digest = track_digest(track.nodes)
    if digest != race.track_digest:
        raise ReplayError(f"race: it was driven on road {race.track_digest}; that of {track_id} is {digest}.")
    fleet = RaceFleet([track], RacerSettings(), 1, race.num_cars, race.laps, "grid", 1)
    fleet.race_rules["max_ticks"] = _PAGE_TICKS
    fleet.seed(np.zeros(1, np.uint64))
    fleet.entrants["slot"] = race.slots
    fleet.reset()
    return fleet


def _drive(race: RivalRace, fleet: RaceFleet, pilots: Sequence[RivalPilot]) -> list[NDArray[np.float32]]:
    """Drive until the race is over; every tick's inputs of all cars."""
    applied: list[NDArray[np.float32]] = []
    actions = np.zeros((race.num_cars, 3), np.float32)
    while not fleet.entrants["is_over"][0] and len(applied) < MAX_TICKS:
        for pilot in pilots:
            pilot.act(actions)
        # A car whose race is over has left the road: what its driver does has no effect.
        actions[0] = race.actions[len(applied)] if len(applied) < len(race.actions) else 0.0
        fleet.step(actions, autoreset=False)
        applied.append(actions.copy())
    return applied


def make_pilots(race: RivalRace, fleet: RaceFleet, find_policy: PolicyFinder = policy_of) -> list[RivalPilot]:
    """The drivers of the rivals; a ReplayError where one is not here, or is another version."""
    pilots: list[RivalPilot] = []
    first = 1
    for group in race.rivals:
        cars = range(first, first + group.num_cars)
        first += group.num_cars
        if group.driver_id == CASUAL:
            _check_version(group, CASUAL_VERSION)
            pilots.append(CasualRivals(fleet, cars))
        else:
            pilots.append(PolicyRivals(fleet, cars, _find_policy(group, fleet.tracks[0], find_policy)))
    return pilots


def _find_policy(group: RivalGroup, track: Track, find_policy: PolicyFinder) -> bytes:
    try:
        content = find_policy(group.driver_id, track.track_id)
    except DriverError:
        raise ReplayError(f"race: its rival {group.driver_id!r:.80} is not known here.") from None
    _check_version(group, zlib.crc32(content))
    return content


def _check_version(group: RivalGroup, digest: int) -> None:
    if group.digest != digest:
        raise ReplayError(f"race: its rival {group.driver_id!r:.80} is another version here.")


class PolicyRivals:
    """Cars of one policy; each has a limit on its throttle, so that they spread out."""

    def __init__(self, fleet: RaceFleet, cars: range, content: bytes) -> None:
        self._fleet, self._cars = fleet, cars
        self._packed, header = read_policy_bytes(content)
        self._repeat = int(header["action_repeat"])
        self._memory = make_memory(self._packed, len(cars))
        spread = max(len(cars) - 1, 1)
        limits = [1.0 - ((1.0 - SLOWEST_THROTTLE) * number) / spread for number in range(len(cars))]
        self._limits = np.array(limits, np.float32)
        self._observation = observation_with(int(self._packed.shape["num_observations"][0]))
        self._tick = 0

    def act(self, actions: NDArray[np.float32]) -> None:
        """A decision every few ticks, held in between."""
        if self._tick % self._repeat == 0:
            obs = self._fleet.see(self._observation)[self._cars.start : self._cars.stop]
            decide_cars(self._packed, np.ascontiguousarray(obs), self._memory)
        self._tick += 1
        actions[self._cars.start : self._cars.stop] = self._memory.actions
        throttle = actions[self._cars.start : self._cars.stop, 1]
        np.minimum(throttle, self._limits, out=throttle)


class CasualRivals:
    """The page's casual drivers."""

    def __init__(self, fleet: RaceFleet, cars: Sequence[int]) -> None:
        self._fleet = fleet
        track = fleet.tracks[0]
        self._traits = car_record()[0]
        self._road = np.zeros(1, ROAD_DTYPE)[0]
        # The page's data file has the length with three digits.
        self._road["length_m"] = round(track.nodes.length_m, 3)
        self._road["step_m"] = self._road["length_m"] / track.nodes.num_nodes
        self._nodes = _node_columns(track)
        self._minds = np.zeros(len(cars), MIND_DTYPE)
        self._minds["car"] = cars
        self._minds["noise"] = [((car + 1) * 2654435761 + 1) % 2**32 for car in cars]
        self._minds["offset_m"] = fleet.states["lateral_m"][list(cars)]
        self._speeds = np.zeros((len(cars), track.nodes.num_nodes))
        for number in range(len(cars)):
            rank = number / (len(cars) - 1) if len(cars) > 1 else 0.0
            grip_share = GRIP_SHARES[0] + rank * (GRIP_SHARES[1] - GRIP_SHARES[0])
            profile_speeds(self._nodes, self._road, self._traits, grip_share, self._speeds[number])
        self._history = np.zeros((round(REACTION_S * TICKS_PER_SECOND) + 1, len(cars)), SEEN_DTYPE)  # a ring buffer
        for seen in self._history:
            see(fleet.states, self._minds, seen)
        self._next = 0

    def act(self, actions: NDArray[np.float32]) -> None:
        """Act on what was seen one reaction time ago."""
        fleet = self._fleet
        see(fleet.states, self._minds, self._history[self._next])
        self._next = (self._next + 1) % len(self._history)
        seen, road = self._history[self._next], (self._nodes, self._road, self._traits)
        drive_casually(seen, self._minds, self._speeds, *road, fleet.states, fleet.field.poses, actions)


def _node_columns(track: Track) -> Floats:
    """The road as the page reads it from the track's data file: a row of columns per node."""
    nodes = track.ribbon[1]
    x, y, tx, ty = (nodes[name].astype(np.float64) for name in ("x_m", "y_m", "tangent_x", "tangent_y"))

    def edge_m(side: str, sign: float) -> Floats:
        m = sign * nodes[f"road_{side}_m"].astype(np.float64)
        dx = (x - ty * m).astype(np.float32).astype(np.float64) - x
        dy = (y + tx * m).astype(np.float32).astype(np.float64) - y
        length: Floats = np.sqrt(dx * dx + dy * dy)
        return length

    columns = x, y, tx, ty, nodes["curvature_radpm"].astype(np.float64), edge_m("left", 1.0), edge_m("right", -1.0)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _seconds(time_s: np.float32) -> str:
    return "no finish" if np.isnan(time_s) else f"{time_s:.6f} s"

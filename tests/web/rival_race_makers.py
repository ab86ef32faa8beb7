"""Races against rivals for tests: the person's car is driven by the page's casual driver, on the grid of replays."""

import zlib

import numpy as np

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from hotlap.web.drivers import policy_of
from hotlap.web.race_replay_format import RivalGroup, RivalRace
from hotlap.web.replay_format import quantise
from hotlap.web.rival_kernels import CASUAL_VERSION
from hotlap.web.rival_races import CasualRivals, make_pilots, start_race


def _digest_of(driver: str, track_id: str) -> int:
    return CASUAL_VERSION if driver == "casual" else zlib.crc32(policy_of(driver, track_id))


def drive_a_race(track_id: str, *drivers: str, laps: int = 1) -> RivalRace:
    """A race against one car of each driver, the person last on the grid."""
    groups = tuple(RivalGroup(driver, _digest_of(driver, track_id), 1) for driver in drivers)
    slots, count = (len(drivers), *range(len(drivers))), len(drivers) + 1
    digest, nothing = track_digest(load_track(track_id).nodes), np.zeros((1, 3), np.float32)
    race = RivalRace(digest, laps, groups, slots, nothing, np.full(count, np.nan, np.float32))
    fleet = start_race(race, track_id)
    pilots = [CasualRivals(fleet, [0]), *make_pilots(race, fleet)]
    actions, inputs = np.zeros((count, 3), np.float32), []
    while not fleet.entrants["is_over"][0]:
        for pilot in pilots:
            pilot.act(actions)
        actions[0] = quantise(actions[0])
        if fleet.entrants["status"][0] == 0:
            inputs.append(actions[0].copy())
        fleet.step(actions, autoreset=False)
    times_s = fleet.entrants["race_time_s"].copy()
    return RivalRace(digest, laps, groups, slots, np.stack(inputs), times_s)

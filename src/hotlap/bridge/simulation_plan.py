"""What a reset asks for: checked, compared with the simulation that there is, and built."""

from functools import lru_cache

import numpy as np

from hotlap.bridge.protocol import MAX_ENVS, MAX_STEP_TICKS, RACE_OBSERVATION, Reset, decode_config
from hotlap.bridge.race_simulation import RaceSimulation, race_from
from hotlap.bridge.simulation import Simulation, SimulationPlan
from hotlap.config import Range, check_number
from hotlap.envs.fleet import REPEATS, Fleet
from hotlap.envs.race_defaults import RaceStart
from hotlap.envs.race_fleet import CARS_PER_RACE, RaceFleet, check_grid
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import DEFAULT_OBSERVATION
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.tracks.registry import DEFAULT_TRACK

_ABSENT = (b"", b"null")
_NUM_ENVS = Range(1, MAX_ENVS)


@lru_cache(maxsize=32)
def settings_from(config: bytes) -> RacerSettings:
    """The settings in a request's JSON object; cached, so equal bytes are parsed once."""
    return RacerSettings() if config in _ABSENT else RacerSettings.load(decode_config(config))


def build_simulation(plan: SimulationPlan, rng: np.random.Generator) -> Simulation:
    """A new simulation; `rng` draws its seed if its first reset gives none."""
    if plan.race is not None:
        races = RaceFleet(plan.track_ids, plan.settings, 1, plan.num_cars, *plan.race, num_threads=1)
        return RaceSimulation(races, plan, rng)
    fleet = Fleet(plan.track_ids, plan.settings, plan.num_cars, CpuEngine(), plan.observation)
    return Simulation(fleet, plan, rng)


def plan_simulation(request: Reset) -> SimulationPlan:
    """What a reset asks for; raises if it contradicts itself."""
    track_ids = request.track_id if request.track_id is not None else DEFAULT_TRACK
    if isinstance(track_ids, list) and request.num_envs is None:
        raise ConfigError("trackId: a list of tracks needs numEnvs. Name one track, or ask for a batch.")
    if isinstance(track_ids, str):
        track_ids = [track_ids]
    race = None if bytes(request.race) in _ABSENT else _check_race(request, len(track_ids))
    if race is None and request.observation == RACE_OBSERVATION:
        raise ConfigError(f"observation: {RACE_OBSERVATION!r} needs other cars. Ask for a race too.")
    _check_counts(request)
    _check_seed(request)
    observation = DEFAULT_OBSERVATION if request.observation in (None, RACE_OBSERVATION) else request.observation
    return SimulationPlan(track_ids, settings_from(bytes(request.config)), request.num_envs, observation, race)


def _check_race(request: Reset, num_tracks: int) -> tuple[int, RaceStart]:
    """The laps and the start of the race that a reset asks for."""
    race = race_from(bytes(request.race))
    if request.num_envs is None:
        raise ConfigError(f"race: needs numEnvs, the number of its cars, {CARS_PER_RACE}.")
    check_number("numEnvs of a race", request.num_envs, CARS_PER_RACE)
    if num_tracks > 1:
        raise ConfigError(f"trackId: the cars of a race share one road, got {num_tracks} tracks. Name one.")
    if request.start is not None:
        raise ConfigError("start: a race starts from a grid. Leave it out; race.start is 'grid' or 'rolling'.")
    if request.observation not in (None, RACE_OBSERVATION):
        raise ConfigError(f"observation of a race must be {RACE_OBSERVATION!r}, got {request.observation!r}.")
    if isinstance(request.seed, list):
        raise ConfigError(f"seed: a race has one for all its cars, got a list of {len(request.seed)}.")
    if race.grid is not None:
        check_grid(list(race.grid), request.num_envs)
    return race.laps, race.start


def _check_seed(request: Reset) -> None:
    seeds = request.seed if isinstance(request.seed, list) else [request.seed or 0]
    if isinstance(request.seed, list) and len(seeds) != request.num_envs:
        raise ConfigError(f"seed: a list needs one seed for each of the numEnvs cars, got {len(seeds)}.")
    if min(seeds, default=0) < 0:
        raise ConfigError(f"seed must be zero or more, got {min(seeds)}.")


def _check_counts(request: Reset) -> None:
    if request.num_envs is not None:
        check_number("numEnvs", request.num_envs, _NUM_ENVS)
    if request.action_repeat is not None:
        check_number("actionRepeat", request.action_repeat, REPEATS, "ticks")
    num_cars, repeat = request.num_envs or 1, request.action_repeat or 1
    if num_cars * repeat > MAX_STEP_TICKS:
        raise ConfigError(
            f"actionRepeat times numEnvs must be at most {MAX_STEP_TICKS}, got {repeat} times {num_cars}. "
            "Divide the cars over several connections."
        )

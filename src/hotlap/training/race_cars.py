"""The cars of a run that trains in races: the fleet, and the drivers of the cars that do not learn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from hotlap.drivers.driver import BUILT_IN
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.race_fleet import LAPS, RaceFleet
from hotlap.envs.spaces import SEE_GUIDE, action_space
from hotlap.errors import ConfigError, DriverError
from hotlap.learning.cars import Cars
from hotlap.learning.opponents import NamedDriver, Opponents
from hotlap.learning.race_seats import RaceSeats
from hotlap.models.actor import network_shapes
from hotlap.models.model_file import ModelFile, read_model
from hotlap.models.shipped_models import CHAMPION, champion_tracks
from hotlap.runs.find_driver import find_driver_file
from hotlap.runs.run_config import RunConfig
from hotlap.sim.race import START_MIXED
from hotlap.training.model_card import make_card


def make_race_cars(config: RunConfig, num_threads: int | None) -> Cars:
    """The cars that learn, in races with others; a race has a standing or a rolling start and lasts an episode."""
    racer, race, device = config.racer, config.race, torch.device(config.device)
    num_races = config.num_envs // race.num_cars
    fleet = RaceFleet(
        racer.track_ids,
        racer.settings(),
        num_races,
        race.num_cars,
        int(LAPS.high),
        "rolling",
        num_threads,
        racer.observation,
    )
    fleet.race_rules["max_ticks"], fleet.race_rules["start"] = racer.episode.max_ticks, START_MIXED
    tracks = fleet.states["track"][:: race.num_cars].astype(np.int64)
    named = find_opponents(config, [track.track_id for track in fleet.tracks])
    if any(driver.model.card.observation in SEE_GUIDE for driver in named):
        fleet.add_guide()
    opponents = Opponents(race, tracks, device, named, _blank_model(config) if race.league_size else None)
    seats = RaceSeats(fleet, device, racer.action_repeat, race, opponents)
    return Cars(fleet, device, action_repeat=racer.action_repeat, lap_fourier=racer.lap_fourier, races=seats)


def find_opponents(config: RunConfig, track_ids: Sequence[str]) -> list[NamedDriver]:
    """The drivers that `race.opponents` names; a champion is one driver for each of the tracks that has one."""
    found = []
    for name in config.race.opponents:
        if name in BUILT_IN:
            raise ConfigError(
                f"race.opponents: {name} has no weights. Give champion, generalist, a run or a model file."
            )
        places: list[tuple[str, frozenset[int] | None]] = [(track_ids[0], None)]
        if name == CHAMPION:
            homes = champion_tracks()
            places = [(track, frozenset({number})) for number, track in enumerate(track_ids) if track in homes]
        for track_id, numbers in places:
            try:
                model = read_model(find_driver_file(name, track_id))
            except DriverError as error:
                raise ConfigError(f"race.opponents: {error}") from None
            _check_opponent(name, model, config)
            found.append(NamedDriver(f"{name} {track_id}" if numbers else name, model, numbers))
    return found


def _check_opponent(name: str, model: ModelFile, config: RunConfig) -> None:
    if not model.card.is_racer:
        raise ConfigError(f"race.opponents: {name} is a model of {model.card.environment}, not of the racer.")
    if model.card.action_repeat != config.racer.action_repeat:
        raise ConfigError(
            f"race.opponents: {name} decides every {model.card.action_repeat} ticks, this run every "
            f"{config.racer.action_repeat}. Use another driver, or set racer.action_repeat."
        )


def _blank_model(config: RunConfig) -> ModelFile:
    """A model of the run's own shape, whose weights are loaded later."""
    observations = stacked_observation_space(1, config.racer.lap_fourier, config.racer.observation)
    card = make_card(config, (observations, action_space()))
    weights = {name: np.zeros(shape, np.float32) for name, shape in network_shapes(card).items()}
    statistics = {"obs_mean": np.zeros(observations.shape), "obs_var": np.ones(observations.shape)}
    return ModelFile(Path(config.experiment_id), card, weights, statistics if config.normalize.obs else {})

"""Records a dataset, and verifies one by driving it again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotlap._version import __version__
from hotlap.config import Range, check_ranges, convert, setting
from hotlap.datasets.episodes import DRIVER_ACTION, DatasetEpisode, DriveTask, InputDriver, record_episodes
from hotlap.datasets.minari_files import OWN_KEY, DatasetWriter, dataset_folder, read_episodes, read_metadata
from hotlap.datasets.optimal_pace import OptimalPace
from hotlap.datasets.sources import Source, find_sources
from hotlap.drivers.driver import observation_of
from hotlap.envs.settings import StartName
from hotlap.envs.spaces import SEE_OPPONENTS, ObservationName, num_observations
from hotlap.errors import ConfigError, DatasetError
from hotlap.evaluation.evaluate import OnProgress
from hotlap.optimal.reference import find_or_solve_reference
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, load_track, named_tracks

CARS_AT_ONCE = 64  # of one recording; part of the result, since the casual driver's noise depends on it
Notify = Callable[[str], None]


@dataclass(frozen=True)
class RecordingTask:
    """What is recorded: the same task gives the same bytes."""

    drivers: tuple[str, ...]
    tracks: tuple[str, ...] = ()
    episodes: int = setting(10, "Episodes of each driver on each track.", Range(1, 100_000))
    laps: int = setting(1, "Laps of an episode.", Range(1, 1000))
    start: str = "random"
    seed: int = 0
    observation: str | None = None
    noise: float = setting(0.0, "Standard deviation of the noise that is added to the actions.", Range(0.0, 1.0))

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.drivers:
            raise ConfigError("drivers: name at least one.")
        convert(StartName, self.start, "start")
        if self.observation is not None:
            num_observations(self.observation)
        if self.observation in SEE_OPPONENTS:
            raise ConfigError(f"observation: {self.observation!r} needs other cars. Use rays, road or road-2.")


_ALONE: Mapping[str, str] = {"race": "road", "race-2": "road-2"}  # what is left of them without other cars


@dataclass(frozen=True)
class Recorded:
    """What was recorded."""

    folder: Path
    dataset_id: str
    episodes: int
    steps: int
    laps: int
    clean_laps: int
    stuck: int


def default_id(task: RecordingTask) -> str:
    """The id of a dataset that is given none: hotlap/TRACKS/DRIVERS-v0."""
    return "/".join([OWN_KEY, "-".join(task.tracks) or "own-tracks", "-".join(map(_word, task.drivers)) + "-v0"])


def _word(name: str) -> str:
    stem = Path(name).stem if "/" in name or "." in name else name
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in stem).strip("_") or "driver"


def record_dataset(
    task: RecordingTask, root: Path, dataset_id: str, notify: Notify, progress: OnProgress | None = None
) -> Recorded:
    """Drive and write a dataset into `root`."""
    folder = dataset_folder(root, dataset_id)
    track_ids = [track_id for name in task.tracks for track_id in named_tracks(name)]
    sources = [source for name in task.drivers for source in find_sources(name, track_ids, task.start)]
    observation = _common_observation(task, sources)
    laps = clean_laps = stuck = 0
    with DatasetWriter(folder) as writer:
        for index, source in enumerate(sources):

            def show(fraction: float, index: int = index) -> None:
                if progress:
                    progress((index + fraction) / len(sources))

            for episode in _episodes(task, source, observation, notify, show):
                writer.add(episode)
                laps += episode.num_laps
                clean_laps += int(episode.infos["lapClean"].sum())
                stuck += episode.ended_by == "stuck"
        about = _about(task, sources, observation, dataset_id)
        writer.finish(about, observation, sources[0].track.track_id)
        return Recorded(folder, dataset_id, writer.num_episodes, writer.num_steps, laps, clean_laps, stuck)


def _common_observation(task: RecordingTask, sources: list[Source]) -> ObservationName:
    """The observation asked for, else the one of the drivers if they have one in common, else `road`."""
    if task.observation is not None:
        return convert(ObservationName, task.observation, "observation")  # type: ignore[no-any-return]
    own = {observation_of(source.driver) for source in sources}
    [only] = own if len(own) == 1 else ["road"]
    return _ALONE.get(only, only)  # type: ignore[return-value]


def _episodes(
    task: RecordingTask, source: Source, observation: ObservationName, notify: Notify, progress: OnProgress
) -> Iterator[DatasetEpisode]:
    pace = _pace(source.track, notify)
    if source.replay_seed is not None:
        drive = DriveTask(source.track, "line", 0, observation, pace)
        yield from record_episodes(source.driver, drive, [source.replay_seed], progress)
        return
    drive = DriveTask(source.track, convert(StartName, task.start, "start"), task.laps, observation, pace, task.noise)
    for first in range(0, task.episodes, CARS_AT_ONCE):
        seeds = range(task.seed + first, task.seed + min(first + CARS_AT_ONCE, task.episodes))
        yield from record_episodes(source.driver, drive, seeds, progress)


def _pace(track: Track, notify: Notify) -> OptimalPace | None:
    reference = find_or_solve_reference(track, notify)
    return OptimalPace(track, reference) if reference else None


def _about(task: RecordingTask, sources: list[Source], observation: ObservationName, dataset_id: str) -> dict[str, Any]:
    """Minari's metadata of this recording, and under our key what gives the same bytes again."""
    tracks = {source.track.track_id: track_digest(source.track.nodes) for source in sources}
    own = {
        "version": __version__,
        "physics": PHYSICS_VERSION,
        "observation": observation,
        "task": asdict(task),
        "roads": tracks,
        "weights": {f"{one.driver.name} on {one.track.track_id}": one.digest for one in sources if one.digest},
    }
    return {
        "dataset_id": dataset_id,
        "algorithm_name": ", ".join(dict.fromkeys(source.driver.name for source in sources)),
        "author": ["Hotlap"],
        "code_permalink": "",
        "description": f"Drives on {', '.join(tracks)} in the simulator Hotlap, 60 steps a second.",
        "requirements": [f"hotlap=={__version__}"],
        OWN_KEY: own,
    }


def verify_dataset(folder: Path, progress: OnProgress | None = None) -> tuple[int, int]:
    """Drive every episode again from its start and actions; a DatasetError where a number differs in a bit.

    Returns the number of episodes and of steps.
    """
    about = read_metadata(folder)
    own = about[OWN_KEY]
    if own.get("physics") != PHYSICS_VERSION:
        raise DatasetError(
            f"{folder}: was driven with physics {own.get('physics')!r:.40}; this version has {PHYSICS_VERSION}."
        )
    num_episodes = num_steps = 0
    for attributes, columns in read_episodes(folder):
        where = f"{folder}: episode {num_episodes}"
        _compare(where, columns, _drive_again(where, attributes, columns, own.get("observation")))
        num_episodes, num_steps = num_episodes + 1, num_steps + len(columns["actions"])
        if progress:
            progress(num_episodes / max(int(about.get("total_episodes", 0)), num_episodes))
    if (num_episodes, num_steps) != (about.get("total_episodes"), about.get("total_steps")):
        raise DatasetError(
            f"{folder}: its metadata speaks of {about.get('total_episodes')} episodes and {about.get('total_steps')} "
            f"steps; it has {num_episodes} and {num_steps}. Record it again."
        )
    return num_episodes, num_steps


def _drive_again(where: str, attributes: dict[str, Any], columns: dict[str, Any], observation: Any) -> DatasetEpisode:
    missing = {"track", "track_digest", "seed", "options/start"} - set(attributes)
    if missing or columns.get("actions", np.zeros(0)).ndim != 2 or not len(columns["actions"]):
        raise DatasetError(f"{where}: lacks {', '.join(sorted(missing)) or 'actions'}. Record the dataset again.")
    track = load_track(attributes["track"])
    if track_digest(track.nodes) != attributes["track_digest"]:
        raise DatasetError(f"{where}: was driven on another road of the name {track.track_id}. Record it again.")
    reference = find_or_solve_reference(track, lambda _: None)
    pace = OptimalPace(track, reference) if reference else None
    start = convert(StartName, attributes["options/start"], "start")
    task = DriveTask(track, start, 0, convert(ObservationName, observation, "observation"), pace)
    [episode] = record_episodes(InputDriver("inputs", columns["actions"]), task, [int(attributes["seed"])])
    return episode


def _compare(where: str, columns: dict[str, Any], driven: DatasetEpisode) -> None:
    again = {"observations": driven.observations, "actions": driven.actions, "rewards": driven.rewards}
    again |= {f"infos/{name}": column for name, column in driven.infos.items() if name != DRIVER_ACTION}
    for name, column in again.items():
        found = columns.get(name)
        if found is None or found.dtype != column.dtype or found.tobytes() != column.tobytes():
            raise DatasetError(f"{where}: {name} is not what the simulator gives for its start and its actions.")

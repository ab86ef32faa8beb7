"""Who drives in a dataset: drivers by name, runs, model files, replays of people, and the leaderboard's."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hotlap.datasets.episodes import InputDriver
from hotlap.drivers.driver import Driver, make_driver
from hotlap.errors import DatasetError, InputFileError, ReplayError
from hotlap.models.archive import tensors_digest
from hotlap.runs.find_driver import find_driver_model
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, list_tracks, load_track, one_road
from hotlap.web.leaderboard import Leaderboard, leaderboard_path
from hotlap.web.replay_format import MAX_REPLAY_BYTES, Replay
from hotlap.web.replays import find_recorded, simulate

LEADERBOARD = "leaderboard"
REPLAY_ENDING = ".replay"
DEFAULT_TRACK = "track-01"


@dataclass(frozen=True)
class Source:
    """A driver on a track. With `replay_seed` it is one drive from the line, whose inputs are known."""

    driver: Driver
    track: Track
    digest: str | None = None  # of a model's weights
    replay_seed: int | None = None


def find_sources(name: str, track_ids: list[str], start: str) -> Iterator[Source]:
    """The drives that a name means on these tracks; without tracks on the driver's own."""
    if name == LEADERBOARD:
        yield from _people(track_ids)
    elif name.endswith(REPLAY_ENDING):
        yield _replay_file(Path(name), track_ids)
    else:
        for track_id in track_ids or [_own_track(name)]:
            yield _driver(name, load_track(track_id), start)


def _own_track(name: str) -> str:
    model = find_driver_model(name)
    return one_road((model and model.card.track) or DEFAULT_TRACK)


def _driver(name: str, track: Track, start: str) -> Source:
    model = find_driver_model(name, track.track_id)
    recorded = find_recorded(name, track) if name == "optimal" and start == "line" else None
    if recorded is not None:  # solving takes minutes, and another machine's solution has other bits
        return Source(InputDriver(name, recorded.actions), track, replay_seed=recorded.seed)
    return Source(make_driver(name, model), track, tensors_digest(model.weights) if model else None)


def _replay_file(path: Path, track_ids: list[str]) -> Source:
    try:
        with path.open("rb") as file:
            replay = Replay.from_bytes(file.read(MAX_REPLAY_BYTES + 1))
    except OSError as error:
        raise InputFileError(f"{path!s:.200}: cannot be read ({error.strerror}). Name a replay file.") from None
    except ReplayError as error:
        raise ReplayError(f"{path!s:.200}: {error}") from None
    return _replay(path.stem, replay, _road_of(path, replay, track_ids))


def _road_of(path: Path, replay: Replay, track_ids: list[str]) -> Track:
    """The track whose road the replay was driven on: among those named, else among all."""
    for track_id in track_ids or [entry.track_id for entry in list_tracks()]:
        track = load_track(track_id)
        if track_digest(track.nodes) == replay.track_digest:
            return track
    where = "of the tracks named" if track_ids else "track"
    raise ReplayError(f"{path!s:.200}: no {where} has its road {replay.track_digest}. Name or import its track.")


def _replay(name: str, replay: Replay, track: Track) -> Source:
    simulate(replay, track.track_id)  # refuses another physics
    return Source(InputDriver(name, replay.actions), track, replay_seed=replay.seed)


def _people(track_ids: list[str]) -> Iterator[Source]:
    """Every lap of a person on the leaderboard of these tracks, the fastest first."""
    if not leaderboard_path().is_file():
        raise DatasetError(f"{LEADERBOARD}: there is none yet. Drive on the page (`hotlap play`), or name replays.")
    board, found = Leaderboard(leaderboard_path()), 0
    try:
        for track_id in track_ids or [DEFAULT_TRACK]:
            track = load_track(track_id)
            for entry in board.entries(track_id, track_digest(track.nodes)):
                content = board.replay(entry.id)
                if entry.kind == "human" and content is not None:
                    found += 1
                    yield _replay(entry.driver, Replay.from_bytes(content), track)
    finally:
        board.close()
    if not found:
        raise DatasetError(f"{LEADERBOARD}: it has no person's lap of these tracks. Name other tracks or drivers.")

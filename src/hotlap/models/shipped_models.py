"""The drivers that come with the package: a champion for each built-in track, and the generalist for any road."""

from pathlib import Path

from hotlap.errors import DriverError
from hotlap.tracks.registry import list_tracks, split_ids

CHAMPION, GENERALIST = "champion", "generalist"
SHIPPED_NAMES = (CHAMPION, GENERALIST)
SHIPPED_FOLDER = Path(__file__).parent / "shipped"

# How the figures of their cards are measured.
CHAMPION_STARTS, GENERALIST_STARTS, START_SEED = 1000, 40, 7_000_003
FIRST_STARTS = 100  # of a champion's, whose figures its card has, too: they are checked in a second


def shipped_path(name: str, track_id: str) -> Path | None:
    """The model file of a shipped driver for a track; None where there is none."""
    if name == GENERALIST:
        path = SHIPPED_FOLDER / f"{GENERALIST}.zip"
        return path if path.is_file() else None
    has_champion = name == CHAMPION and track_id in champion_tracks()
    return SHIPPED_FOLDER / f"{track_id}.zip" if has_champion else None


def find_shipped(name: str, track_id: str) -> Path:
    """The model file of a shipped driver for a track; a DriverError where there is none."""
    path = shipped_path(name, track_id)
    if path is not None:
        return path
    champions = ", ".join(champion_tracks()) or "no track"
    hint = " The generalist drives any track." if name == CHAMPION and shipped_path(GENERALIST, "") else ""
    raise DriverError(f"driver {name}: none comes with the package for {track_id!r:.80}, only for {champions}.{hint}")


def champion_tracks() -> list[str]:
    """The tracks that have a champion."""
    return sorted(path.stem for path in SHIPPED_FOLDER.glob("*.zip") if path.stem != GENERALIST)


def unseen_tracks() -> list[str]:
    """The tracks that the generalist never saw in training: the test split and the built-in ones."""
    return [*split_ids("test"), *(entry.track_id for entry in list_tracks() if entry.source == "built-in")]

"""The drivers that come with the package: a champion for each built-in track, and the generalist for any road."""

from pathlib import Path

from hotlap.errors import DriverError

SHIPPED_NAMES = ("champion", "generalist")
_FOLDER = Path(__file__).parent / "shipped"


def shipped_path(name: str, track_id: str) -> Path | None:
    """The model file of a shipped driver for a track; None where there is none."""
    path = _FOLDER / ("generalist.zip" if name == "generalist" else f"{Path(track_id).name}.zip")
    return path if name in SHIPPED_NAMES and path.is_file() else None


def find_shipped(name: str, track_id: str) -> Path:
    """The model file of a shipped driver for a track; a DriverError where there is none."""
    path = shipped_path(name, track_id)
    if path is not None:
        return path
    champions = ", ".join(champion_tracks()) or "no track"
    hint = " The generalist drives any track." if name == "champion" and shipped_path("generalist", "") else ""
    raise DriverError(f"driver {name}: none comes with the package for {track_id!r:.80}, only for {champions}.{hint}")


def champion_tracks() -> list[str]:
    """The tracks that have a champion."""
    return sorted(path.stem for path in _FOLDER.glob("*.zip") if path.stem != "generalist")

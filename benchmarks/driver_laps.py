"""Drives every driver that ships and writes its laps: python benchmarks/driver_laps.py --json FILE.json.

The casual and the optimal driver and the champions drive the built-in tracks, the generalist also the test split: as
`hotlap evaluate` measures them, from the starts of the shipped cards. `--picture FILE.png` draws the champion's line on
track-01 beside the optimal one.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.errors import HotlapError
from hotlap.evaluation.baseline import CASUAL_EPISODES
from hotlap.evaluation.evaluate import evaluate
from hotlap.evaluation.lap_comparison import compare
from hotlap.evaluation.telemetry import record_laps
from hotlap.models.shipped_models import (
    CHAMPION,
    CHAMPION_STARTS,
    GENERALIST,
    GENERALIST_STARTS,
    START_SEED,
    champion_tracks,
    unseen_tracks,
)
from hotlap.optimal.reference import Reference, find_reference
from hotlap.reports.model_laps import NUM_LAPS
from hotlap.reports.plots.maps import draw_side_by_side
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import list_tracks, load_track
from results_file import write_results

PICTURE_TRACK = "track-01"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the figures and draw the picture; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="drive all and write the figures")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw the champion's line")
    options = parser.parse_args(arguments)
    if options.json is None and options.picture is None:
        parser.error("nothing to do: give --json, --picture or both")
    try:
        if options.json is not None:
            write_results(writable(options.json), {"tracks": describe_tracks(), "laps": list(drive_all())})
        if options.picture is not None:
            writable(options.picture).write_bytes(draw_champion(PICTURE_TRACK))
    except HotlapError as error:
        print(f"driver_laps: {error}", file=sys.stderr)
        return 2
    return 0


def optimal_lap(track_id: str) -> Reference:
    """The optimal lap of a track, which must be known."""
    found = find_reference(load_track(track_id))
    if found is None:
        raise HotlapError(f"the optimal lap of {track_id} is not known. Solve it: hotlap optimal {track_id}.")
    return found


def describe_tracks() -> dict[str, dict[str, Any]]:
    """Length and optimal laps of every track that ships, by its id."""
    found = {}
    for entry in list_tracks():
        if entry.source not in ("built-in", "train", "test"):
            continue
        track_id, optimum = entry.track_id, optimal_lap(entry.track_id)
        found[track_id] = {
            "name": entry.name,
            "character": entry.character,
            "length_m": load_track(track_id).nodes.length_m,
            "optimal_lap_time_sec": optimum.lap_time_s,
            "optimal_standing_lap_time_sec": optimum.standing_lap_time_s,
            "mesh_change": optimum.mesh_change,
        }
    return found


def drive_all() -> Iterator[dict[str, Any]]:
    """The figures of every driver on every track it is measured on."""
    for track_id in champion_tracks():
        yield measure("casual", track_id, CASUAL_EPISODES)
        yield measure("optimal", track_id, 1)
        yield measure(CHAMPION, track_id, CHAMPION_STARTS, "random")
    for track_id in unseen_tracks():
        yield measure(GENERALIST, track_id, GENERALIST_STARTS, "random")


def measure(driver: str, track_id: str, episodes: int, start: str = "line") -> dict[str, Any]:
    """The figures of a driver on a track, against the optimal lap."""
    print(f"{driver} on {track_id}", file=sys.stderr, flush=True)
    seed = START_SEED if start == "random" else 0
    found = evaluate(find_driver(driver, track_id), track_id, episodes=episodes, start=start, seed=seed)
    return found.against(optimal_lap(track_id).lap_time_s).as_dict()


def draw_champion(track_id: str) -> bytes:
    """The champion's racing line beside the optimal one, as PNG."""
    track, optimum = load_track(track_id), optimal_lap(track_id)
    trace = record_laps(find_driver(CHAMPION, track_id), track_id, num_laps=NUM_LAPS)
    return draw_side_by_side(compare(trace, track, optimum.raceline, optimum.lap_time_s), track, CHAMPION)


if __name__ == "__main__":
    sys.exit(main())

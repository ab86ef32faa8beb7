"""What the README shows of the shipped drivers: python benchmarks/shipped_drivers.py --out docs/pictures.

Prints the tables of the champions and the generalist from their cards, and draws the champion's line on track-01 beside
the optimal one (`champion.png`). The cards are measured by `tools/ship_driver.py`, and a test drives them again.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotlap.cli.output import writable
from hotlap.drivers.driver import make_driver
from hotlap.errors import HotlapError
from hotlap.evaluation.lap_comparison import compare
from hotlap.evaluation.telemetry import record_laps
from hotlap.models.shipped_models import CHAMPION, GENERALIST, SHIPPED_FOLDER, champion_tracks
from hotlap.optimal.reference import find_or_solve_reference
from hotlap.reports.formatting import MISSING, percent, seconds, signed_percent
from hotlap.reports.model_laps import NUM_LAPS
from hotlap.reports.plots.maps import draw_side_by_side
from hotlap.reports.tables import Table, to_markdown
from hotlap.tracks.registry import load_track

PICTURE_NAME, PICTURE_TRACK = "champion.png", "track-01"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and draw the picture; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture; without it none is drawn")
    options = parser.parse_args(arguments)
    print(champion_table())
    print(generalist_table())
    if options.out is None:
        return 0
    try:
        writable(options.out / PICTURE_NAME).write_bytes(draw_champion(PICTURE_TRACK))
    except HotlapError as error:
        print(f"shipped_drivers: {error}", file=sys.stderr)
        return 2
    print(options.out / PICTURE_NAME)
    return 0


def read_card(name: str) -> dict[str, Any]:
    """The card of a shipped model."""
    card: dict[str, Any] = json.loads((SHIPPED_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return card


def champion_table() -> str:
    """One row for each champion, as markdown."""
    rows = []
    for track in champion_tracks():
        figures = read_card(track)["figures"]
        optimum = find_or_solve_reference(load_track(track), lambda text: print(text, file=sys.stderr))
        rows.append(
            [
                f"`{track}`",
                percent(figures["completion_rate"]),
                percent(figures["clean_lap_rate"]),
                seconds(figures["median_lap_time_sec"]),
                seconds(optimum.lap_time_s if optimum else None),
                f"+{100.0 * figures['gap_to_optimal']:.2f} %",
            ]
        )
    return to_markdown(Table(["champion of", "completed", "clean laps", "median lap", "optimal lap", "gap"], rows))


def generalist_table() -> str:
    """The generalist on roads it has never seen: the test split as one row, and each built-in track, as markdown."""
    tracks = read_card(GENERALIST)["figures"]["tracks"]
    groups = {f"{sum(name.startswith('test-') for name in tracks)} tracks of the split `test`": "test-"}
    groups |= {f"`{name}`": name for name in tracks if not name.startswith("test-")}
    rows = []
    for label, prefix in groups.items():
        chosen = [row for name, row in tracks.items() if name.startswith(prefix)]
        gaps = [row["gap_to_optimal"] for row in chosen if row["gap_to_optimal"] is not None]
        rows.append(
            [
                label,
                f"{sum(row['completion_rate'] == 1.0 for row in chosen)} of {len(chosen)}",
                percent(statistics.fmean(row["clean_lap_rate"] or 0.0 for row in chosen)),
                signed_percent(statistics.median(gaps)) if gaps else MISSING,
                signed_percent(max(gaps)) if gaps else MISSING,
            ]
        )
    return to_markdown(
        Table(["generalist on", "completed from every start", "clean laps", "median gap", "worst gap"], rows)
    )


def draw_champion(track_id: str) -> bytes:
    """The champion's racing line beside the optimal one, as PNG."""
    track = load_track(track_id)
    reference = find_or_solve_reference(track, lambda text: print(text, file=sys.stderr))
    trace = record_laps(make_driver(CHAMPION, track_id), track_id, num_laps=NUM_LAPS)
    if reference is None:
        raise HotlapError(f"the optimal lap of {track_id} is not known.")
    return draw_side_by_side(compare(trace, track, reference.raceline, reference.lap_time_s), track, CHAMPION)


if __name__ == "__main__":
    sys.exit(main())

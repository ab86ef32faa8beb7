"""Draws the README's pictures of training runs: python benchmarks/pictures.py RUN… --out docs/pictures.

For the racer: the fastest run's racing line beside the optimum (`learned.png`), and lap times of all seeds
(`learning.png`); for other environments the learning curve of all seeds.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hotlap.atomic_files import writable
from hotlap.errors import HotlapError, ReportError
from hotlap.optimal.reference import find_reference
from hotlap.reports.model_laps import drive_model, fastest_laps, measure_baselines
from hotlap.reports.plots.learning_curves import draw_lap_times, draw_learning_curve
from hotlap.reports.plots.maps import draw_side_by_side
from hotlap.reports.run_loader import read_run
from hotlap.reports.run_record import RunGroup, group_runs
from hotlap.tracks.registry import load_track

LINE_NAME, CURVE_NAME = "learned.png", "learning.png"
DRIVER_NAME = "learned"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the pictures and print their paths; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs of one environment and track")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    options = parser.parse_args(arguments)
    try:
        for name, png in draw_pictures(group_runs([read_run(run) for run in options.runs])).items():
            writable(options.out / name).write_bytes(png)
            print(options.out / name)
    except HotlapError as error:
        print(f"pictures: {error}", file=sys.stderr)
        return 2
    return 0


def draw_pictures(groups: Sequence[RunGroup]) -> dict[str, bytes]:
    """PNGs by file name."""
    records = [record for group in groups for record in group.runs]
    track_id = records[0].track
    if track_id is None:
        curve = draw_learning_curve(groups)
        if curve is None:
            raise ReportError("no run has finished an episode yet. Train longer.")
        return {CURVE_NAME: curve.png}
    track = load_track(track_id)
    reference = find_reference(track)
    fastest = fastest_laps(drive_model(record, track, reference) for record in records)
    curve = draw_lap_times(groups, measure_baselines(track, reference))
    if fastest is None or fastest.comparison is None or curve is None:
        raise ReportError(f"no run has a flying lap on {track_id} to compare with the optimum. Train longer.")
    return {LINE_NAME: draw_side_by_side(fastest.comparison, track, DRIVER_NAME), CURVE_NAME: curve.png}


if __name__ == "__main__":
    sys.exit(main())

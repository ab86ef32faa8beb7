"""Reports on disk: a page and its pictures, on a driver against the optimal lap or on training runs."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hotlap.errors import OutputFileError
from hotlap.evaluation.lap_comparison import compare
from hotlap.evaluation.telemetry import Telemetry
from hotlap.reports.html import Picture
from hotlap.reports.lap_page import render_comparison
from hotlap.reports.model_laps import Drive, Yardsticks, fastest_drive
from hotlap.reports.plots.chart import short_name
from hotlap.reports.plots.lap_charts import draw_comparison, draw_deltas
from hotlap.reports.plots.maps import draw_lines, draw_way
from hotlap.reports.plots.panels import colour_of
from hotlap.reports.plots.training_charts import draw_learning, draw_progress, draw_terms
from hotlap.reports.run_page import Plates, render_run, render_runs
from hotlap.reports.run_record import RunGroup
from hotlap.tracks.files import Raceline
from hotlap.tracks.registry import Track

PAGE_NAME = "report.html"
# Every picture that a report may have.
PICTURE_NAMES = (
    "time-lost.png",
    "delta.png",
    "deltas.png",
    "telemetry.png",
    "line-driver.png",
    "line-optimum.png",
    "learning.png",
    "laps.png",
    "reward-terms.png",
)


def write_report(
    trace: Telemetry, track: Track, raceline: Raceline, optimal_lap_s: float, folder: Path, driver_name: str
) -> Path:
    """Write the page on a driver's best flying lap and its pictures into `folder`; returns the page's path."""
    comparison = compare(trace, track, raceline, optimal_lap_s)
    name = short_name(driver_name)
    with _writing(folder):  # what cannot be written need not be drawn
        folder.mkdir(parents=True, exist_ok=True)
    pictures = draw_comparison(comparison, track, name)
    return _write(folder, render_comparison(comparison, track, name, pictures), pictures)


def write_run_report(
    groups: Sequence[RunGroup],
    drives: Sequence[Drive],
    track: Track | None,
    yardsticks: Yardsticks,
    folder: Path,
) -> Path:
    """Write the page on one run, or on several side by side, and its pictures into `folder`; returns the page's path.

    `drives` has one entry for each run; `track` is the racer's.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    plates = _draw_runs(groups, drives, track, yardsticks)
    is_single = len(drives) == 1
    page = render_run(drives[0], track, plates) if is_single else render_runs(groups, drives, track, plates)
    return _write(folder, page, plates.all)


def _draw_runs(
    groups: Sequence[RunGroup], drives: Sequence[Drive], track: Track | None, yardsticks: Yardsticks
) -> Plates:
    is_racer = track is not None
    training = [
        draw_progress(groups, yardsticks) if is_racer else None,
        draw_learning(groups),
        draw_terms(groups[0]) if is_racer and len(groups) == 1 else None,
    ]
    lines, laps = _draw_drives(drives, track) if track is not None else ([], [])
    return Plates(lines, [picture for picture in training if picture is not None], laps)


def _draw_drives(drives: Sequence[Drive], track: Track) -> tuple[list[Picture], list[Picture]]:
    """Pictures of lines, and of laps against the optimum."""
    if len(drives) == 1:
        [drive] = drives
        name = short_name(drive.record.name)
        if drive.comparison is not None:
            pictures = draw_comparison(drive.comparison, track, name)
            return [one for one in pictures if one.is_half], [one for one in pictures if not one.is_half]
        return ([draw_way(track, drive.trace.line, name)] if drive.trace is not None else []), []
    fastest = fastest_drive(drives)
    if fastest is None or fastest.comparison is None:
        return [], []
    named = [
        (short_name(drive.record.name), colour_of(index), drive.comparison)
        for index, drive in enumerate(drives)
        if drive.comparison is not None
    ]
    return draw_lines(fastest.comparison, track, short_name(fastest.record.name)), [draw_deltas(named)]


def _write(folder: Path, page: str, pictures: Sequence[Picture]) -> Path:
    """Put a page and its pictures into a folder, each whole or not at all.

    The page carries its pictures inside, so it can be sent alone. Pictures of the report that stood there before would
    be taken for part of this one, so they go.
    """
    drafts = folder / f".report.{os.getpid()}.tmp"
    names = [picture.file_name for picture in pictures]
    stale = set(PICTURE_NAMES) - set(names) if (folder / PAGE_NAME).is_file() else set()
    with _writing(folder):
        try:
            drafts.mkdir(exist_ok=True)
            for picture in pictures:
                (drafts / picture.file_name).write_bytes(picture.png)
            (drafts / PAGE_NAME).write_text(page, encoding="utf-8", newline="\n")
            for name in (*names, PAGE_NAME):
                (drafts / name).replace(folder / name)
            for name in stale:
                (folder / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    return folder / PAGE_NAME


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Whatever goes wrong with the files within is said in one line."""
    try:
        yield
    except OSError as error:
        raise OutputFileError(
            f"{folder}: the report cannot be written ({error.strerror or error}). Choose another folder."
        ) from None

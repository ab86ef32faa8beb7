"""Writes reports to disk: a page and its pictures, on a lap, on many roads, on a race, on a league, or on runs."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hotlap.errors import OutputFileError
from hotlap.evaluation.lap_comparison import Comparison
from hotlap.evaluation.league import League
from hotlap.evaluation.race_replay import RaceReplay
from hotlap.evaluation.races import RaceCounts
from hotlap.reports.formatting import counted
from hotlap.reports.html import PAGE_NAME, Picture
from hotlap.reports.model_laps import Baselines, ModelLaps, fastest_laps
from hotlap.reports.pages.lap_page import render_comparison
from hotlap.reports.pages.league_page import render_league
from hotlap.reports.pages.race_page import render_race
from hotlap.reports.pages.roads_page import render_roads
from hotlap.reports.pages.run_page import RunPictures, render_run, render_runs
from hotlap.reports.plots.chart import short_name
from hotlap.reports.plots.lap_charts import draw_comparison, draw_deltas
from hotlap.reports.plots.league_chart import draw_league
from hotlap.reports.plots.learning_curves import draw_lap_times, draw_learning_curve, draw_reward_terms
from hotlap.reports.plots.maps import draw_path, draw_racing_lines, draw_road
from hotlap.reports.plots.panels import colour_of
from hotlap.reports.plots.race_chart import RaceHistory, draw_race_chart
from hotlap.reports.road_laps import RoadLaps
from hotlap.reports.run_record import RunGroup
from hotlap.tracks.registry import Track

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
    "gaps.png",
    "league.png",
)
ROAD_PICTURES = "road-[0-9][0-9]-*.png"  # those of a report on roads


def write_lap_report(comparison: Comparison, track: Track, folder: Path, driver_name: str) -> Path:
    """Write the page on a driver's lap and its pictures into `folder`; returns the page's path."""
    name = short_name(driver_name)
    _make_folder(folder)  # fails before anything is drawn
    pictures = draw_comparison(comparison, track, name)
    return _write(folder, render_comparison(comparison, track, name, pictures), pictures)


def write_road_report(roads: Sequence[RoadLaps], folder: Path, driver_name: str, notes: Sequence[str]) -> Path:
    """Write the page on a driver's roads and their maps into `folder`; returns the page's path."""
    name = short_name(driver_name)
    _make_folder(folder)
    pictures = [
        draw_road(road.track, road.trace, road.failures, name, f"road-{number:02d}-{road.track.track_id}.png")
        for number, road in enumerate(roads, start=1)
    ]
    return _write(folder, render_roads(roads, pictures, name, notes), pictures)


def write_race_report(replay: RaceReplay, counts: RaceCounts, history: RaceHistory, track: Track, folder: Path) -> Path:
    """Write the page on a race and its picture into `folder`; returns the page's path."""
    _make_folder(folder)
    names = [short_name(name) for name in replay.drivers]
    png = draw_race_chart(history, names, counts.positions[0], f"{track.name}, {counted(replay.laps, 'lap')}")
    caption = "Each car's gap to the winner along the race; where a line ends, the car was out."
    picture = Picture("gaps.png", "Gaps", caption, png, is_chart=True)
    return _write(folder, render_race(replace(replay, drivers=names), counts, track, picture), [picture])


def write_league_report(league: League, folder: Path) -> Path:
    """Write the page on a league and its picture into `folder`; returns the page's path."""
    _make_folder(folder)
    png = draw_league(league, [short_name(one.driver) for one in league.drivers])
    picture = Picture("league.png", "Ratings", "Each driver's Elo with its 95 % interval.", png, is_chart=True)
    return _write(folder, render_league(league, picture), [picture])


def write_run_report(
    groups: Sequence[RunGroup], laps: Sequence[ModelLaps], track: Track | None, baselines: Baselines, folder: Path
) -> Path:
    """Write the page on one run or several and its pictures into `folder`; returns the page's path.

    `laps` has one entry per run; `track` is None for other environments than the racer.
    """
    _make_folder(folder)
    pictures = _draw_runs(groups, laps, track, baselines)
    page = render_run(laps[0], track, pictures) if len(laps) == 1 else render_runs(groups, laps, track, pictures)
    return _write(folder, page, pictures.all)


def _draw_runs(
    groups: Sequence[RunGroup], laps: Sequence[ModelLaps], track: Track | None, baselines: Baselines
) -> RunPictures:
    is_racer = track is not None
    training = [
        draw_lap_times(groups, baselines) if is_racer else None,
        draw_learning_curve(groups),
        draw_reward_terms(groups[0]) if is_racer and len(groups) == 1 else None,
    ]
    lines, lap_charts = _draw_laps(laps, track) if track is not None else ([], [])
    return RunPictures(lines, [picture for picture in training if picture is not None], lap_charts)


def _draw_laps(laps: Sequence[ModelLaps], track: Track) -> tuple[list[Picture], list[Picture]]:
    """Pictures of racing lines, and of laps compared with the optimum."""
    if len(laps) == 1:
        [only] = laps
        name = short_name(only.record.name)
        if only.comparison is not None:
            pictures = draw_comparison(only.comparison, track, name)
            return [one for one in pictures if one.is_half], [one for one in pictures if not one.is_half]
        return ([draw_path(track, only.trace.line, name)] if only.trace is not None else []), []
    fastest = fastest_laps(laps)
    if fastest is None or fastest.comparison is None:
        return [], []
    named = [
        (short_name(one.record.name), colour_of(index), one.comparison)
        for index, one in enumerate(laps)
        if one.comparison is not None
    ]
    return draw_racing_lines(fastest.comparison, track, short_name(fastest.record.name)), [draw_deltas(named)]


def _make_folder(folder: Path) -> None:
    with _explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _write(folder: Path, page: str, pictures: Sequence[Picture]) -> Path:
    """Write a page and its pictures, each file completely or not at all.

    The page embeds its pictures, so it can be sent alone. Pictures of an earlier report that this one does not have
    are deleted.
    """
    drafts = folder / f".report.{os.getpid()}.tmp"
    names = [picture.file_name for picture in pictures]
    stale: set[str] = set()
    if (folder / PAGE_NAME).is_file():
        stale = {*PICTURE_NAMES, *(path.name for path in folder.glob(ROAD_PICTURES))} - set(names)
    with _explain_os_errors(folder):
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
def _explain_os_errors(folder: Path) -> Iterator[None]:
    """Raise an OSError from the block as an OutputFileError."""
    try:
        yield
    except OSError as error:
        raise OutputFileError(
            f"{folder}: the report cannot be written ({error.strerror or error}). Choose another folder."
        ) from None

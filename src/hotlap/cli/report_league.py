"""`hotlap report races`: a page on a league of drivers."""

from collections.abc import Sequence
from pathlib import Path

from hotlap.atomic_files import writable
from hotlap.cli.output import counted, print_json, progress_bar
from hotlap.errors import ConfigError

LEAGUE = "races"  # what the command calls it
LEAGUE_RACES = 60


def report_league(
    drivers: Sequence[str], out: Path | None, track: str | None, num_races: int, seed: int, as_json: bool
) -> None:
    """Race the drivers, or all that come with Hotlap, on a track or on those that are built in, and write the page."""
    from hotlap.evaluation.league import CARS_PER_DRIVER, LEAGUE_DRIVERS, drive_league
    from hotlap.models.shipped_models import champion_tracks
    from hotlap.reports.html import PAGE_NAME
    from hotlap.reports.pages.league_page import league_table, pair_table
    from hotlap.reports.pages.report import write_league_report
    from hotlap.reports.tables import to_text
    from hotlap.runs.race_entries import find_entries

    if out is None:
        raise ConfigError("--out: the report on races needs a folder. Name one.")
    names = drivers or LEAGUE_DRIVERS
    written = [name if "*" in name else f"{name}*{CARS_PER_DRIVER}" for name in names]
    tracks = champion_tracks() if track is None else [track]
    writable(out / PAGE_NAME)
    with progress_bar(f"{counted(num_races, 'race')} on {', '.join(tracks)}") as progress:
        league = drive_league(
            lambda road: find_entries(written, road), tracks, num_races=num_races, seed=seed, progress=progress
        )
    page = write_league_report(league, out)
    if as_json:
        print_json({**league.as_dict(), "page": str(page)})
        return
    print(to_text(league_table(league.drivers)), end="")
    print()
    print(to_text(pair_table([one.driver for one in league.drivers], league.pairs)), end="")
    print(f"page: {page}")

"""The page on a league: who is better, by how much, and how rough its races are."""

from collections.abc import Sequence
from html import escape

from hotlap.evaluation.league import League
from hotlap.evaluation.race_results import DriverResult, PairResult
from hotlap.reports.formatting import counted, percent, whole
from hotlap.reports.html import Picture, render_document, render_headline, render_pictures, render_table
from hotlap.reports.tables import Table

_RATED = ("driver", "Elo", "95 % interval", "wins", "position", "finished")
HEADS = (*_RATED, "contacts/km", "at fault/km", "hard/km", "overtakes/race", "clean")


def league_table(drivers: Sequence[DriverResult]) -> Table:
    """A row for each driver."""
    return Table(list(HEADS), [_row(one) for one in drivers])


def _row(one: DriverResult) -> list[str]:
    return [
        one.driver,
        whole(one.elo),
        f"{whole(one.elo_low)} to {whole(one.elo_high)}",
        percent(one.win_rate),
        f"{one.mean_position:.2f}",
        percent(one.finish_rate),
        *(
            f"{value:.3f}"
            for value in (one.contacts_per_km, one.at_fault_contacts_per_km, one.hard_at_fault_contacts_per_km)
        ),
        f"{one.overtakes_per_race:.1f}",
        percent(one.clean_overtake_rate),
    ]


def pair_table(labels: Sequence[str], pairs: Sequence[PairResult]) -> Table:
    """How often the driver of a row came in ahead of that of a column."""
    rates = {(pair.driver, pair.against): pair.ahead_rate for pair in pairs}
    rows = [[one, *(percent(rates.get((one, other))) for other in labels)] for one in labels]
    return Table(["ahead of", *labels], rows)


def track_table(league: League) -> Table:
    """A row for each driver and its Elo and wins on each track."""
    heads = ["driver", *(f"{text} {one.track}" for one in league.by_track for text in ("Elo", "wins"))]
    found = {(one.track, row.driver): row for one in league.by_track for row in one.drivers}
    rows = []
    for driver in league.drivers:
        own = [found[one.track, driver.driver] for one in league.by_track]
        rows.append([driver.driver, *(text for row in own for text in (whole(row.elo), percent(row.win_rate)))])
    return Table(heads, rows)


def render_league(league: League, picture: Picture) -> str:
    """The page's HTML. All text is escaped."""
    title = f"{counted(len(league.drivers), 'driver')} in {counted(league.races, 'race')}"
    labels = [one.driver for one in league.drivers]
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(describe(league))}</p>",
        render_headline(_headline(league)),
        f'<section class="card"><h2>League table</h2>{render_table(league_table(league.drivers))}</section>',
        *render_pictures([picture]),
        '<section class="card"><h2>In pairs</h2><p>How often a car of the row’s driver came in ahead of one of the '
        f"column’s.</p>{render_table(pair_table(labels, league.pairs))}</section>",
    ]
    if len(league.tracks) > 1:
        body.append(f'<section class="card"><h2>By track</h2>{render_table(track_table(league))}</section>')
    body.append(
        "<footer>Elo: 400 points more mean ahead ten times for each time behind; the drivers' mean is 1,500. Intervals "
        "are from races drawn anew. A contact closes in at more than 0.5 m/s, a hard one is at fault and closes in at "
        "more than 4 m/s; contacts of two cars within half a second are one.</footer>"
    )
    return render_document(title, body)


def describe(league: League) -> str:
    """The races in a line."""
    cars = counted(sum(one.cars for one in league.drivers), "car")
    return (
        f"Races of {cars} and {counted(league.laps, 'lap')} on {', '.join(league.tracks)}, {league.start} start, "
        f"seed {league.seed}. The grid turns by a slot a race."
    )


def _headline(league: League) -> list[tuple[str, str]]:
    best = league.drivers[0]
    cleanest = min(league.drivers, key=lambda one: one.at_fault_contacts_per_km)
    lead = best.elo - league.drivers[1].elo
    return [
        ("best rated", best.driver),
        ("Elo ahead of the next", whole(lead)),
        ("cleanest", cleanest.driver),
        ("its contacts at fault a km", f"{cleanest.at_fault_contacts_per_km:.3f}"),
    ]

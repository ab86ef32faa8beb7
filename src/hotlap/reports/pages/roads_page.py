"""The page on how a driver drives many roads: a table, and for each road a map and where time is lost."""

from collections.abc import Sequence
from html import escape

from hotlap.reports.formatting import MISSING, counted, percent, seconds, signed_percent
from hotlap.reports.html import Picture, render_document, render_headline, render_image, render_note, render_table
from hotlap.reports.pages.lap_page import ABOUT_OPTIMUM, render_corner_table, summarise_lap
from hotlap.reports.road_laps import (
    NOT_SOLVED,
    RoadLaps,
    RoadsSummary,
    describe_failures,
    gap_text,
    road_table,
    summarise_roads,
)


def render_roads(
    roads: Sequence[RoadLaps], pictures: Sequence[Picture], driver_name: str, notes: Sequence[str] = ()
) -> str:
    """The page's HTML, with one picture for each road. All text is escaped."""
    summary = summarise_roads([road.figures for road in roads])
    title = f"{driver_name} on {counted(len(roads), 'road')}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(str(summary))}.</p>",
        *map(render_note, notes),
        render_headline(_headline(summary, roads)),
        f'<section class="card"><h2>The roads</h2><p>{escape(_about(roads))}</p>',
        f"{render_table(road_table(roads))}</section>",
        '<div class="pair">',
        *(_render_road(road, picture) for road, picture in zip(roads, pictures, strict=True)),
        "</div>",
        f"<footer>{ABOUT_OPTIMUM}</footer>",
    ]
    return render_document(title, body)


def _headline(summary: RoadsSummary, roads: Sequence[RoadLaps]) -> list[tuple[str, str]]:
    starts = sum(road.figures.completion_rate for road in roads) / len(roads)
    gaps = [MISSING if gap is None else signed_percent(gap) for gap in (summary.median_gap, summary.worst_gap)]
    return [
        ("completed from every start", f"{summary.num_completed} of {summary.num_tracks}"),
        ("starts completed", percent(starts)),
        ("median gap to the optimum", gaps[0]),
        ("worst gap", gaps[1]),
    ]


def _about(roads: Sequence[RoadLaps]) -> str:
    """How the figures were measured."""
    figures = roads[0].figures
    text = (
        f"On each road {counted(figures.episodes, 'random start')}, seed {figures.seed}: the rest of the lap, then a "
        "flying lap. Lap times and gaps are those of the median clean flying lap."
    )
    unknown = any(road.optimal_lap_s is None for road in roads)
    return text + (f" “{NOT_SOLVED}”: the optimal lap is not known; --solve solves it." if unknown else "")


def _render_road(road: RoadLaps, picture: Picture) -> str:
    """A card: half the page wide, or all of it where time lost is known."""
    figures = road.figures
    facts = [
        f"{road.track.nodes.length_m:,.0f} m",
        f"completed {percent(figures.completion_rate)}",
        f"clean laps {percent(figures.clean_lap_rate)}",
        f"median lap {seconds(figures.median_lap_time_sec)}",
        f"gap {gap_text(road)}",
    ]
    lines = [" · ".join(fact.replace(" ", "\u00a0") for fact in facts), describe_failures(road)]
    content = render_image(picture)
    if road.comparison is not None:
        lines.insert(1, f"Best lap from the line: {summarise_lap(road.comparison)}")
        content = f'<div class="pair">{content}{render_corner_table(road.comparison)}</div>'
    text = "".join(f"<p>{escape(line)}</p>" for line in lines if line)
    kind = "card whole" if road.comparison is not None else "card"
    return f'<section class="{kind}"><h2>{escape(road.track.name)}</h2>{text}{content}</section>'

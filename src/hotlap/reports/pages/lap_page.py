"""The page on a driver's lap: the gap to the optimum, and where time is lost."""

from html import escape

from hotlap.evaluation.lap_comparison import Comparison, Sector
from hotlap.reports.formatting import seconds, signed, signed_percent, whole_percent
from hotlap.reports.html import CHIPS, Picture, render_document, render_headline, render_note, render_pictures
from hotlap.tracks.registry import Track

ABOUT_OPTIMUM = (
    "The optimum is the fastest flying lap that an optimiser found for the same car and road. "
    "Times are compared at equal distance along the centreline."
)


def render_comparison(comparison: Comparison, track: Track, driver_name: str, pictures: list[Picture]) -> str:
    """The page's HTML. All text is escaped."""
    body = [
        f"<h1>Where {escape(driver_name)} loses time on {escape(track.name)}</h1>",
        f"<p>{escape(summarise_lap(comparison))}</p>",
        *render_lap_warnings(comparison),
        render_headline(lap_figures(comparison, driver_name)),
        *render_pictures(pictures[:1]),
        render_corners(comparison),
        *render_pictures(pictures[1:]),
        render_footer(comparison, track),
    ]
    return render_document(f"{driver_name} on {track.name}", body)


def summarise_lap(comparison: Comparison) -> str:
    """The time lost and the corner where most of it is lost."""
    total_s = float(comparison.delta_s[-1])
    worst = comparison.sectors[0]
    if worst.lost_s < 0.005:
        return "No time is lost in any corner."
    text = f"{seconds(total_s)} a lap behind the optimum" if total_s >= 0.005 else "Not behind the optimum"
    return f"{text}. Most time is lost in {worst.label}: {seconds(worst.lost_s)}."


def render_lap_warnings(comparison: Comparison) -> list[str]:
    """A note if the lap was not clean."""
    if comparison.lap.is_clean:
        return []
    return [render_note("No flying lap was clean. In this one the car left the road or touched a wall.")]


def lap_figures(comparison: Comparison, driver_name: str) -> list[tuple[str, str]]:
    """The lap in four figures: names as HTML, values as text."""
    return [
        (f"{CHIPS['driver']}{escape(driver_name)}, best flying lap", seconds(comparison.lap.time_s)),
        (f"{CHIPS['optimum']}optimum", seconds(comparison.optimal_lap_s)),
        ("gap", signed_percent(comparison.gap)),
        ("time lost", f"{signed(float(comparison.delta_s[-1]))} s"),
    ]


def render_footer(comparison: Comparison, track: Track) -> str:
    """The track, and how its optimum was found."""
    return f"<footer>{escape(track.track_id)}, {comparison.arc_m[-1]:.0f} m. {ABOUT_OPTIMUM}</footer>"


def render_corners(comparison: Comparison) -> str:
    """The card with the table of the corners."""
    return (
        '<section class="card"><h2>Time lost, corner by corner</h2>'
        "<p>Each corner counts from halfway after the previous one to halfway before the next.</p>"
        f"{render_corner_table(comparison)}</section>"
    )


def render_corner_table(comparison: Comparison) -> str:
    """A table of the corners, the most time lost first, each with a bar."""
    total_s = float(comparison.delta_s[-1])
    most_s = max(max(abs(sector.lost_s) for sector in comparison.sectors), 1e-9)
    heads = (
        ("", "corner"),
        ("number", "lost"),
        ("number extra", "fraction"),
        ("number extra", f"{CHIPS['driver']}slowest"),
        ("number extra", f"{CHIPS['optimum']}slowest"),
        ("", ""),
    )
    head = "".join(f'<th class="{kind}">{text}</th>' for kind, text in heads)
    rows = "\n".join(_row(sector, total_s, most_s) for sector in comparison.sectors)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _row(sector: Sector, total_s: float, most_s: float) -> str:
    colour = "loss" if sector.lost_s > 0.0 else "gain"
    cells = (
        ("", escape(sector.label)),
        ("number", f"{signed(sector.lost_s)} s"),
        ("number extra", whole_percent(sector.lost_s / total_s) if total_s > 0.005 else ""),
        ("number extra", f"{3.6 * sector.driver_slowest_mps:.0f} km/h"),
        ("number extra", f"{3.6 * sector.optimal_slowest_mps:.0f} km/h"),
        ("wide", f'<div class="bar" style="width:{_width(sector, most_s)};background:var(--{colour})"></div>'),
    )
    return "<tr>" + "".join(f'<td class="{kind}">{text}</td>' for kind, text in cells) + "</tr>"


def _width(sector: Sector, most_s: float) -> str:
    return f"{100.0 * abs(sector.lost_s) / most_s:.1f}%"

"""The report's page: one HTML file with everything inside, readable offline, on a phone, by day and by night."""

from base64 import b64encode
from dataclasses import dataclass
from html import escape

from hotlap.evaluation.comparison import Comparison, Sector
from hotlap.tracks.registry import Track

# Of the pictures and the page alike: none of them is on the scale of speeds but for the red, which means slow there.
PAGE_COLOURS = {"driver": "#ffc640", "optimum": "#b08cff", "loss": "#ff4b4b", "gain": "#3fbf72"}

_STYLE = """
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --text: #14181f; --faint: #5b6672; --rule: #dde1e6;
  --driver: DRIVER; --optimum: OPTIMUM; --loss: LOSS; --gain: GAIN; }
@media (prefers-color-scheme: dark) { :root { --page: #0e1116; --card: #14181f; --text: #eef1f4; --faint: #93a0ad;
  --rule: #2b323c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: clamp(1.5rem, 5vw, 2.2rem); line-height: 1.15; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 2px; overflow-wrap: anywhere; }
p { margin: 0; color: var(--faint); }
.note { margin-top: 10px; padding: 8px 12px; border-left: 4px solid var(--loss); background: var(--card); }
.figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin: 22px 0; }
.card, .figures > div { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; }
.figures > div { padding: 12px 16px; }
.figures dt { color: var(--faint); font-size: .82rem; overflow-wrap: anywhere; }
.figures dd { margin: 0; font-size: 1.6rem; font-weight: 700; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chip { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em; }
.card { padding: 16px; margin: 0 0 18px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; }
.scroll { overflow-x: auto; margin-top: 12px; border-radius: 8px; background: #14181f; }
img { display: block; width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; margin-top: 10px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--faint); font-size: .82rem; padding: 4px 8px 4px 0; }
td { border-top: 1px solid var(--rule); padding: 7px 8px 7px 0; white-space: nowrap; }
th.number, td.number { text-align: right; padding-right: 16px; }
td.wide { width: 40%; }
.bar { height: 12px; border-radius: 6px; min-width: 2px; }
footer { color: var(--faint); font-size: .82rem; }
@media (max-width: 760px) { main { padding: 20px 12px 36px; } .figures { grid-template-columns: 1fr 1fr; gap: 8px; }
  .figures dd { font-size: 1.3rem; } .pair { grid-template-columns: 1fr; gap: 0; } .card { padding: 12px; }
  td.wide { width: 34%; } img.chart { min-width: 640px; }
  .extra { display: none; } }
"""

_CHIPS = {name: f'<span class="chip" style="background:var(--{name})"></span>' for name in ("driver", "optimum")}

_FOOTER = (
    "The optimum is the fastest flying lap that an optimiser found for the same car and road. "
    "Times are compared at equal distance along the centreline."
)


@dataclass(frozen=True)
class Picture:
    """A PNG with its heading and caption."""

    file_name: str
    title: str
    caption: str
    png: bytes
    is_half: bool = False  # stands beside another where there is room
    is_chart: bool = False  # wider than tall: may be scrolled sideways on a phone


def render_page(comparison: Comparison, track: Track, driver_name: str, pictures: list[Picture]) -> str:
    """The page's HTML. All text is escaped; nothing is fetched from anywhere."""
    driver, place = escape(driver_name), escape(track.name)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{driver} on {place} · hotlap</title>",
            f"<style>{_coloured(_STYLE)}</style>",
            "</head>",
            "<body><main>",
            f"<h1>Where {driver} loses time on {place}</h1>",
            f"<p>{_summary(comparison)}</p>",
            *_warning(comparison),
            _headline(comparison, driver),
            *_figures(pictures[:1]),
            _table(comparison),
            *_figures(pictures[1:]),
            f"<footer>{escape(track.track_id)}, {comparison.arc_m[-1]:.0f} m. {_FOOTER}</footer>",
            "</main></body>",
            "</html>",
            "",
        ]
    )


def signed(lost_s: float) -> str:
    """Time lost (s) with its sign: +1.84."""
    return f"{lost_s + 0.0:+.2f}".replace("-", "−")


def _coloured(style: str) -> str:
    for name, colour in PAGE_COLOURS.items():
        style = style.replace(f": {name.upper()};", f": {colour};")
    return style


def _summary(comparison: Comparison) -> str:
    """One sentence: how much, and where most of it goes."""
    total_s = float(comparison.delta_s[-1])
    worst = comparison.sectors[0]
    if worst.lost_s < 0.005:
        return "Nothing is lost in any corner."
    text = f"{total_s:.2f} s a lap behind the optimum" if total_s > 0.0 else "Not behind the optimum"
    return escape(f"{text}. The costliest corner is {worst.label}: {worst.lost_s:.2f} s lost.")


def _warning(comparison: Comparison) -> list[str]:
    if comparison.lap.is_clean:
        return []
    return ['<p class="note">This lap was not clean: the car left the road or touched a wall. No flying lap was.</p>']


def _headline(comparison: Comparison, driver: str) -> str:
    figures = (
        (f"{_CHIPS['driver']}{driver}, best flying lap", f"{comparison.lap.time_s:.2f} s"),
        (f"{_CHIPS['optimum']}optimum", f"{comparison.optimal_lap_s:.2f} s"),
        ("gap", f"{100.0 * comparison.gap:+.1f} %".replace("-", "−")),
        ("time lost", f"{signed(float(comparison.delta_s[-1]))} s"),
    )
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="figures">{cells}</dl>'


def _table(comparison: Comparison) -> str:
    """Corners, the costliest first, each with a bar."""
    total_s = float(comparison.delta_s[-1])
    most_s = max(max(abs(sector.lost_s) for sector in comparison.sectors), 1e-9)
    heads = (
        ("", "corner"),
        ("number", "lost"),
        ("number extra", "of all"),
        ("number extra", f"{_CHIPS['driver']}slowest"),
        ("number extra", f"{_CHIPS['optimum']}slowest"),
        ("", ""),
    )
    head = "".join(f'<th class="{kind}">{text}</th>' for kind, text in heads)
    rows = "\n".join(_row(sector, total_s, most_s) for sector in comparison.sectors)
    return (
        '<section class="card"><h2>Time lost, corner by corner</h2>'
        "<p>Each from halfway after the corner before to halfway before the next.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></section>"
    )


def _row(sector: Sector, total_s: float, most_s: float) -> str:
    colour = "loss" if sector.lost_s > 0.0 else "gain"
    cells = (
        ("", escape(sector.label)),
        ("number", f"{signed(sector.lost_s)} s"),
        ("number extra", f"{100.0 * sector.lost_s / total_s:.0f} %" if total_s > 0.005 else ""),
        ("number extra", f"{3.6 * sector.driver_slowest_mps:.0f} km/h"),
        ("number extra", f"{3.6 * sector.optimal_slowest_mps:.0f} km/h"),
        ("wide", f'<div class="bar" style="width:{_width(sector, most_s)};background:var(--{colour})"></div>'),
    )
    return "<tr>" + "".join(f'<td class="{kind}">{text}</td>' for kind, text in cells) + "</tr>"


def _width(sector: Sector, most_s: float) -> str:
    return f"{100.0 * abs(sector.lost_s) / most_s:.1f}%"


def _figures(pictures: list[Picture]) -> list[str]:
    """Pictures one under another; halves in pairs."""
    whole = [_figure(picture) for picture in pictures if not picture.is_half]
    halves = [_figure(picture) for picture in pictures if picture.is_half]
    return whole + (['<div class="pair">', *halves, "</div>"] if halves else [])


def _figure(picture: Picture) -> str:
    data = b64encode(picture.png).decode("ascii")
    kind = ' class="chart"' if picture.is_chart else ""
    return (
        f'<section class="card"><h2>{escape(picture.title)}</h2><p>{escape(picture.caption)}</p><div class="scroll">'
        f'<img{kind} alt="{escape(picture.title)}" src="data:image/png;base64,{data}"></div></section>'
    )

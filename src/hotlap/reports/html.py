"""The HTML of a report page: one self-contained file, for phones and desktops, in light and dark mode."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from hotlap.reports.tables import Table

PAGE_NAME = "report.html"
# Shared by the pictures and the page. Only the red also occurs on the colour scale of speeds, where it means slow.
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
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 18px; }
.pair > .whole { grid-column: 1 / -1; } .whole > .pair > table { align-self: start; }
.whole .extra { display: none; }
.scroll { overflow-x: auto; margin-top: 12px; border-radius: 8px; background: #14181f; }
.sideways { overflow-x: auto; }
img { display: block; width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; margin-top: 10px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--faint); font-size: .82rem; padding: 4px 8px 4px 0; }
td { border-top: 1px solid var(--rule); padding: 7px 8px 7px 0; white-space: nowrap; }
th.number, td.number { text-align: right; padding-right: 16px; }
td.wide { width: 40%; }
tr.sum td { font-weight: 700; background: var(--page); }
tr.sum td:first-child, td.name { padding-left: 8px; } th.name { padding-left: 8px; }
section h3 { font-size: 1rem; margin: 14px 0 0; }
.bar { height: 12px; border-radius: 6px; min-width: 2px; }
main > p + section { margin-top: 22px; }
details.card summary { cursor: pointer; font-weight: 600; }
footer { color: var(--faint); font-size: .82rem; }
@media (max-width: 760px) { main { padding: 20px 12px 36px; } .figures { grid-template-columns: 1fr 1fr; gap: 8px; }
  .figures dd { font-size: 1.3rem; } .pair { grid-template-columns: 1fr; } .card { padding: 12px; }
  td.wide { width: 34%; } img.chart { min-width: 640px; }
  .extra { display: none; } }
"""


CHIPS = {name: f'<span class="chip" style="background:var(--{name})"></span>' for name in ("driver", "optimum")}


@dataclass(frozen=True)
class Picture:
    """A PNG with its heading and caption."""

    file_name: str
    title: str
    caption: str
    png: bytes
    is_half: bool = False  # half the page width, beside the next half
    is_chart: bool = False  # wider than tall: scrolls sideways on a phone


def render_document(title: str, body: Iterable[str]) -> str:
    """The whole page; `title` is text, `body` is HTML. The page loads nothing from the network."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)} · hotlap</title>",
            f"<style>{_fill_colours(_STYLE)}</style>",
            "</head>",
            "<body><main>",
            *body,
            "</main></body>",
            "</html>",
            "",
        ]
    )


def _fill_colours(style: str) -> str:
    for name, colour in PAGE_COLOURS.items():
        style = style.replace(f": {name.upper()};", f": {colour};")
    return style


def render_note(text: str) -> str:
    """A highlighted paragraph."""
    return f'<p class="note">{escape(text)}</p>'


def render_headline(figures: Iterable[tuple[str, str]]) -> str:
    """The page's main figures: names as HTML, which may start with a colour chip, and values as text."""
    cells = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in figures)
    return f'<dl class="figures">{cells}</dl>'


def render_pictures(pictures: Sequence[Picture]) -> list[str]:
    """Pictures in a column; consecutive halves are paired side by side."""
    found: list[str] = []
    for index, picture in enumerate(pictures):
        follows_half = index > 0 and pictures[index - 1].is_half
        if picture.is_half and not follows_half:
            found.append('<div class="pair">')
        found.append(_card(picture))
        if picture.is_half and not (index + 1 < len(pictures) and pictures[index + 1].is_half):
            found.append("</div>")
    return found


def _card(picture: Picture) -> str:
    heading = f"<h2>{escape(picture.title)}</h2><p>{escape(picture.caption)}</p>"
    return f'<section class="card">{heading}{render_image(picture)}</section>'


def render_image(picture: Picture) -> str:
    """A picture without its heading and caption."""
    data = b64encode(picture.png).decode("ascii")
    kind = ' class="chart"' if picture.is_chart else ""
    image = f'<img{kind} alt="{escape(picture.title)}" src="data:image/png;base64,{data}">'
    return f'<div class="scroll">{image}</div>'


def render_table(table: Table) -> str:
    """A table of text with its summary rows highlighted."""
    kinds = ["name", *("number" for _ in table.heads[1:])]
    head = "".join(f'<th class="{kind}">{escape(text)}</th>' for kind, text in zip(kinds, table.heads, strict=True))
    first_summary = len(table.rows) - table.num_summary_rows
    rows = []
    for index, row in enumerate(table.rows):
        cells = "".join(f'<td class="{kind}">{escape(text)}</td>' for kind, text in zip(kinds, row, strict=True))
        rows.append(f'<tr class="{"sum" if index >= first_summary else ""}">{cells}</tr>')
    body = "\n".join(rows)
    return f'<div class="sideways"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'

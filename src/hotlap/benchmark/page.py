"""The page of the benchmark: the table of every part, and the entries track by track."""

from collections.abc import Sequence
from html import escape

from hotlap.benchmark.protocol import OVERTAKING, Protocol
from hotlap.benchmark.table import Row, part_notes, part_tables, track_table
from hotlap.reports.html import render_document, render_table
from hotlap.sim.version import PHYSICS_VERSION

_TITLES = {"built-in": "The built-in tracks", "test": "The tracks of the split test", OVERTAKING: "Overtaking"}
_SCORE = (
    "The score is the mean gap to the optimal lap in per cent, over all starts; a start without a clean flying lap "
    "counts as 100. Lower is better."
)
_PASSING = "Two cars for 8 s, the driver behind a slower one. Rates have their 95 % intervals."


def render_page(rows: Sequence[Row], protocol: Protocol) -> str:
    """One self-contained page."""
    about = f"Protocol {protocol.version} ({protocol.digest}), physics {PHYSICS_VERSION}."
    body = ["<h1>Benchmark</h1>", f"<p>{escape(about)}</p>"]
    for part, table in part_tables(rows, protocol).items():
        text = _PASSING if part == OVERTAKING else _SCORE
        notes = "".join(f"<p>{escape(note)}</p>" for note in part_notes(rows, part))
        body.append(_section(_TITLES.get(part, part), text, render_table(table) + notes))
    for row in rows:
        if row.kind in ("entry", "model") and row.figures.tracks:
            body.append(_section(row.name, "Track by track.", render_table(track_table(row.figures))))
    body.append("<footer>Every figure of an entry comes from its drives, simulated again to the bit.</footer>")
    return render_document("Benchmark", body)


def _section(title: str, text: str, content: str) -> str:
    return f'<section class="card"><h2>{escape(title)}</h2><p>{escape(text)}</p>{content}</section>'

from hotlap.benchmark.page import render_page
from hotlap.benchmark.protocol import load_protocol
from hotlap.benchmark.table import Row, complete_rows


def test_an_entry_has_its_tracks_and_its_name_is_text():
    protocol = load_protocol()
    rows = [row for row in complete_rows(protocol) if row.kind != "model"]
    figures = next(row.figures for row in rows if row.figures.tracks)
    page = render_page([*rows, Row("<b>x</b>", "entry", figures)], protocol)
    assert "<b>x</b>" not in page
    assert page.count("<h2>&lt;b&gt;x&lt;/b&gt;</h2>") == 1
    assert page.count("Track by track.") == 1  # of the entry; others are in the tables of the parts only
    assert f"Protocol {protocol.version} ({protocol.digest})" in page

"""The page on a league, of results that are known."""

from dataclasses import replace

import pytest

from hotlap.evaluation.league import League
from hotlap.evaluation.race_results import DriverResult, PairResult, RaceResults
from hotlap.reports.pages.league_page import HEADS, league_table, pair_table, render_league, track_table
from hotlap.reports.pages.report import write_league_report
from hotlap.reports.plots import chart

FAST = DriverResult("<b>fast</b>", 2, 9, 0.9, 1.25, 1601.4, 1550.0, 1650.6, 1.0, 0.5, 0.125, 0.03, 2.0, 0.75, 30.0)
SLOW = DriverResult("slow", 2, 1, 0.1, 2.75, 1398.6, 1350.0, 1450.0, 0.5, 0.25, 0.25, 0.0, 0.0, None, None)
PAIRS = [PairResult("<b>fast</b>", "slow", 0.75), PairResult("slow", "<b>fast</b>", 0.25)]
TRACKS = [
    RaceResults(track, 3, 5, [SLOW, replace(FAST, elo=elo)], PAIRS) for track, elo in (("a", 1700.0), ("b", 1500.0))
]
LEAGUE = League(["a", "b"], 3, 10, "grid", 4, [FAST, SLOW], PAIRS, TRACKS)


def test_the_league_table_has_a_row_for_each_driver():
    table = league_table(LEAGUE.drivers)
    assert dict(zip(table.heads, table.rows[0], strict=True)) == {
        "driver": "<b>fast</b>",
        "Elo": "1,601",
        "95 % interval": "1,550 to 1,651",
        "wins": "90 %",
        "position": "1.25",
        "finished": "100 %",
        "contacts/km": "0.500",
        "at fault/km": "0.125",
        "hard/km": "0.030",
        "overtakes/race": "2.0",
        "clean": "75 %",
    }
    assert table.rows[1][HEADS.index("clean")] == "–"  # nobody was overtaken


def test_pairs_are_a_matrix_and_tracks_have_columns_of_their_own():
    assert pair_table(["<b>fast</b>", "slow"], PAIRS).rows == [["<b>fast</b>", "–", "75 %"], ["slow", "25 %", "–"]]
    table = track_table(LEAGUE)
    assert table.heads == ["driver", "Elo a", "wins a", "Elo b", "wins b"]
    assert table.rows[0] == ["<b>fast</b>", "1,700", "90 %", "1,500", "90 %"]


def test_the_page_is_written_with_its_picture_and_escapes_names(tmp_path, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)
    page = write_league_report(LEAGUE, tmp_path).read_text(encoding="utf-8")
    assert (tmp_path / "league.png").stat().st_size > 1000
    assert "<b>" not in page
    assert "2 drivers in 10 races" in page
    assert "Races of 4 cars and 3 laps on a, b, grid start, seed 4." in page
    assert "<h2>By track</h2>" in page


@pytest.mark.parametrize("league", [replace(LEAGUE, tracks=["a"], by_track=TRACKS[:1])])
def test_one_track_needs_no_table_of_its_own(league, tmp_path):
    from hotlap.reports.html import Picture

    assert "<h2>By track</h2>" not in render_league(league, Picture("league.png", "Ratings", "", b"", is_chart=True))

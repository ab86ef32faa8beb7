"""`hotlap report races`: a league of drivers."""

import pytest


def test_the_drivers_of_a_league_race_and_its_page_is_written(hotlap, tmp_path):
    arguments = ("report", "races", "champion*1", "champion@0.5*1", "--track", "track-01", "--races", 2)
    answer = hotlap(*arguments, "--out", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    found = answer.figures
    assert (found["races"], found["tracks"], found["laps"]) == (2, ["track-01"], 3)
    assert [row["driver"] for row in found["drivers"]] == ["champion", "champion@0.5"]
    assert found["drivers"][0]["win_rate"] == 1.0
    assert found["page"] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "league.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["races"], "--out: the report on races needs a folder"),
        (["races", "champion"], "two drivers or more, got champion"),
        (["races", "--races", "2"], "from 3 races, one a track, to 100000, got 2"),
        (["races", "nobody", "casual"], "'nobody' is not known"),
        (["casual", "--races", "2"], "--races: it is for a league"),
    ],
)
def test_what_makes_no_league_gets_one_line(refused, tmp_path, arguments, problem):
    out = [] if "needs a folder" in problem else ["--out", tmp_path / "out"]
    assert problem in refused("report", *arguments, *out)

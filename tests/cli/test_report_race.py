"""`hotlap report` on the replay of a race."""

import json

import pytest
from PIL import Image


@pytest.fixture
def replay(hotlap, tmp_path):
    """A race of two cars and its figures; the second has an odd name."""
    path = tmp_path / "race.json"
    assert hotlap("race", "champion", "champion@0.5", "--laps", 1, "--replay", path).code == 0
    document = json.loads(path.read_text())
    document["drivers"][1] = "<b>slow</b>"
    path.write_text(json.dumps(document))
    return path


def test_a_race_is_driven_again_and_its_page_written(hotlap, replay, tmp_path):
    answer = hotlap("report", replay, "--out", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    times_s = json.loads(replay.read_text())["race_times_s"]
    cars = answer.figures["cars"]
    assert [(car["driver"], car["position"]) for car in cars] == [("champion", 1), ("<b>slow</b>", 2)]
    assert [car["race_time_sec"] for car in cars] == times_s
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "2. &lt;b&gt;slow&lt;/b&gt;" in page
    assert "<b>" not in page
    with Image.open(tmp_path / "out" / "gaps.png") as image:
        assert min(image.size) > 400
    text = hotlap("report", replay, "--out", tmp_path / "out").out.splitlines()
    assert text[1].split()[:2] == ["1.", "champion"]
    assert text[-1] == f"page: {tmp_path / 'out' / 'report.html'}"


def test_what_is_no_replay_or_has_no_folder_gets_one_line(refused, replay, tmp_path):
    assert "needs a folder" in refused("report", replay)
    assert "there is no such file" in refused("report", tmp_path / "nothing.json", "--out", tmp_path)
    assert "a race is shown on its own track" in refused("report", replay, "--track", "track-02", "--out", tmp_path)
    assert "is not a run" in refused("report", replay, replay, "--out", tmp_path)
    replay.write_text(replay.read_text().replace('"laps": 1', '"laps": 0'))
    assert "a value of the replay makes no sense" in refused("report", replay, "--out", tmp_path)

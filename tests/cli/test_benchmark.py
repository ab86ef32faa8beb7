"""`hotlap benchmark` and `hotlap benchmark verify`."""

import json

import pytest

from benchmark.small_entries import change_document, small_protocol
from hotlap.benchmark.table import CASUAL, CASUAL_WITH_EYES, OPTIMUM, Row, optimum_row
from hotlap.tracks.registry import load_track
from hotlap.web.replays import find_recorded


@pytest.fixture
def small(monkeypatch, here):
    """The commands have a small protocol, and shipped drivers are not driven: returns the names of those needed."""
    protocol, driven = small_protocol(num_scenarios=0), []
    figures = optimum_row(protocol).figures

    def drive(name, protocol, num_threads=None):
        driven.append(name)
        return Row(name, "shipped", figures)

    monkeypatch.setattr("hotlap.benchmark.protocol.load_protocol", lambda: protocol)
    monkeypatch.setattr("hotlap.benchmark.table.measure_shipped", drive)
    return driven


def test_a_driver_writes_an_entry_that_is_verified_and_the_same_table_on_other_threads(hotlap, here, small):
    answer = hotlap("benchmark", "champion", "--out", "out", "--threads", 1)
    assert answer.code == 0, answer.err
    assert "champion (entry)" in answer.out
    assert small[:2] == [CASUAL, CASUAL_WITH_EYES]  # those of another protocol are driven
    table = json.loads((here / "out/benchmark.json").read_text())
    names = [row["name"] for row in table["rows"]]
    assert {CASUAL, CASUAL_WITH_EYES, "champion", "generalist", "PPO", "SAC", "A2C", OPTIMUM} < set(names)
    assert names[-1] == "champion (entry)"
    page = (here / "out/benchmark.html").read_text()
    assert all(name in page for name in names)

    answer = hotlap("benchmark", "verify", "out/entry.zip", "--out", "again", "--threads", 3)
    assert answer.code == 0, answer.err
    assert "verified to the bit: 3 laps of 1 track." in answer.err
    for name in ("benchmark.json", "benchmark.html"):
        assert (here / "again" / name).read_bytes() == (here / "out" / name).read_bytes()


def test_a_forged_entry_gets_one_line_and_exit_code_2(hotlap, refused, here, small):
    hotlap("benchmark", "champion", "--out", "out", "--part", "built-in", "--name", "Ada's car")
    assert "Ada's car" in (here / "out/benchmark.html").read_text().replace("&#x27;", "'")

    def cheat(document):
        document["laps"]["track-01"][0][1] -= 1.0

    change_document(here / "out/entry.zip", here / "forged.zip", cheat)
    assert "track-01, start 0: claims" in refused("benchmark", "verify", "forged.zip")
    assert "no such file" in refused("benchmark", "verify", "none.zip")
    (here / "x.json").write_text("x")
    assert "neither an entry nor a file of laps" in refused("benchmark", "verify", "x.json")


def test_laps_of_people_are_verified_beside_the_casual_driver(hotlap, here, small, monkeypatch):
    monkeypatch.setattr("hotlap.evaluation.baseline.measure_casual_lap", lambda track: 40.0)
    replay = find_recorded("optimal", load_track("track-01")).to_text()
    entries = [{"track": "track-01", "driver": "Ada", "replay": replay}]
    (here / "laps.json").write_text(json.dumps({"format": "hotlap-board-1", "entries": entries}))
    answer = hotlap("benchmark", "verify", "laps.json", "--json")
    assert "verified to the bit: 1 replay of people." in answer.err
    [track] = answer.figures["people"][0]["tracks"]
    assert (track["people"], track["faster_rate"]) == (1, 1.0)
    assert "track-01" in hotlap("benchmark", "verify", "laps.json").out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["champion"], "--out: an entry needs a folder"),
        (["verify"], "verify: name an entry"),
        (["champion", "casual", "--out", "x"], "one driver at a time"),
        (["champion", "--out", "x", "--part", "moon"], "the parts are built-in"),
        (["champion", "--out", "x", "--threads", "0"], "--threads must be from 1"),
        (["optimal", "--out", "x"], "as 'optimum'"),
        (["nobody", "--out", "x"], "'nobody' is not known"),
        (["champion", "--out", "x", "--name", "\x1b[2J"], "printable characters"),
        (["verify", "x.zip", "--part", "test"], "--part: an entry has its own"),
    ],
)
def test_what_cannot_be_driven_is_refused(refused, small, arguments, text):
    assert text in refused("benchmark", *arguments)


def test_a_part_that_a_driver_has_no_model_for_is_refused(refused, here):
    assert "champion drives built-in, overtaking only" in refused(
        "benchmark", "champion", "--out", "x", "--part", "test"
    )

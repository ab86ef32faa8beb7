"""The board: order, one entry per drive, and entries that outlive a killed process."""

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest

from hotlap.errors import LeaderboardError
from hotlap.evaluation.evaluate import Lap
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.web import leaderboard as leaderboard_module
from hotlap.web.leaderboard import Leaderboard, leaderboard_path
from hotlap.web.replay_format import Replay, quantise

ROAD = "0123456789abcdef"
NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=timezone.utc)


def make_replay(number: int = 0, **changes) -> Replay:
    actions = quantise(np.array([[0.0, 1.0, 0.0]] * 5 + [[number / 127, 0.0, 0.0]], np.float32))
    return replace(Replay(ROAD, actions, 1, np.float32(30.0)), **changes)


@pytest.fixture
def leaderboard(tmp_path):
    opened = Leaderboard(tmp_path / "home" / "board.sqlite3", lambda: NOON)
    yield opened
    opened.close()


def test_clean_laps_come_first_then_the_faster(leaderboard):
    for number, (time_s, is_clean) in enumerate([(31.0, True), (28.0, False), (30.0, True)]):
        leaderboard.add("track-01", make_replay(number), Lap(0, 1, time_s, is_clean), driver=f"d{number}", kind="human")
    assert [entry.driver for entry in leaderboard.entries("track-01", ROAD)] == ["d2", "d0", "d1"]
    assert leaderboard.entries("track-02", ROAD) == []
    assert leaderboard.entries("track-01", "f" * 16) == []


def test_a_day_has_the_laps_of_persons_of_that_day_and_all_drivers(tmp_path):
    days = iter([NOON, NOON.replace(day=30), NOON.replace(day=30)])
    leaderboard = Leaderboard(tmp_path / "board.sqlite3", lambda: next(days))
    for number, kind in enumerate(["human", "human", "casual"]):
        leaderboard.add("track-01", make_replay(number), Lap(0, 1, 30.0, True), driver=f"d{number}", kind=kind)
    assert [entry.driver for entry in leaderboard.entries("track-01", ROAD, "2026-01-31")] == ["d0", "d2"]
    assert [entry.driver for entry in leaderboard.entries("track-01", ROAD, "2026-01-30")] == ["d1", "d2"]
    assert len(leaderboard.entries("track-01", ROAD)) == 3
    leaderboard.close()


def test_a_board_of_the_first_version_is_read_and_its_laps_have_no_owner(tmp_path):
    path = tmp_path / "board.sqlite3"
    old = sqlite3.connect(path)
    old.executescript(f"{leaderboard_module._SCHEMA} PRAGMA user_version = 1;")
    values = ("track-01", ROAD, PHYSICS_VERSION, "Ada", None, "human", 30.0, 1, 1, "2026-01-31T12:00:00Z", b"d", b"r")
    old.execute(
        "INSERT INTO entries (track, road, physics, driver, driver_id, kind, lap_time_s, lap, is_clean, date, drive,"
        " replay) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    old.commit()
    old.close()
    leaderboard = Leaderboard(path, lambda: NOON)
    assert leaderboard.rename("0123456789abcdef", "Eve") == 0
    assert [entry.driver for entry in leaderboard.entries("track-01", ROAD)] == ["Ada"]
    leaderboard.add("track-01", make_replay(), Lap(0, 1, 31.0, True), driver="Bo", kind="human", owner="secret of Bo")
    assert leaderboard.rename("secret of Bo", "Cy") == 1
    assert [entry.driver for entry in leaderboard.entries("track-01", ROAD)] == ["Ada", "Cy"]
    leaderboard.close()


def test_an_entry_has_the_fields_of_the_contract(leaderboard):
    time_s = float(np.float32(31.216667))
    entry, is_new = leaderboard.add("track-01", make_replay(), Lap(0, 2, time_s, True), driver="Ada", kind="human")
    assert is_new
    plain = entry.as_plain()
    assert plain["driver"] == "Ada"
    assert plain["kind"] == "human"
    assert plain["lap_time_sec"] == time_s
    assert plain["date"] == "2026-01-31T12:00:00Z"
    assert plain["replay"] == f"api/replays/{entry.id}"
    assert leaderboard.entries("track-01", ROAD) == [entry]
    assert leaderboard.replay(entry.id) == make_replay().to_bytes()
    assert leaderboard.replay(entry.id + 1) is None


def test_the_same_drive_is_entered_once_and_keeps_its_first_name(leaderboard):
    first, _ = leaderboard.add("track-01", make_replay(), Lap(0, 1, 30.0, True), driver="Ada", kind="human")
    again, is_new = leaderboard.add("track-01", make_replay(), Lap(0, 1, 30.0, True), driver="Eve", kind="human")
    assert not is_new
    assert again == first


def test_entries_of_another_physics_are_kept_but_not_listed(leaderboard):
    leaderboard.add(
        "track-01", make_replay(physics="1-000000000000"), Lap(0, 1, 30.0, True), driver="Ada", kind="human"
    )
    assert leaderboard.entries("track-01", ROAD) == []
    (exported,) = leaderboard.export()
    assert exported["physics"] == "1-000000000000"
    assert Replay.from_text(exported["replay"]).actions.tobytes() == make_replay().actions.tobytes()


def test_a_driver_is_found_by_its_id(leaderboard):
    replay, lap = make_replay(), Lap(0, 1, 38.0, True)
    entry, _ = leaderboard.add("track-01", replay, lap, driver="casual", kind="casual", driver_id="casual")
    assert leaderboard.find_driver("casual", ROAD) == entry
    assert leaderboard.find_driver("optimal", ROAD) is None


def test_a_full_board_refuses_and_drops_nothing(leaderboard, monkeypatch):
    monkeypatch.setattr(leaderboard_module, "MAX_ENTRIES_PER_TRACK", 2)
    for number in range(2):
        leaderboard.add("track-01", make_replay(number), Lap(0, 1, 30.0, True), driver="Ada", kind="human")
    with pytest.raises(LeaderboardError, match="the board of track-01 is full: it has 2 entries"):
        leaderboard.add("track-01", make_replay(9), Lap(0, 1, 1.0, True), driver="Eve", kind="human")
    assert len(leaderboard.entries("track-01", ROAD)) == 2
    leaderboard.add("track-02", make_replay(9), Lap(0, 1, 30.0, True), driver="Ada", kind="human")


def test_it_is_under_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    assert leaderboard_path() == tmp_path / "board.sqlite3"


@pytest.mark.parametrize("content", [b"not a database " * 100, b"SQLite format 3\0" + b"\xff" * 500])
def test_a_damaged_file_is_refused_in_one_line_and_left_alone(tmp_path, content):
    path = tmp_path / "board.sqlite3"
    path.write_bytes(content)
    with pytest.raises(LeaderboardError, match=r"board\.sqlite3: the board cannot be used \(.*\)\. Move the file away"):
        Leaderboard(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "board.sqlite3"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LeaderboardError, match="newer version"):
        Leaderboard(path)


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from web.test_leaderboard import make_replay
from hotlap.evaluation.evaluate import Lap
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.web.leaderboard import Leaderboard

leaderboard = Leaderboard(Path(sys.argv[1]))
for number in range(100_000):
    replay = make_replay(number % 127, seed=number)
    entry, _ = leaderboard.add("track-01", replay, Lap(0, 1, 30.0, True), driver="Ada", kind="human")
    sys.stdout.write(f"{{entry.id}}\\n")
    sys.stdout.flush()
"""


def test_no_entry_that_was_acknowledged_is_lost_by_a_kill(tmp_path):
    from pathlib import Path

    path = tmp_path / "board.sqlite3"
    code = WRITER.format(tests=str(Path(__file__).resolve().parent.parent))
    for _ in range(2):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        seen = [int(writer.stdout.readline()) for _ in range(25)]
        os.kill(writer.pid, signal.SIGKILL)
        seen += [int(line) for line in writer.stdout.read().splitlines() if line]
        writer.wait()
        leaderboard = Leaderboard(path)
        assert {entry["id"] for entry in leaderboard.export()} >= set(seen)
        leaderboard.close()
        path.unlink()
        for beside in path.parent.glob("board.sqlite3-*"):
            beside.unlink()

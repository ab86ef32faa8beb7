import sqlite3

import pytest

from hotlap.errors import LeaderboardError
from hotlap.web.database import Database

FIRST = "CREATE TABLE laps (name TEXT); INSERT INTO laps VALUES ('old')"
SECOND = "ALTER TABLE laps ADD COLUMN time_s REAL"


def test_an_older_file_runs_only_the_steps_that_it_lacks(tmp_path):
    path = tmp_path / "home" / "laps.db"  # its folder is made
    Database(path, [FIRST], "board").close()
    newer = Database(path, [FIRST, SECOND], "board")
    assert newer.ask("SELECT name, time_s FROM laps") == [("old", None)]
    newer.close()
    with pytest.raises(LeaderboardError, match=r"laps\.db: was written by a newer version of hotlap"):
        Database(path, [FIRST], "board")


def test_a_change_that_fails_leaves_nothing_behind(tmp_path):
    database = Database(tmp_path / "laps.db", [FIRST], "board")

    def insert_and_fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO laps VALUES ('lost')")
        raise KeyError("interrupted")

    with pytest.raises(KeyError):
        database.change(insert_and_fail)
    assert database.ask("SELECT name FROM laps") == [("old",)]
    assert database.change(lambda connection: connection.execute("DELETE FROM laps").rowcount) == 1
    assert database.ask("SELECT name FROM laps WHERE name = ?", ("old",)) == []
    database.close()


def test_errors_of_sqlite_are_one_line_with_the_path(tmp_path):
    database = Database(tmp_path / "laps.db", [FIRST], "board")
    with pytest.raises(LeaderboardError, match=r"laps\.db: the board cannot be used \(no such table: drives\)"):
        database.ask("SELECT * FROM drives")
    database.close()
    with pytest.raises(LeaderboardError, match=r"the board cannot be used \(.*xists\)"):
        Database(tmp_path / "laps.db" / "inside.db", [FIRST], "board")

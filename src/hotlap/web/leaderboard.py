"""The leaderboard: best laps with their replays, in an SQLite file under the user's folder."""

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hotlap.errors import LeaderboardError
from hotlap.evaluation.evaluate import Lap
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import user_folder
from hotlap.web.database import Database
from hotlap.web.replay_format import Replay

Kind = Literal["human", "model", "casual", "optimal"]
MAX_ENTRIES_PER_TRACK = 2_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    track TEXT NOT NULL,
    road TEXT NOT NULL,
    physics TEXT NOT NULL,
    driver TEXT NOT NULL,
    driver_id TEXT,
    kind TEXT NOT NULL,
    lap_time_s REAL NOT NULL,
    lap INTEGER NOT NULL,
    is_clean INTEGER NOT NULL,
    date TEXT NOT NULL,
    drive BLOB NOT NULL UNIQUE,
    replay BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_road ON entries (track, road, physics, is_clean DESC, lap_time_s);
"""
_OWNERS = "ALTER TABLE entries ADD COLUMN owner BLOB"
_COLUMNS = "id, track, road, physics, driver, driver_id, kind, lap_time_s, lap, is_clean, date"


@dataclass(frozen=True)
class LeaderboardEntry:
    """One lap on the leaderboard."""

    id: int
    track: str
    track_digest: str
    physics: str
    driver: str  # the name that is shown
    driver_id: str | None  # None for a person
    kind: Kind
    lap_time_s: float  # the simulator's float32
    lap: int  # number of the lap in the replay; 1 is the standing one
    is_clean: bool
    date: str  # ISO 8601, UTC

    def as_plain(self) -> dict[str, Any]:
        """The entry as the API gives it."""
        return {
            "id": self.id,
            "track": self.track,
            "driver": self.driver,
            "driver_id": self.driver_id,
            "kind": self.kind,
            "lap_time_sec": self.lap_time_s,
            "lap": self.lap,
            "clean": self.is_clean,
            "date": self.date,
            "road": self.track_digest,
            "physics": self.physics,
            "replay": f"api/replays/{self.id}",
        }


def leaderboard_path() -> Path:
    """The leaderboard's file."""
    return user_folder().parent / "board.sqlite3"


class Leaderboard:
    """The leaderboard in one file. May be used from several threads, and by several servers at once."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        self.path = path
        self._now = now
        self._database = Database(path, [_SCHEMA, _OWNERS], "board")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(
        self,
        track_id: str,
        replay: Replay,
        lap: Lap,
        *,
        driver: str,
        kind: Kind,
        driver_id: str | None = None,
        num_ticks: int | None = None,
        owner: str | None = None,
    ) -> tuple[LeaderboardEntry, bool]:
        """Enter a lap that was verified; returns the entry, and whether it is new: the same lap is entered once.

        `num_ticks` is the number of ticks until the lap's end; None: the replay ends there. Whoever knows `owner` may
        rename the entry.
        """
        content = replay.to_bytes()
        row = (
            track_id,
            replay.track_digest,
            replay.physics,
            driver,
            driver_id,
            kind,
            lap.time_s,
            lap.number,
            int(lap.is_clean),
            f"{self._now():%Y-%m-%dT%H:%M:%SZ}",
            _lap_digest(replay, num_ticks),
            content,
            _owner_digest(owner),
        )
        return self._database.change(lambda connection: self._insert(connection, row, _drive_digest(replay)))

    @staticmethod
    def _insert(
        connection: sqlite3.Connection, row: tuple[Any, ...], drive_digest: bytes
    ) -> tuple[LeaderboardEntry, bool]:
        track_id, digest = row[0], row[-3]
        known = connection.execute(
            f"SELECT {_COLUMNS} FROM entries WHERE drive IN (?, ?)",  # noqa: S608
            (digest, drive_digest),
        ).fetchone()
        if known:
            return _entry(known), False
        count = connection.execute("SELECT count(*) FROM entries WHERE track = ?", (track_id,)).fetchone()[0]
        if count >= MAX_ENTRIES_PER_TRACK:
            raise LeaderboardError(
                f"the board of {track_id} is full: it has {count} entries. Export it and move its file."
            )
        cursor = connection.execute(
            "INSERT INTO entries (track, road, physics, driver, driver_id, kind, lap_time_s, lap, is_clean, date,"
            " drive, replay, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return _entry((cursor.lastrowid, *row[:-3])), True

    def rename(self, owner: str, driver: str) -> int:
        """Give the entries of an owner another name; returns how many there are."""

        def update(connection: sqlite3.Connection) -> int:
            digest = _owner_digest(owner)
            return connection.execute("UPDATE entries SET driver = ? WHERE owner = ?", (driver, digest)).rowcount

        return self._database.change(update)

    def entries(self, track_id: str, track_digest: str, day: str = "") -> list[LeaderboardEntry]:
        """The laps of a track on its present road and with this physics: clean ones first, then the faster.

        With a `day`, in ISO 8601 and UTC, persons' laps of that day only.
        """
        rows = self._database.ask(
            f"SELECT {_COLUMNS} FROM entries WHERE track = ? AND road = ? AND physics = ?"  # noqa: S608
            " AND (kind != 'human' OR substr(date, 1, ?) = ?) ORDER BY is_clean DESC, lap_time_s, id",
            (track_id, track_digest, PHYSICS_VERSION, len(day), day),
        )
        return [_entry(row) for row in rows]

    def find_driver(self, driver_id: str, track_digest: str) -> LeaderboardEntry | None:
        """The newest entry of a driver on a road, if there is one."""
        rows = self._database.ask(
            f"SELECT {_COLUMNS} FROM entries WHERE driver_id = ? AND road = ? AND physics = ? ORDER BY id DESC LIMIT 1",  # noqa: S608
            (driver_id, track_digest, PHYSICS_VERSION),
        )
        return _entry(rows[0]) if rows else None

    def replay(self, entry_id: int) -> bytes | None:
        """The replay of an entry; None if there is no such entry."""
        rows = self._database.ask("SELECT replay FROM entries WHERE id = ?", (entry_id,))
        return bytes(rows[0][0]) if rows else None

    def export(self) -> list[dict[str, Any]]:
        """Every entry, also of other roads and physics, with its replay as text."""
        rows = self._database.ask(f"SELECT {_COLUMNS}, replay FROM entries ORDER BY id", ())  # noqa: S608
        return [{**_entry(row[:-1]).as_plain(), "replay": Replay.from_bytes(row[-1]).to_text()} for row in rows]


def _entry(row: tuple[Any, ...]) -> LeaderboardEntry:
    fields = dict(zip(LeaderboardEntry.__dataclass_fields__, row, strict=True))
    return LeaderboardEntry(**{**fields, "is_clean": bool(fields["is_clean"])})


def _lap_digest(replay: Replay, num_ticks: int | None) -> bytes:
    """Identifies a lap: the road, and the inputs until the lap's end as the simulator applies them.

    Every replay starts standing on the line, whatever its seed.
    """
    digest = hashlib.sha256(f"lap {replay.track_digest} {replay.physics}".encode())
    applied = np.clip(replay.actions[:num_ticks], np.array([-1.0, 0.0, 0.0], np.float32), np.float32(1.0))
    digest.update((applied + np.float32(0.0)).tobytes())  # adding zero makes -0.0 the 0.0 that it equals
    return digest.digest()


def _owner_digest(owner: str | None) -> bytes | None:
    """What is kept of an owner's secret: whoever reads the file cannot rename others."""
    return None if owner is None else hashlib.sha256(f"owner {owner}".encode()).digest()


def _drive_digest(replay: Replay) -> bytes:
    """Identifies a drive with its seed and all its inputs: entries of earlier versions have this digest."""
    digest = hashlib.sha256(f"{replay.track_digest} {replay.physics} {replay.seed} {replay.lap}".encode())
    digest.update(replay.actions.tobytes())
    return digest.digest()

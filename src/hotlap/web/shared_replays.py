"""Replays that were shared: kept under a short id, in an SQLite file under the user's folder."""

import base64
import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from hotlap.errors import LeaderboardError
from hotlap.web.database import Database

ReplayKind = Literal["lap", "race"]
SHARED_REPLAYS_FILE = "replays.sqlite3"  # beside the leaderboard
ID_CHARS = 16
MAX_SHARED = 10_000
MAX_SHARED_BYTES = 65_536  # of one replay: a person's hour has less
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replays (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    track TEXT NOT NULL,
    driver TEXT,
    date TEXT NOT NULL,
    content BLOB NOT NULL
)
"""


@dataclass(frozen=True)
class SharedReplay:
    """What is known of a shared replay."""

    id: str
    kind: ReplayKind
    track: str
    driver: str | None  # the name that it was shared under
    date: str  # ISO 8601, UTC

    def as_plain(self) -> dict[str, Any]:
        """The replay as the API gives it."""
        return {**asdict(self), "replay": f"api/replays/{self.id}"}


def replay_id(content: bytes) -> str:
    """The id of a replay: 96 bits of its digest, as 16 characters that need no quoting in a link."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()[: ID_CHARS * 3 // 4]).decode("ascii")


class SharedReplays:
    """The shared replays in one file. May be used from several threads, and by several servers at once."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        self._database, self._now = Database(path, [_SCHEMA], "file of replays"), now

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, content: bytes, kind: ReplayKind, track_id: str, driver: str | None) -> tuple[SharedReplay, bool]:
        """Keep a replay that was verified; returns what is known of it, and whether it is new."""
        if len(content) > MAX_SHARED_BYTES:
            raise LeaderboardError(f"a shared replay has at most {MAX_SHARED_BYTES} bytes, this has {len(content)}.")
        date = f"{self._now():%Y-%m-%dT%H:%M:%SZ}"
        shared = SharedReplay(replay_id(content), kind, track_id, driver, date)
        known = self.find(shared.id)
        if known is not None:
            return known, False

        def insert(connection: sqlite3.Connection) -> None:
            count = connection.execute("SELECT count(*) FROM replays").fetchone()[0]
            if count >= MAX_SHARED:
                raise LeaderboardError(f"{count} replays are shared already, no more fit. Move their file away.")
            connection.execute(
                "INSERT OR IGNORE INTO replays (id, kind, track, driver, date, content) VALUES (?, ?, ?, ?, ?, ?)",
                (*asdict(shared).values(), content),
            )

        self._database.change(insert)
        return shared, True

    def find(self, wanted: str) -> SharedReplay | None:
        """What is known of a replay, or None."""
        rows = self._database.ask("SELECT id, kind, track, driver, date FROM replays WHERE id = ?", (wanted,))
        return SharedReplay(*rows[0]) if rows else None

    def content(self, wanted: str) -> bytes | None:
        """A replay's bytes, or None."""
        rows = self._database.ask("SELECT content FROM replays WHERE id = ?", (wanted,))
        return bytes(rows[0][0]) if rows else None

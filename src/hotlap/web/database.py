"""An SQLite file of the server's: opened with its schema, read and changed by several threads and servers at once."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hotlap.errors import LeaderboardError, one_line

_BUSY_S = 10.0
T = TypeVar("T")


class Database:
    """A file of tables. What is changed is on the disk before the call returns, even if the power fails.

    `steps` are scripts, of which a new file runs all and an older one those it has not run.
    """

    def __init__(self, path: Path, steps: Sequence[str], what: str) -> None:
        self.path, self._what = path, what
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self.change(lambda connection: self._upgrade(connection, steps))
        except OSError as error:
            raise self._refusal(error) from None
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    def _upgrade(self, connection: sqlite3.Connection, steps: Sequence[str]) -> None:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(steps):
            raise LeaderboardError(
                f"{self.path}: was written by a newer version of hotlap. Update it, or move the file away."
            )
        for step in steps[version:]:
            for statement in filter(None, map(str.strip, step.split(";"))):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def ask(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._refusal(error) from None

    def change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` as one change: all of it or nothing."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(self._connection)
                    self._connection.execute("COMMIT")
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._refusal(error) from None
        return result

    def _refusal(self, error: Exception) -> LeaderboardError:
        reason = getattr(error, "strerror", None) or one_line(error)
        return LeaderboardError(
            f"{self.path}: the {self._what} cannot be used ({reason}). Move the file away, or set HOTLAP_HOME."
        )

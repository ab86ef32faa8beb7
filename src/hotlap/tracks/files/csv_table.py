"""Text tables with `#` comments: reading them with file and line in every error, and formatting rows of numbers.

Hand-written because an error must name the line and the column, and because a file must not change in a round trip.
"""

import math
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import InputFileError, TrackError
from hotlap.tracks.geometry.spline import FloatArray

MAX_FILE_BYTES = 20_000_000
MAX_POINTS = 100_000
MAX_LINES = 10 * MAX_POINTS  # comments and empty ones included
MAX_ROW_CHARACTERS = 10_000


@dataclass(frozen=True)
class CsvTable:
    """The rows of a text file as cells, with the line of the file each came from."""

    path: Path
    comments: list[tuple[int, str]]
    lines: list[int]
    rows: list[list[str]]
    separator: str

    def refuse(self, line: int, text: str) -> NoReturn:
        """Raise a TrackError that names the file and the line."""
        raise TrackError(f"{self.path}:{line}: {text}")

    def refuse_first(self, is_bad: NDArray[np.bool_], text: str, *, offset: int = 0) -> None:
        """Refuse the first bad row, or the row `offset` after it; nothing happens when none is bad."""
        if is_bad.any():
            self.refuse(self.lines[int(np.argmax(is_bad)) + offset], text)

    def check_columns(self, num_columns: int) -> None:
        """Refuse the first row that does not have this many columns."""
        for line, row in zip(self.lines, self.rows, strict=True):
            if len(row) != num_columns:
                self.refuse(
                    line,
                    f"every row must have the same columns: expected {num_columns}, got {len(row)}. Complete this row.",
                )

    def to_numbers(self) -> FloatArray:
        """The cells as finite floats, (num_rows, num_columns)."""
        self.check_columns(len(self.rows[0]))
        if len(self.rows) > MAX_POINTS:
            self.refuse(
                self.lines[MAX_POINTS], f"a file has at most {MAX_POINTS} points, got {len(self.rows)}. Thin it."
            )
        try:
            values = np.array([list(map(float, row)) for row in self.rows])
        except ValueError:
            is_sound = False
        else:
            is_sound = bool(np.isfinite(values).all()) and not any("_" in cell for row in self.rows for cell in row)
        return values if is_sound else self._to_numbers_one_by_one()

    def _to_numbers_one_by_one(self) -> FloatArray:
        """The same, slowly, but refusing the first cell that is no finite number."""
        return np.array(
            [
                [self._to_number(line, column, cell) for column, cell in enumerate(row, start=1)]
                for line, row in zip(self.lines, self.rows, strict=True)
            ]
        )

    def _to_number(self, line: int, column: int, cell: str) -> float:
        value = parse_number(cell)
        if value is None:
            self.refuse(line, f"column {column} must be a number, got {cell[:40]!r}. Write it with a decimal point.")
        if math.isnan(value):
            self.refuse(line, f"column {column} is NaN (not a number). Fill in the value or delete the row.")
        if math.isinf(value):
            self.refuse(line, f"column {column} is infinite; it must be finite. Correct the value.")
        return value


def read_table(path: Path, columns: str) -> CsvTable:
    """Read a text file with at least one row; `columns` says in errors what a row should hold."""
    text = read_text(path)
    if not text.strip():
        raise TrackError(f"{path}:1: the file is empty. Write one row per point: {columns}.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    num_lines = text.count("\n")
    if num_lines > MAX_LINES:
        raise TrackError(f"{path}:1: a file has at most {MAX_LINES} lines, got {num_lines}. Thin it.")
    comments: list[tuple[int, str]] = []
    lines: list[int] = []
    contents: list[str] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        content = raw.strip()
        if content.startswith("#"):
            comments.append((number, content[1:].strip()))
        elif len(content) > MAX_ROW_CHARACTERS:
            raise TrackError(
                f"{path}:{number}: a row has at most {MAX_ROW_CHARACTERS} characters, this has {len(content)}. "
                f"Write one row per point: {columns}."
            )
        elif content:
            lines.append(number)
            contents.append(content)
    if not contents:
        raise TrackError(f"{path}:1: the file has only comments. Write one row per point: {columns}.")
    separator = find_separator(contents[0])
    return CsvTable(path, comments, lines, [split_cells(content, separator) for content in contents], separator)


def read_text(path: Path) -> str:
    """The text of a track file; an error in one line if it is none."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise TrackError(f"{path}: a track is a file, this is a folder. Name the file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise TrackError(f"{path}: a track is a plain file, this is a device or a pipe. Save it to a file first.")
        if status.st_size > MAX_FILE_BYTES:
            size_mb = status.st_size / 1e6
            raise TrackError(f"{path}: a track file has at most 20 MB, this has {size_mb:.0f}. Is it the right file?")
        data = path.read_bytes()
    except TrackError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise InputFileError(f"{path}: there is no such file. Check the path.") from None
    except (OSError, ValueError) as error:
        raise TrackError(f"{path}: cannot be read ({error}). Check the path and its permissions.") from None
    if b"\0" in data:
        raise TrackError(f"{path}:1: a track is a text file, this one is binary. Unpack it, or export it as text.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TrackError(f"{path}:{line}: a track file is UTF-8, this is not. Save it again as UTF-8.") from None


def find_separator(row: str) -> str:
    """The separator of a row: semicolon, tab or comma."""
    if ";" in row:
        return ";"
    return "\t" if "\t" in row and "," not in row else ","


def split_cells(row: str, separator: str) -> list[str]:
    """The row's cells without surrounding spaces; empty cells at the end are dropped."""
    cells = [cell.strip() for cell in row.split(separator)]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def parse_number(cell: str) -> float | None:
    """The cell's value, or None; `float` alone would also take 1_000."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def format_rows(path: Path, columns: tuple[FloatArray, ...], separator: str, decimals: tuple[int, ...]) -> list[str]:
    """One line of text per row; TrackError where a value is not finite."""
    values = np.stack(columns, axis=1)
    if not np.isfinite(values).all():
        raise TrackError(f"{path}: not written, a value is not finite. Every column must hold numbers.")
    # Adding zero turns -0.0 into 0.0, so a file reads the same after a round trip.
    rounded = np.stack([np.round(column, places) for column, places in zip(columns, decimals, strict=True)], axis=1)
    return [
        separator.join(f"{value:.{places}f}" for value, places in zip(row, decimals, strict=True))
        for row in (rounded + 0.0).tolist()
    ]


def to_printable(text: str) -> str:
    """The text on one line, without the control characters that would make the file unreadable."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

"""Track files: the TUM centreline and raceline CSVs, read with every rule checked and written atomically."""

import math
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hotlap.atomic_files import write_atomically
from hotlap.errors import InputFileError, TrackError
from hotlap.tracks.centreline import MIN_POINTS, Centreline
from hotlap.tracks.geometry import find_fault
from hotlap.tracks.spline import FloatArray

CENTRELINE_HEADER = "x_m,y_m,w_tr_right_m,w_tr_left_m"
RACELINE_COLUMNS = ("s_m", "x_m", "y_m", "psi_rad", "kappa_radpm", "vx_mps", "ax_mps2")
RACELINE_DECIMALS = (3, 3, 3, 5, 6, 3, 3)  # a millimetre, and angles and curvatures to match

MAX_FILE_BYTES = 20_000_000
MAX_POINTS = 100_000
MIN_HALF_WIDTH_M = 0.1
MAX_HALF_WIDTH_M = 100.0
MAX_COORDINATE_M = 1e7  # a UTM northing still fits

_SAME_POINT_M = 1e-3
_JOIN_RATIO = 3.0
_GAP_RATIO = 10.0
_GAP_M = 50.0
_FOLD_COSINE = math.cos(math.radians(150.0))

_DEFAULT_COLUMNS = {
    3: ("x", "y", "width"),
    4: ("x", "y", "right", "left"),
    5: ("x", "y", "z", "right", "left"),
}
_COLUMN_NAMES = {
    "x": {"x", "x_m"},
    "y": {"y", "y_m"},
    "z": {"z", "z_m"},
    "right": {"w_tr_right_m", "w_tr_right", "w_right_m", "w_right", "width_right_m", "width_right", "right"},
    "left": {"w_tr_left_m", "w_tr_left", "w_left_m", "w_left", "width_left_m", "width_left", "left"},
    "width": {"width", "width_m", "w", "w_m", "w_tr", "w_tr_m"},
}
_LAYOUTS = [{"x", "y", "width"}, {"x", "y", "right", "left"}]  # z may come on top


@dataclass(frozen=True)
class Raceline:
    """A driven line, float64 arrays of shape (num_points,); psi is 0 to the north, counter-clockwise positive."""

    s_m: FloatArray
    x_m: FloatArray
    y_m: FloatArray
    psi_rad: FloatArray
    kappa_radpm: FloatArray
    vx_mps: FloatArray
    ax_mps2: FloatArray
    comment: str = ""


@dataclass(frozen=True)
class _Table:
    """The rows of a text file as cells, with the line each came from."""

    path: Path
    comments: list[tuple[int, str]]
    lines: list[int]
    rows: list[list[str]]
    separator: str

    def refuse(self, line: int, text: str) -> NoReturn:
        raise TrackError(f"{self.path}:{line}: {text}")


@dataclass(frozen=True)
class CentrelineFile:
    """A track file's rows, and the line of the file that each came from."""

    path: Path
    centreline: Centreline
    lines: list[int]

    def check_road(self, centreline: Centreline) -> None:
        """Refuse a line with the file's points, however changed, that makes no road; with the place in the file."""
        fault = find_fault(centreline)
        if fault is not None:
            raise TrackError(f"{self.path}:{self.lines[fault.point]}: {fault.text}")


def read_centreline(path: str | os.PathLike[str]) -> Centreline:
    """Read a track file and check every rule, down to a trial of the nodes.

    Coordinates are kept as they stand, however far from the origin; `build_nodes` moves far ones itself.
    """
    file = read_centreline_file(path)
    file.check_road(file.centreline)
    return file.centreline


def read_centreline_file(path: str | os.PathLike[str]) -> CentrelineFile:
    """Read a track file and check every rule of its rows; whether they make a road is not tried."""
    table = _read_table(Path(path))
    columns = _take_header(table)
    _check_columns(table, len(columns))
    values = _numbers(table)
    centreline = _assemble(columns, values)
    _check_coordinates(table, centreline)
    _check_widths(table, columns, values)
    _check_spacing(table, centreline)
    _check_folds(table, centreline)
    return CentrelineFile(table.path, centreline, table.lines)


def write_centreline(path: str | os.PathLike[str], centreline: Centreline, comment: str | None = None) -> None:
    """Write the four-column track file, to the millimetre; the file appears whole or not at all."""
    columns = (centreline.x_m, centreline.y_m, centreline.width_right_m, centreline.width_left_m)
    lines = [f"# {_printable(line)}".rstrip() for line in (comment or "").splitlines()]
    lines.append(f"# {CENTRELINE_HEADER}")
    lines += _format_rows(Path(path), columns, ",", (3,) * len(columns))
    write_atomically(Path(path), "\n".join([*lines, ""]).encode())


def read_raceline(path: str | os.PathLike[str]) -> Raceline:
    """Read a raceline file; `#` lines other than the column names become the comment."""
    table = _read_table(Path(path))
    if len(table.rows[0]) != len(RACELINE_COLUMNS):
        table.refuse(
            table.lines[0],
            f"a raceline has {len(RACELINE_COLUMNS)} columns, got {len(table.rows[0])}. "
            f"Write {'; '.join(RACELINE_COLUMNS)}.",
        )
    values = _numbers(table)
    if len(values) < 2:
        table.refuse(table.lines[-1], f"a raceline needs at least 2 points, got {len(values)}. Add the rest.")
    _refuse_first(table, np.diff(values[:, 0]) <= 0.0, 1, "s_m must grow from row to row. Sort the rows by s_m.")
    _refuse_first(table, values[:, 5] < 0.0, 0, "vx_mps is negative; a raceline is driven forward. Check column 6.")
    header = _squeezed(RACELINE_COLUMNS)
    texts = [text for _, text in table.comments if _squeezed(text.split(table.separator)) != header]
    s, x, y, psi, kappa, vx, ax = values.T.copy()
    return Raceline(s, x, y, psi, kappa, vx, ax, comment=" ".join(texts).strip())


def write_raceline(path: str | os.PathLike[str], raceline: Raceline) -> None:
    """Write two `#` lines (the comment, the column names), then one row per point; whole or not at all."""
    columns = tuple(getattr(raceline, name) for name in RACELINE_COLUMNS)
    lines = [f"# {_printable(raceline.comment)}".rstrip(), f"# {'; '.join(RACELINE_COLUMNS)}"]
    lines += _format_rows(Path(path), columns, "; ", RACELINE_DECIMALS)
    write_atomically(Path(path), "\n".join([*lines, ""]).encode())


def _read_text(path: Path) -> str:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise TrackError(f"{path}: a track is a file, this is a folder. Name the CSV file in it.")
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
        raise TrackError(f"{path}:1: a track is a text file, this one is binary. Export it as CSV in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TrackError(f"{path}:{line}: a track file is UTF-8, this is not. Save it again as UTF-8.") from None


def _read_table(path: Path) -> _Table:
    text = _read_text(path)
    if not text.strip():
        raise TrackError(f"{path}:1: the file is empty. Write one row per point: {CENTRELINE_HEADER}.")
    comments: list[tuple[int, str]] = []
    lines: list[int] = []
    contents: list[str] = []
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        content = raw.strip()
        if content.startswith("#"):
            comments.append((number, content[1:].strip()))
        elif content:
            lines.append(number)
            contents.append(content)
    if not contents:
        raise TrackError(f"{path}:1: the file has only comments. Write one row per point: {CENTRELINE_HEADER}.")
    separator = _separator(contents[0])
    return _Table(path, comments, lines, [_cells(content, separator) for content in contents], separator)


def _separator(row: str) -> str:
    """What divides the first row; the others must follow it."""
    if ";" in row:
        return ";"
    return "\t" if "\t" in row and "," not in row else ","


def _cells(content: str, separator: str) -> list[str]:
    cells = [cell.strip() for cell in content.split(separator)]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def _squeezed(names: Iterable[str]) -> list[str]:
    return [name.strip().lower() for name in names]


def _number(cell: str) -> float | None:
    """The cell's value, or None; `float` alone would also take 1_000."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _column_kinds(names: list[str]) -> tuple[str, ...] | None:
    """What each named column holds, or None if the names are no layout we know."""
    kinds = [next((kind for kind, known in _COLUMN_NAMES.items() if name in known), "") for name in _squeezed(names)]
    is_layout = set(kinds) - {"z"} in _LAYOUTS and len(set(kinds)) == len(kinds)
    return tuple(kinds) if is_layout else None


def _take_header(table: _Table) -> tuple[str, ...]:
    """What each column holds; a row of names is taken off the table."""
    first = table.rows[0]
    if all(_number(cell) is None for cell in first) and len(first) > 1:
        kinds = _column_kinds(first)
        if kinds is None:
            table.refuse(
                table.lines[0],
                f"the header names unknown columns ({', '.join(first)}). Name them {CENTRELINE_HEADER}.",
            )
        if len(table.rows) == 1:
            table.refuse(table.lines[0], f"the file has a header and no points. Add at least {MIN_POINTS} rows.")
        del table.rows[0], table.lines[0]
        return kinds
    for line, text in reversed(table.comments):
        kinds = _column_kinds(_cells(text, _separator(text))) if line < table.lines[0] else None
        if kinds is not None and len(kinds) == len(first):
            return kinds
    if len(first) not in _DEFAULT_COLUMNS:
        table.refuse(
            table.lines[0],
            f"a row has 3, 4 or 5 columns, got {len(first)}. Write {CENTRELINE_HEADER}, separated by commas.",
        )
    return _DEFAULT_COLUMNS[len(first)]


def _check_columns(table: _Table, num_columns: int) -> None:
    for line, row in zip(table.lines, table.rows, strict=True):
        if len(row) != num_columns:
            table.refuse(
                line,
                f"every row must have the same columns: expected {num_columns}, got {len(row)}. Complete this row.",
            )


def _numbers(table: _Table) -> FloatArray:
    """The cells as floats, (num_rows, num_columns)."""
    width = len(table.rows[0])
    _check_columns(table, width)
    if len(table.rows) > MAX_POINTS:
        table.refuse(
            table.lines[MAX_POINTS], f"a file has at most {MAX_POINTS} points, got {len(table.rows)}. Thin it."
        )
    values = np.empty((len(table.rows), width))
    for k, (line, row) in enumerate(zip(table.lines, table.rows, strict=True)):
        for column, cell in enumerate(row, start=1):
            value = _number(cell)
            if value is None:
                table.refuse(
                    line, f"column {column} must be a number, got {cell[:40]!r}. Write it with a decimal point."
                )
            if math.isnan(value):
                table.refuse(line, f"column {column} is NaN (not a number). Fill in the value or delete the row.")
            if math.isinf(value):
                table.refuse(line, f"column {column} is infinite; it must be finite. Correct the value.")
            values[k, column - 1] = value
    return values


def _assemble(columns: tuple[str, ...], values: FloatArray) -> Centreline:
    by_kind = {kind: values[:, k].copy() for k, kind in enumerate(columns)}
    if "width" in by_kind:
        by_kind["right"] = 0.5 * by_kind["width"]
        by_kind["left"] = by_kind["right"].copy()
    return Centreline(by_kind["x"], by_kind["y"], by_kind["right"], by_kind["left"])


def _refuse_first(table: _Table, is_bad: NDArray[np.bool_], offset: int, text: str) -> None:
    if is_bad.any():
        table.refuse(table.lines[int(np.argmax(is_bad)) + offset], text)


def _check_coordinates(table: _Table, centreline: Centreline) -> None:
    furthest = np.maximum(np.abs(centreline.x_m), np.abs(centreline.y_m))
    text = f"a coordinate is beyond {MAX_COORDINATE_M:.0f} m. Give metres, in UTM or from a local origin."
    _refuse_first(table, furthest > MAX_COORDINATE_M, 0, text)
    num_points = centreline.x_m.size
    if num_points < MIN_POINTS:
        table.refuse(
            table.lines[-1],
            f"a track needs at least {MIN_POINTS} points, got {num_points}. Add points, a few metres apart.",
        )


def _check_widths(table: _Table, columns: tuple[str, ...], values: FloatArray) -> None:
    for k, kind in enumerate(columns):
        if kind not in {"right", "left", "width"}:
            continue
        name, share = ("width", 2.0) if kind == "width" else ("half-width", 1.0)
        for row, width_m in enumerate(values[:, k].tolist()):
            got = f"{name} is {width_m:g} m"
            if width_m < 0.0:
                rule = "it must not be negative. Give both sides as distances, without signs."
            elif width_m == 0.0:
                rule = f"it must be positive. Check column {k + 1}."
            elif width_m < share * MIN_HALF_WIDTH_M:
                rule = f"the narrowest is {share * MIN_HALF_WIDTH_M:g} m. Are the widths in metres?"
            elif width_m > share * MAX_HALF_WIDTH_M:
                rule = f"the widest is {share * MAX_HALF_WIDTH_M:g} m. Are the columns in order?"
            else:
                continue
            table.refuse(table.lines[row], f"{got}; {rule}")


def _check_spacing(table: _Table, centreline: Centreline) -> None:
    x, y = centreline.x_m, centreline.y_m
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    spacing = np.sqrt(dx * dx + dy * dy)
    between, join = spacing[:-1], float(spacing[-1])
    text = "this point is the one before it again; each point may appear once. Delete the row."
    _refuse_first(table, between < _SAME_POINT_M, 1, text)
    if join < _SAME_POINT_M:
        table.refuse(
            table.lines[-1], "the first point is repeated at the end; the loop closes itself. Delete this row."
        )
    widest = float((centreline.width_right_m + centreline.width_left_m).max())
    if join > _JOIN_RATIO * between.max() and join > widest:
        table.refuse(
            table.lines[-1],
            f"gap at the join: the last point is {join:.1f} m from the first, others are at most {between.max():.1f} m "
            "apart. Complete the loop.",
        )
    largest = int(np.argmax(between))
    usual = float(np.median(spacing))
    if between[largest] > _GAP_RATIO * usual and between[largest] > _GAP_M:
        table.refuse(
            table.lines[largest + 1],
            f"gap of {between[largest]:.1f} m before this point, the usual spacing is {usual:.1f} m. "
            "Add the missing points.",
        )


def _check_folds(table: _Table, centreline: Centreline) -> None:
    x, y = centreline.x_m, centreline.y_m
    ahead_x, ahead_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    back_x, back_y = np.roll(ahead_x, 1), np.roll(ahead_y, 1)
    lengths = np.sqrt((ahead_x * ahead_x + ahead_y * ahead_y) * (back_x * back_x + back_y * back_y))
    is_folded = ahead_x * back_x + ahead_y * back_y < _FOLD_COSINE * lengths
    text = "the line folds back by more than 150° at this point. Check the order of the rows or add points to the bend."
    _refuse_first(table, is_folded, 0, text)


def _format_rows(path: Path, columns: tuple[FloatArray, ...], separator: str, decimals: tuple[int, ...]) -> list[str]:
    values = np.stack(columns, axis=1)
    if not np.isfinite(values).all():
        raise TrackError(f"{path}: not written, a value is not finite. Every column must hold numbers.")
    # Adding zero turns -0.0 into 0.0, so a file reads the same after a round trip.
    rounded = values.copy()
    for column, places in enumerate(decimals):
        rounded[:, column] = np.round(values[:, column], places) + 0.0
    return [
        separator.join(f"{value:.{places}f}" for value, places in zip(row, decimals, strict=True))
        for row in rounded.tolist()
    ]


def _printable(text: str) -> str:
    """The text on one line, without the control characters that would make the file unreadable."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

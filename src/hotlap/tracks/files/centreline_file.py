"""Track files: the TUM centreline CSV, read with every rule checked and written atomically.

To add another track format, write another reader that returns a `CentrelineFile` and call it from
`track_import.read_track_file`; everything after that is shared.
"""

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.errors import TrackError
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.files.csv_table import (
    CsvTable,
    find_separator,
    format_rows,
    parse_number,
    read_table,
    split_cells,
    to_printable,
)
from hotlap.tracks.geometry.centreline import MIN_POINTS, Centreline
from hotlap.tracks.geometry.node_builder import try_to_build
from hotlap.tracks.geometry.road import Fault
from hotlap.tracks.geometry.spline import FloatArray

CENTRELINE_HEADER = "x_m,y_m,w_tr_right_m,w_tr_left_m"

MIN_HALF_WIDTH_M = 0.1
MAX_HALF_WIDTH_M = 100.0
MAX_COORDINATE_M = 1e7  # a UTM northing still fits

IMPORTED_FROM = "imported from"  # begins the comment of an imported track; whose data it is, is in the next line
MAX_ATTRIBUTION_CHARACTERS = 2_000

_SAME_POINT_M = 1e-3
_JOIN_RATIO = 3.0
_GAP_RATIO = 10.0
_GAP_M = 50.0
_FOLD_COSINE = math.cos(math.radians(150.0))
_FOLD_M = 1.0
_SPIKE_COUNTER_SINE = math.sin(math.radians(30.0))

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
_LAYOUTS = [{"x", "y", "width"}, {"x", "y", "right", "left"}]  # each may have a z column, which is ignored


@dataclass(frozen=True)
class CentrelineFile:
    """A track file's points, the line of the file that each came from, if it has lines, and whose data it is."""

    path: Path
    centreline: Centreline
    lines: list[int] | None
    attribution: str = ""

    def refuse(self, fault: Fault, point: int | None = None) -> NoReturn:
        """Raise a TrackError that names the line of a point, by default the fault's own."""
        line = "" if self.lines is None else f":{self.lines[fault.point if point is None else point]}"
        raise TrackError(f"{self.path}{line}: {fault.text}")


def read_centreline(path: str | os.PathLike[str]) -> Centreline:
    """Read a track file and check every rule, including that its road can be built.

    Coordinates are not moved, however far they are from the origin; `build_nodes` does that.
    """
    return read_road(path)[0]


def read_road(path: str | os.PathLike[str]) -> tuple[Centreline, RibbonNodes]:
    """Read a track file as `read_centreline` does, and build its road."""
    file, nodes = read_file_and_road(path)
    return file.centreline, nodes


def read_file_and_road(path: str | os.PathLike[str]) -> tuple[CentrelineFile, RibbonNodes]:
    """The same, with all that the file says."""
    file = read_centreline_file(path)
    nodes = try_to_build(file.centreline)
    if isinstance(nodes, Fault):
        file.refuse(nodes)
    return file, nodes


def read_centreline_file(path: str | os.PathLike[str]) -> CentrelineFile:
    """Read a track file and check every rule of its rows, but not whether its road can be built."""
    table = read_table(Path(path), CENTRELINE_HEADER)
    columns = _take_header(table)
    table.check_columns(len(columns))
    values = table.to_numbers()
    centreline = _assemble(columns, values)
    _check_coordinates(table, centreline)
    _check_widths(table, columns, values)
    _check_spacing(table, centreline)
    _check_folds(table, centreline)
    return CentrelineFile(table.path, centreline, table.lines, _attribution(table))


def import_comment(name: str, attribution: str) -> str:
    """The comment of a track that is imported from a file of this name."""
    return f"{IMPORTED_FROM} {name}\n{attribution}".rstrip()


def write_centreline(path: str | os.PathLike[str], centreline: Centreline, comment: str | None = None) -> None:
    """Write the four-column track file, to the millimetre, atomically."""
    write_atomically(Path(path), centreline_bytes(centreline, comment, Path(path)))


def centreline_bytes(centreline: Centreline, comment: str | None = None, path: Path = Path("track.csv")) -> bytes:
    """The content of a track file; `path` is what an error names."""
    columns = (centreline.x_m, centreline.y_m, centreline.width_right_m, centreline.width_left_m)
    lines = [f"# {to_printable(line)}".rstrip() for line in (comment or "").splitlines()]
    lines.append(f"# {CENTRELINE_HEADER}")
    lines += format_rows(path, columns, ",", (3,) * len(columns))
    return "\n".join([*lines, ""]).encode()


def _attribution(table: CsvTable) -> str:
    """Whose data the file holds, as the comment of an imported track says; empty where there is no such comment."""
    texts = [text for line, text in table.comments if line < table.lines[0]]
    for text, after in pairwise(texts):
        is_header = _column_kinds(split_cells(after, find_separator(after))) is not None
        if text.startswith(IMPORTED_FROM) and not is_header and not after.startswith("("):  # only names of ways
            return to_printable(after)[:MAX_ATTRIBUTION_CHARACTERS]
    return ""


def _column_kinds(names: list[str]) -> tuple[str, ...] | None:
    """What each named column holds, or None if the names are no known layout."""
    lowered = [name.strip().lower() for name in names]
    kinds = [next((kind for kind, known in _COLUMN_NAMES.items() if name in known), "") for name in lowered]
    is_layout = set(kinds) - {"z"} in _LAYOUTS and len(set(kinds)) == len(kinds)
    return tuple(kinds) if is_layout else None


def _take_header(table: CsvTable) -> tuple[str, ...]:
    """What each column holds; a row of names is removed from the table."""
    first = table.rows[0]
    if all(parse_number(cell) is None for cell in first) and len(first) > 1:
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
        kinds = _column_kinds(split_cells(text, find_separator(text))) if line < table.lines[0] else None
        if kinds is not None and len(kinds) == len(first):
            return kinds
    if len(first) not in _DEFAULT_COLUMNS:
        table.refuse(
            table.lines[0],
            f"a row has 3, 4 or 5 columns, got {len(first)}. Write {CENTRELINE_HEADER}, separated by commas.",
        )
    return _DEFAULT_COLUMNS[len(first)]


def _assemble(columns: tuple[str, ...], values: FloatArray) -> Centreline:
    by_kind = {kind: values[:, k].copy() for k, kind in enumerate(columns)}
    if "width" in by_kind:
        by_kind["right"] = 0.5 * by_kind["width"]
        by_kind["left"] = by_kind["right"].copy()
    return Centreline(by_kind["x"], by_kind["y"], by_kind["right"], by_kind["left"])


def _check_coordinates(table: CsvTable, centreline: Centreline) -> None:
    furthest = np.maximum(np.abs(centreline.x_m), np.abs(centreline.y_m))
    text = f"a coordinate is beyond {MAX_COORDINATE_M:.0f} m. Give metres, in UTM or from a local origin."
    table.refuse_first(furthest > MAX_COORDINATE_M, text)
    num_points = centreline.x_m.size
    if num_points < MIN_POINTS:
        table.refuse(
            table.lines[-1],
            f"a track needs at least {MIN_POINTS} points, got {num_points}. Add points, a few metres apart.",
        )


def _check_widths(table: CsvTable, columns: tuple[str, ...], values: FloatArray) -> None:
    for k, kind in enumerate(columns):
        if kind not in {"right", "left", "width"}:
            continue
        name, fraction = ("width", 2.0) if kind == "width" else ("half-width", 1.0)
        for row, width_m in enumerate(values[:, k].tolist()):
            got = f"{name} is {width_m:g} m"
            if width_m < 0.0:
                rule = "it must not be negative. Give both sides as distances, without signs."
            elif width_m == 0.0:
                rule = f"it must be positive. Check column {k + 1}."
            elif width_m < fraction * MIN_HALF_WIDTH_M:
                rule = f"the narrowest is {fraction * MIN_HALF_WIDTH_M:g} m. Are the widths in metres?"
            elif width_m > fraction * MAX_HALF_WIDTH_M:
                rule = f"the widest is {fraction * MAX_HALF_WIDTH_M:g} m. Are the columns in order?"
            else:
                continue
            table.refuse(table.lines[row], f"{got}; {rule}")


def _check_spacing(table: CsvTable, centreline: Centreline) -> None:
    x, y = centreline.x_m, centreline.y_m
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    spacing = np.sqrt(dx * dx + dy * dy)
    between, join = spacing[:-1], float(spacing[-1])
    text = "this point repeats the one before it; each point may appear once. Delete the row."
    table.refuse_first(between < _SAME_POINT_M, text, offset=1)
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


def _check_folds(table: CsvTable, centreline: Centreline) -> None:
    x, y = centreline.x_m, centreline.y_m
    ahead_x, ahead_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    back_x, back_y = np.roll(ahead_x, 1), np.roll(ahead_y, 1)
    lengths = np.sqrt((ahead_x * ahead_x + ahead_y * ahead_y) * (back_x * back_x + back_y * back_y))
    cosine = (ahead_x * back_x + ahead_y * back_y) / lengths
    sine = (back_x * ahead_y - back_y * ahead_x) / lengths
    text = "the line folds back by more than 150° at this point. Check the order of the rows or add points to the bend."
    table.refuse_first(cosine < _FOLD_COSINE, text)
    # The same over two points that nearly coincide.
    next_x, next_y = np.roll(ahead_x, -1), np.roll(ahead_y, -1)
    lengths = np.sqrt((next_x * next_x + next_y * next_y) * (back_x * back_x + back_y * back_y))
    is_short = ahead_x * ahead_x + ahead_y * ahead_y < _FOLD_M * _FOLD_M
    table.refuse_first(is_short & (next_x * back_x + next_y * back_y < _FOLD_COSINE * lengths), text)
    # A spike goes out and comes back: a sharp turn between two turns to the other side.
    counter_turn = np.minimum(-np.sign(sine) * np.roll(sine, -1), -np.sign(sine) * np.roll(sine, 1))
    is_spike = (cosine < 0.0) & (counter_turn > _SPIKE_COUNTER_SINE)
    text = "this point is a spike: the line goes out to it and back, by more than 90°. Correct or delete the point."
    table.refuse_first(is_spike, text)

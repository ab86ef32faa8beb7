"""Raceline files: the TUM raceline CSV, read with every rule checked and written atomically."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.tracks.files.csv_table import format_rows, read_table, to_printable
from hotlap.tracks.geometry.spline import FloatArray

RACELINE_COLUMNS = ("s_m", "x_m", "y_m", "psi_rad", "kappa_radpm", "vx_mps", "ax_mps2")
RACELINE_DECIMALS = (3, 3, 3, 5, 6, 3, 3)  # a millimetre, and angles and curvatures to match


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


def read_raceline(path: str | os.PathLike[str]) -> Raceline:
    """Read a raceline file; `#` lines other than the column names become the comment."""
    names = "; ".join(RACELINE_COLUMNS)
    table = read_table(Path(path), names)
    num_columns = len(table.rows[0])
    if num_columns != len(RACELINE_COLUMNS):
        table.refuse(
            table.lines[0], f"a raceline has {len(RACELINE_COLUMNS)} columns, got {num_columns}. Write {names}."
        )
    values = table.to_numbers()
    if len(values) < 2:
        table.refuse(table.lines[-1], f"a raceline needs at least 2 points, got {len(values)}. Add the rest.")
    table.refuse_first(np.diff(values[:, 0]) <= 0.0, "s_m must grow from row to row. Sort the rows by s_m.", offset=1)
    table.refuse_first(values[:, 5] < 0.0, "vx_mps is negative; a raceline is driven forward. Check column 6.")
    header = _normalise(RACELINE_COLUMNS)
    texts = [text for _, text in table.comments if _normalise(text.split(table.separator)) != header]
    s, x, y, psi, kappa, vx, ax = values.T.copy()
    return Raceline(s, x, y, psi, kappa, vx, ax, comment=" ".join(texts).strip())


def write_raceline(path: str | os.PathLike[str], raceline: Raceline) -> None:
    """Write two `#` lines (the comment, the column names), then one row per point; atomically."""
    columns = tuple(getattr(raceline, name) for name in RACELINE_COLUMNS)
    lines = [f"# {to_printable(raceline.comment)}".rstrip(), f"# {'; '.join(RACELINE_COLUMNS)}"]
    lines += format_rows(Path(path), columns, "; ", RACELINE_DECIMALS)
    write_atomically(Path(path), "\n".join([*lines, ""]).encode())


def _normalise(names: Iterable[str]) -> list[str]:
    return [name.strip().lower() for name in names]

"""Closed polylines: their self-crossings, and pairs of nodes that are close to each other."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.tracks.geometry.spline import FloatArray, IntArray

_PAIRS_AT_ONCE = 1 << 18  # compared in one part of the search for near pairs


@dataclass(frozen=True)
class Crossing:
    """Two nodes whose segments to the next node intersect: an overpass."""

    first: int
    second: int


def lag(a: int, b: int, size: int) -> int:
    """Number of steps between two nodes, the shorter way round."""
    gap = abs(a - b)
    return min(gap, size - gap)


def near_pairs(x: FloatArray, y: FloatArray, reach: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Nodes i, j at most `reach` apart and at least two nodes from each other, with their squared distance.

    In parts, in the order of i. Compares a node with those in its own and the eight neighbouring cells of
    a grid; the parts limit the memory where many nodes share a cell.
    """
    size = x.size
    column = np.floor((x - x.min()) / reach).astype(np.int64)
    row = np.floor((y - y.min()) / reach).astype(np.int64) + 1  # cells below the first row and above the last are free
    column_height = int(row.max()) + 2
    cell = column * column_height + row
    by_cell = np.argsort(cell, kind="stable")
    sorted_cells = cell[by_cell]
    # The three cells of each column that are neighbours follow each other.
    middle = cell[:, None] + column_height * np.arange(-1, 2)
    first = np.searchsorted(sorted_cells, middle - 1, side="left")
    counts = np.searchsorted(sorted_cells, middle + 1, side="right") - first
    before = np.concatenate(([0], np.cumsum(counts.sum(axis=1))))
    start = 0
    while start < size:
        end = max(start + 1, int(np.searchsorted(before, before[start] + _PAIRS_AT_ONCE, side="right")) - 1)
        count = counts[start:end].ravel()
        i = np.repeat(np.arange(start, end), counts[start:end].sum(axis=1))
        skipped = np.cumsum(count) - count
        j = by_cell[np.repeat(first[start:end].ravel() - skipped, count) + np.arange(i.size)]
        gap = np.abs(i - j)
        is_apart = np.minimum(gap, size - gap) >= 2
        i, j = i[is_apart], j[is_apart]
        dx, dy = x[j] - x[i], y[j] - y[i]
        square = dx * dx + dy * dy
        is_near = square <= reach * reach
        yield i[is_near], j[is_near], square[is_near]
        start = end


def crossing_segments(x: FloatArray, y: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Nodes i < j whose segments to the next node intersect, part by part, in the order of i and then of j."""
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    reach = 2.0 * float(np.sqrt((dx * dx + dy * dy).max()))
    for i, j, _ in near_pairs(x, y, reach):
        i, j = i[i < j], j[i < j]
        is_cut = _straddles(x, y, dx, dy, i, j) & _straddles(x, y, dx, dy, j, i)
        i, j = i[is_cut], j[is_cut]
        order = np.lexsort((j, i))
        yield i[order], j[order]


def self_crossings(x: FloatArray, y: FloatArray, limit: int | None = None) -> list[Crossing]:
    """Every place where the closed polyline crosses itself; the search stops once it has found `limit`."""
    found: list[Crossing] = []
    for i, j in crossing_segments(x, y):
        found += map(Crossing, i.tolist(), j.tolist())
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


def _straddles(
    x: FloatArray, y: FloatArray, dx: FloatArray, dy: FloatArray, i: IntArray, j: IntArray
) -> NDArray[np.bool_]:
    """Whether segment j has its ends on different sides of segment i's line."""
    px, py = x[j] - x[i], y[j] - y[i]
    start = dx[i] * py - dy[i] * px
    end = dx[i] * (py + dy[j]) - dy[i] * (px + dx[j])
    return np.asarray((start > 0.0) != (end > 0.0))

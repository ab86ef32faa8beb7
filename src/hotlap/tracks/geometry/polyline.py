"""Closed polylines: their self-crossings, and pairs of nodes that are close to each other."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.tracks.geometry.spline import FloatArray, IntArray

_BLOCK = 64  # nodes compared at once in the search for near pairs


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

    Compares blocks of nodes with the nodes in the block's bounding box, so memory is linear in the track's length.
    """
    size = x.size
    for start in range(0, size, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, size))
        bx, by = x[rows], y[rows]
        in_box = (x >= bx.min() - reach) & (x <= bx.max() + reach) & (y >= by.min() - reach) & (y <= by.max() + reach)
        cols = np.flatnonzero(in_box)
        dx, dy = x[cols][None, :] - bx[:, None], y[cols][None, :] - by[:, None]
        square = dx * dx + dy * dy
        row, col = np.nonzero(square <= reach * reach)
        i, j = rows[row], cols[col]
        gap = np.abs(i - j)
        apart = np.minimum(gap, size - gap) >= 2
        yield i[apart], j[apart], square[row, col][apart]


def crossing_segments(x: FloatArray, y: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Nodes i < j whose segments to the next node intersect, block by block in the order of i."""
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    reach = 2.0 * float(np.sqrt((dx * dx + dy * dy).max()))
    for i, j, _ in near_pairs(x, y, reach):
        i, j = i[i < j], j[i < j]
        is_cut = _straddles(x, y, dx, dy, i, j) & _straddles(x, y, dx, dy, j, i)
        yield i[is_cut], j[is_cut]


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

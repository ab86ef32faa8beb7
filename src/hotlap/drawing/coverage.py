"""How much of each pixel a shape covers, from 0 to 1: this is what makes edges smooth.

Polygons are exact. Each edge adds the area between it and the right side of its pixel to that pixel, and the rest to
the next one; the running sum along a row is then the covered area (the method of the font renderer font-rs). Strokes
are drawn by distance: a pixel is covered where it is closer to the line than half its width, so joins and ends are
round.

Points are in pixels, x to the right, y down; the pixel in column 0 and row 0 reaches from 0 to 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.drawing.colours import Floats

_LEAST = 1.0 / 512.0  # coverage that changes no colour
_MAX_PAIRS = 2_000_000  # of a pixel and a piece of a line, in memory at once
_MAX_PIECE_PX = 16.0  # of a slanted line: longer ones have too many pixels around them that they do not touch

Ints = NDArray[np.int64]


class Box(NamedTuple):
    """A rectangle of whole pixels."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Number of columns."""
        return max(self.right - self.left, 0)

    @property
    def height(self) -> int:
        """Number of rows."""
        return max(self.bottom - self.top, 0)

    def within(self, other: "Box") -> "Box":
        """The part of this box that lies in another."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        return Box(left, top, max(min(self.right, other.right), left), max(min(self.bottom, other.bottom), top))

    def around(self, points: Floats, reach: float = 0.0) -> "Box":
        """The part of this box that has points (…, 2) in it, or within `reach` of it."""
        flat = points.reshape(-1, 2)
        if not len(flat):
            return Box(self.left, self.top, self.left, self.top)
        # Limits first: a point may be too far away for an integer.
        low = np.clip(flat.min(axis=0) - reach, (self.left, self.top), (self.right, self.bottom))
        high = np.clip(flat.max(axis=0) + reach, (self.left, self.top), (self.right, self.bottom))
        left, top = np.floor(low).astype(int).tolist()
        right, bottom = np.ceil(high).astype(int).tolist()
        return Box(left, top, right, bottom)


def cover_polygons(corners: Floats, weights: Floats, box: Box) -> tuple[Ints, Floats]:
    """Pixels of a box, and sums over polygons (num_polygons, num_corners, 2) of coverage times weight.

    `weights` is (num_polygons, num_weights), the sums are (num_weights, num_pixels); a pixel is row times width plus
    column. The first weight must be positive. Where polygons overlap, each of them counts.
    """
    x, y = corners[..., 0] - box.left, corners[..., 1] - box.top
    end_x, end_y = np.roll(x, -1, axis=1), np.roll(y, -1, axis=1)
    turn = np.sign((end_x * y - x * end_y).sum(axis=1))  # so that the order of the corners does not matter
    edge, row, start, end, height = _split_rows(x.ravel(), y.ravel(), end_x.ravel(), end_y.ravel(), box.height)
    piece, column, middle, part = _split_columns(start, end)
    amount = part * height[piece]
    middle[column < 0] = 0.0  # what lies on the left covers the row from its start
    stride = box.width + 2  # what lies on the right goes where it is not read
    at = row[piece] * stride + np.clip(column, 0, box.width)
    polygon = edge[piece] // corners.shape[1]
    found: Ints | None = None
    sums = []
    for weight in (weights * turn[:, None]).T:
        weighted = weight[polygon] * amount
        flat = np.bincount(at, weighted * (1.0 - middle), minlength=box.height * stride)
        flat += np.bincount(at + 1, weighted * middle, minlength=box.height * stride)
        covered = np.cumsum(flat.reshape(box.height, stride)[:, : box.width], axis=1).ravel()
        found = np.flatnonzero(covered > _LEAST) if found is None else found
        sums.append(covered[found])
    return np.asarray(found), np.array(sums)


def _split_rows(
    x: Floats, y: Floats, end_x: Floats, end_y: Floats, num_rows: int
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Cut edges into one piece a row: the edge, row, both x and height of each piece, negative where it leads up."""
    top, bottom = np.clip(np.minimum(y, end_y), 0.0, num_rows), np.clip(np.maximum(y, end_y), 0.0, num_rows)
    slope = (end_x - x) / np.where(end_y == y, 1.0, end_y - y)
    first = np.floor(top).astype(np.int64)
    counts = np.where(bottom > top, np.ceil(bottom).astype(np.int64) - first, 0)
    edge = np.repeat(np.arange(len(x)), counts)
    row = first[edge] + _count_up(counts)
    upper, lower = np.maximum(row, top[edge]), np.minimum(row + 1, bottom[edge])
    lean = slope[edge]
    offset = x[edge] - lean * y[edge]
    return edge, row, offset + lean * upper, offset + lean * lower, np.sign(end_y - y)[edge] * (lower - upper)


def _split_columns(start: Floats, end: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Cut pieces from x to x into one a column: the piece, column, middle within the column, and part of the piece."""
    left, right = np.minimum(start, end), np.maximum(start, end)
    first = np.floor(left).astype(np.int64)
    counts = np.maximum(np.ceil(right).astype(np.int64) - first, 1)
    piece = np.repeat(np.arange(len(left)), counts)
    column = first[piece] + _count_up(counts)
    near, far = np.maximum(column, left[piece]), np.minimum(column + 1, right[piece])
    width = (right - left)[piece]
    part = np.where(width > 0.0, (far - near) / np.where(width > 0.0, width, 1.0), 1.0)
    return piece, column, 0.5 * (near + far) - column, part


def _count_up(counts: Ints) -> Ints:
    """0, 1, 2 … for each count, one after the other: 0 1 2 0 1 for 3 and 2."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def cover_strokes(segments: Floats, radius: float, box: Box) -> tuple[Ints, Floats, Ints]:
    """Pixels of a box, their coverage by segments (num_segments, 2, 2) of a radius, and the segment on top of each.

    A pixel is row times width plus column. On top is the last segment over its middle, else the nearest.
    """
    distance = np.full(box.height * box.width, np.inf)
    nearest, last = np.zeros((2, box.height * box.width), np.int64)  # `last` counts from 1
    pieces, owner = _cut_slanted(segments - (box.left, box.top))
    reach = radius + 0.5
    low = np.floor(np.clip(pieces.min(axis=1) - reach, 0.0, (box.width, box.height))).astype(np.int64)
    high = np.ceil(np.clip(pieces.max(axis=1) + reach, 0.0, (box.width, box.height))).astype(np.int64)
    width, height = (high - low).T
    counts = width * height
    chunk = np.cumsum(counts) // _MAX_PAIRS
    for number in np.unique(chunk[counts > 0]).tolist():
        chosen = np.flatnonzero((chunk == number) & (counts > 0))
        piece = np.repeat(chosen, counts[chosen])
        row, column = np.divmod(_count_up(counts[chosen]), width[piece])
        row, column = row + low[piece, 1], column + low[piece, 0]
        away = _distances(column + 0.5, row + 0.5, pieces, piece)
        at = row * box.width + column
        np.minimum.at(distance, at, away)
        is_nearest = away <= distance[at]
        nearest[at[is_nearest]] = owner[piece[is_nearest]]
        is_over = away < radius
        np.maximum.at(last, at[is_over], owner[piece[is_over]] + 1)
    found = np.flatnonzero(distance < reach)
    away = distance[found]
    # A pixel is one wide: its overlap with the line, in the direction from one to the other.
    coverage = np.minimum(radius, away + 0.5) - np.maximum(-radius, away - 0.5)
    return found, coverage, np.where(last[found] > 0, last[found] - 1, nearest[found])


def _cut_slanted(segments: Floats) -> tuple[Floats, Ints]:
    """Cut long slanted segments into equal pieces; returns these and the index of the segment each belongs to."""
    across = segments[:, 1] - segments[:, 0]
    counts = np.maximum(np.ceil(np.abs(across).min(axis=1) / _MAX_PIECE_PX), 1.0).astype(np.int64)
    owner = np.repeat(np.arange(len(segments)), counts)
    step = across[owner] / counts[owner, None]
    start = segments[owner, 0] + _count_up(counts)[:, None] * step
    return np.stack((start, start + step), axis=1), owner


def _distances(x: Floats, y: Floats, segments: Floats, which: Ints) -> Floats:
    """The distance of each point from its segment of (num_segments, 2, 2), whose index is in `which`."""
    (start_x, start_y), (along_x, along_y) = segments[:, 0].T, (segments[:, 1] - segments[:, 0]).T
    squared = along_x**2 + along_y**2
    squared[squared == 0.0] = 1.0
    x, y = x - start_x[which], y - start_y[which]
    along_x, along_y, inverse = along_x[which], along_y[which], (1.0 / squared)[which]
    part = np.clip((x * along_x + y * along_y) * inverse, 0.0, 1.0)
    return np.asarray(np.sqrt((x - part * along_x) ** 2 + (y - part * along_y) ** 2))

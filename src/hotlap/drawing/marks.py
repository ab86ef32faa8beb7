"""What a picture consists of: lines, polygons, dots, crosses and texts, each at places of its own coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hotlap.drawing.colours import Floats, parse_colour, parse_colours
from hotlap.drawing.coverage import Box
from hotlap.drawing.lettering import POINTS_PER_INCH, Align, Vertical, below_baseline, text_mask
from hotlap.drawing.raster import Raster

_CROSS = np.array(
    [(-2, -4), (0, -2), (2, -4), (4, -2), (2, 0), (4, 2), (2, 4), (0, 2), (-2, 4), (-4, 2), (-2, 0), (-4, -2)]
)
_LEFT_OF: dict[Align, float] = {"left": 0.0, "centre": 0.5, "right": 1.0}


class View(Protocol):
    """Where coordinates are in the picture."""

    @property
    def dpi(self) -> float:
        """Pixels per inch."""

    @property
    def clip(self) -> Box:
        """What lies outside is not drawn."""

    def to_pixels(self, points: Floats) -> Floats:
        """The places of points (…, 2) in pixels."""


class Mark(Protocol):
    """A part of a picture."""

    @property
    def layer(self) -> int:
        """Marks of a higher layer lie on top."""

    def draw(self, raster: Raster, view: View) -> None:
        """Paint it."""

    def extent(self) -> Floats:
        """Points (num_points, 2) that axes should have room for."""


def join(x: ArrayLike, y: ArrayLike) -> Floats:
    """Points (num_points, 2) from their coordinates; a single number stands for all points."""
    return np.stack(np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64)), axis=-1).reshape(-1, 2)


@dataclass(frozen=True)
class Line:
    """A line through points (num_points, 2), with gaps where they are NaN; dashes are in widths of the line.

    `colour` may also be one for each segment (num_points - 1, 3).
    """

    points: Floats
    colour: str | Floats
    width_pt: float
    opacity: float = 1.0
    dashes: tuple[float, float] | None = None
    is_clipped: bool = True
    layer: int = 5

    def draw(self, raster: Raster, view: View) -> None:
        """Paint it."""
        points = view.to_pixels(self.points)
        width = self.width_pt * view.dpi / POINTS_PER_INCH
        segments = np.stack((points[:-1], points[1:]), axis=1)
        is_whole = np.isfinite(segments).all(axis=(1, 2))
        colours = parse_colours(self.colour)
        if colours.ndim > 1:
            colours = colours[is_whole]
        segments = segments[is_whole]
        if self.dashes is not None:
            segments = _cut_dashes(segments, width, self.dashes)
        clip = view.clip if self.is_clipped else None
        if len(segments):
            raster.stroke(segments, width, colours, opacity=self.opacity, clip=clip)

    def extent(self) -> Floats:
        """Its points."""
        return self.points


def _cut_dashes(segments: Floats, width: float, dashes: tuple[float, float]) -> Floats:
    """The dashes along connected segments, shorter by their round ends."""
    on, off = (width * length for length in dashes)
    period, begin, end = on + off, 0.5 * width, max(on - 0.5 * width, 0.51 * width)
    lengths = np.sqrt(((segments[:, 1] - segments[:, 0]) ** 2).sum(axis=1))
    ends = np.concatenate(([0.0], np.cumsum(lengths)))
    starts = np.arange(0.0, ends[-1], period)
    knots = np.unique(np.clip(np.concatenate((ends, starts + begin, starts + end)), 0.0, ends[-1]))
    middle = 0.5 * (knots[:-1] + knots[1:]) % period
    points = np.concatenate((segments[:1, 0], segments[:, 1]))
    places = np.stack([np.interp(knots, ends, column) for column in points.T], axis=1)
    is_dash = (middle > begin) & (middle < end)
    return np.stack((places[:-1][is_dash], places[1:][is_dash]), axis=1)


@dataclass(frozen=True)
class Polygons:
    """Filled polygons (num_polygons, num_corners, 2) in one colour, or in one for each; touching ones have no seam."""

    corners: Floats
    colours: str | Sequence[str] | Floats
    opacity: float = 1.0
    layer: int = 2

    def draw(self, raster: Raster, view: View) -> None:
        """Paint them."""
        if len(self.corners):
            corners = view.to_pixels(self.corners)
            raster.fill(corners, parse_colours(self.colours), opacity=self.opacity, clip=view.clip)

    def extent(self) -> Floats:
        """Their corners."""
        return self.corners.reshape(-1, 2)


@dataclass(frozen=True)
class Dots:
    """Discs at points (num_points, 2), each with a rim if `rim` is a colour."""

    points: Floats
    colour: str
    diameter_pt: float
    rim: str = ""
    layer: int = 6

    def draw(self, raster: Raster, view: View) -> None:
        """Paint them."""
        scale = view.dpi / POINTS_PER_INCH
        points = view.to_pixels(self.points)
        discs = np.stack((points, points), axis=1)[np.isfinite(points).all(axis=1)]
        # With rims one after the other, so that the rim of each lies on the dot before.
        for part in np.split(discs, len(discs)) if self.rim and len(discs) else [discs]:
            if self.rim:
                raster.stroke(part, (self.diameter_pt + 2.0) * scale, parse_colour(self.rim))
            if len(part):
                raster.stroke(part, self.diameter_pt * scale, parse_colour(self.colour))

    def extent(self) -> Floats:
        """Their centres."""
        return self.points


@dataclass(frozen=True)
class Crosses:
    """Thick crosses with a rim at points (num_points, 2)."""

    points: Floats
    colour: str
    size_pt: float
    rim: str
    layer: int = 6

    def draw(self, raster: Raster, view: View) -> None:
        """Paint them."""
        scale = view.dpi / POINTS_PER_INCH
        for centre in view.to_pixels(self.points):
            corners = centre + _CROSS * (self.size_pt * scale / 8.0)
            raster.stroke(
                np.stack((corners, np.roll(corners, -1, axis=0)), axis=1), 2.0 * scale, parse_colour(self.rim)
            )
            raster.fill(corners[None], parse_colour(self.colour))

    def extent(self) -> Floats:
        """Their centres."""
        return self.points


@dataclass(frozen=True)
class Label:
    """A text at a point, moved by some points (1/72 inch) to the right and up; upright texts read from below.

    With a colour in `disc` it stands on a disc.
    """

    text: str
    point: tuple[float, float]
    colour: str
    size_pt: float
    is_bold: bool = False
    align: Align = "left"
    vertical: Vertical = "middle"
    offset_pt: tuple[float, float] = (0.0, 0.0)
    is_upright: bool = False
    disc: str = ""
    disc_pt: float = 0.0  # its diameter
    layer: int = 10

    def draw(self, raster: Raster, view: View) -> None:
        """Paint it."""
        if not self.text:
            return
        scale = view.dpi / POINTS_PER_INCH
        x, y = view.to_pixels(np.array(self.point)).tolist()
        x, y = x + self.offset_pt[0] * scale, y - self.offset_pt[1] * scale
        if self.disc:
            raster.stroke(np.array([[(x, y), (x, y)]]), self.disc_pt * scale, parse_colour(self.disc))
        mask, left, top = text_mask(self.text, self.size_pt * scale, is_bold=self.is_bold)
        along = left - _LEFT_OF[self.align] * (2 * left + mask.shape[1])
        across = top + below_baseline(self.vertical) * self.size_pt * scale
        if self.is_upright:
            mask, column, row = np.rot90(mask), x + across, y - along - mask.shape[1]
        else:
            column, row = x + along, y + across
        raster.stamp(mask, round(column), round(row), parse_colour(self.colour))

    def extent(self) -> Floats:
        """None: a text needs no room in the axes."""
        return np.empty((0, 2))

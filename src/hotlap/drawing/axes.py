"""Axes: a box of the picture with coordinates of its own, ticks, grid and labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hotlap.drawing.colours import Floats
from hotlap.drawing.coverage import Box
from hotlap.drawing.lettering import POINTS_PER_INCH
from hotlap.drawing.marks import Crosses, Dots, Label, Line, Mark, Polygons, join
from hotlap.drawing.raster import Raster
from hotlap.drawing.ticks import choose_ticks, write_ticks

_MARGIN = 0.05  # of the values' range, free at both ends of an axis without limits
_TICK_GAP_PT = 5.0  # between axes and the names of ticks


@dataclass
class Axis:
    """One direction of axes; without limits it fits the marks, without ticks it chooses round numbers."""

    limits: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    names: Sequence[str] | None = None
    max_intervals: int = 8
    write: Callable[[float], str] | None = None  # the name of a tick
    has_names: bool = True
    has_grid: bool = True
    is_reversed: bool = False  # high values on the left or at the bottom
    label: str = ""
    label_gap_in: float = 0.38  # from the axes to the middle of the label

    def range_of(self, values: Floats) -> tuple[float, float]:
        """The values at both ends: the limits, or those around `values`."""
        if self.limits is not None:
            return self.limits
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        margin = _MARGIN * (high - low or abs(high) or 1.0)
        return low - margin, high + margin

    def choose(self, low: float, high: float) -> tuple[Sequence[float], Sequence[str]]:
        """Places and names of the ticks."""
        ticks = choose_ticks(low, high, self.max_intervals) if self.ticks is None else self.ticks
        if self.names is not None:
            return ticks, self.names
        return ticks, write_ticks(ticks) if self.write is None else [self.write(tick) for tick in ticks]


@dataclass(frozen=True)
class AxesStyle:
    """The look of ticks and grid."""

    grid: str
    text: str
    tick_names: str = ""  # of the y axis, where they differ
    size_pt: float = 10.0
    tick_size_pt: float = 10.0
    grid_pt: float = 0.8


@dataclass
class Axes:
    """A box of the picture, in inches from its upper left corner, and the marks in it.

    Infinite coordinates stand for the ends of an axis: a line from -inf to inf crosses the whole box.
    """

    left_in: float
    top_in: float
    width_in: float
    height_in: float
    style: AxesStyle | None = None  # none: neither ticks nor grid
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    marks: list[Mark] = field(default_factory=list)

    @property
    def bottom_in(self) -> float:
        """The lower edge."""
        return self.top_in + self.height_in

    @property
    def lines(self) -> list[Line]:
        """The lines, as they were added."""
        return [mark for mark in self.marks if isinstance(mark, Line)]

    @property
    def labels(self) -> list[Label]:
        """The texts, as they were added."""
        return [mark for mark in self.marks if isinstance(mark, Label)]

    @property
    def x_range(self) -> tuple[float, float]:
        """The values at both ends of the x axis."""
        return self.x.range_of(self._extent()[:, 0])

    @property
    def y_range(self) -> tuple[float, float]:
        """The values at both ends of the y axis."""
        return self.y.range_of(self._extent()[:, 1])

    def _extent(self) -> Floats:
        return np.concatenate([np.empty((0, 2)), *(mark.extent() for mark in self.marks)])

    def line(self, x: ArrayLike, y: ArrayLike, colour: str | Floats, width_pt: float = 1.8, **style: Any) -> None:
        """Add a line through points; `style` has further fields of Line."""
        self.marks.append(Line(join(x, y), colour, width_pt, **style))

    def horizontal(self, y: float, colour: str, width_pt: float, **style: Any) -> None:
        """Add a line across the whole width."""
        self.line((-np.inf, np.inf), y, colour, width_pt, **style)

    def vertical(self, x: float, colour: str, width_pt: float, **style: Any) -> None:
        """Add a line across the whole height."""
        self.line(x, (-np.inf, np.inf), colour, width_pt, **style)

    def band(self, x: ArrayLike, lower: ArrayLike, upper: ArrayLike, colour: str, **style: Any) -> None:
        """Fill between two curves."""
        corners = np.concatenate((join(x, lower), join(x, upper)[::-1]))
        self.marks.append(Polygons(corners[None], colour, **style))

    def polygons(self, corners: Floats, colours: str | Sequence[str] | Floats, **style: Any) -> None:
        """Fill polygons (num_polygons, num_corners, 2)."""
        self.marks.append(Polygons(corners, colours, **style))

    def dots(self, x: ArrayLike, y: ArrayLike, colour: str, diameter_pt: float, **style: Any) -> None:
        """Add discs."""
        self.marks.append(Dots(join(x, y), colour, diameter_pt, **style))

    def crosses(self, x: ArrayLike, y: ArrayLike, colour: str, size_pt: float, **style: Any) -> None:
        """Add crosses."""
        self.marks.append(Crosses(join(x, y), colour, size_pt, **style))

    def text(self, text: str, x: float, y: float, colour: str, size_pt: float = 10.0, **style: Any) -> None:
        """Add a text; `style` has further fields of Label."""
        self.marks.append(Label(text, (x, y), colour, size_pt, **style))

    def draw(self, raster: Raster, dpi: float) -> None:
        """Paint grid, marks and names."""
        view = AxesView(self, dpi)
        frame = [] if self.style is None else [*self._frame_x(self.style, view), *self._frame_y(self.style, view)]
        for mark in sorted((*frame, *self.marks), key=lambda mark: mark.layer):
            mark.draw(raster, view)

    def _frame_x(self, style: AxesStyle, view: "AxesView") -> Iterator[Mark]:
        """Grid, names of ticks and label of the x axis, these below the box."""
        bottom = view.y_ends[0]
        down = 0.0, -_TICK_GAP_PT - 0.5 * style.tick_size_pt
        for tick, name in zip(*self.x.choose(*sorted(view.x_ends)), strict=True):
            if self.x.has_grid:
                yield Line(join(tick, (-np.inf, np.inf)), style.grid, style.grid_pt, is_clipped=False, layer=0)
            if self.x.has_names:
                yield Label(
                    name, (tick, bottom), style.text, style.tick_size_pt, align="centre", offset_pt=down, layer=0
                )
        middle = 0.5 * sum(view.x_ends), bottom
        down = 0.0, -POINTS_PER_INCH * self.x.label_gap_in
        yield Label(self.x.label, middle, style.text, style.size_pt, align="centre", offset_pt=down, layer=0)

    def _frame_y(self, style: AxesStyle, view: "AxesView") -> Iterator[Mark]:
        """Grid, names of ticks and label of the y axis, these on the left of the box."""
        left, colour = view.x_ends[0], style.tick_names or style.text
        aside = -_TICK_GAP_PT, 0.0
        for tick, name in zip(*self.y.choose(*sorted(view.y_ends)), strict=True):
            if self.y.has_grid:
                yield Line(join((-np.inf, np.inf), tick), style.grid, style.grid_pt, is_clipped=False, layer=0)
            if self.y.has_names:
                yield Label(name, (left, tick), colour, style.tick_size_pt, align="right", offset_pt=aside, layer=0)
        middle = left, 0.5 * sum(view.y_ends)
        aside = -POINTS_PER_INCH * self.y.label_gap_in, 0.0
        upright: dict[str, Any] = {"align": "centre", "is_upright": True}
        yield Label(self.y.label, middle, style.text, style.size_pt, offset_pt=aside, layer=0, **upright)


class AxesView:
    """Where the coordinates of axes are in the picture."""

    def __init__(self, axes: Axes, dpi: float) -> None:
        self.dpi = dpi
        self.x_ends = axes.x_range[:: -1 if axes.x.is_reversed else 1]
        self.y_ends = axes.y_range[:: -1 if axes.y.is_reversed else 1]
        self._corner = np.array([axes.left_in, axes.bottom_in]) * dpi
        self._size = np.array([axes.width_in, -axes.height_in]) * dpi
        left, top = round(axes.left_in * dpi), round(axes.top_in * dpi)
        self.clip = Box(left, top, round(left + self._size[0]), round(self._corner[1]))

    def to_pixels(self, points: Floats) -> Floats:
        """The places of points (…, 2); infinite coordinates are at the ends."""
        start = np.array([self.x_ends[0], self.y_ends[0]])
        end = np.array([self.x_ends[1], self.y_ends[1]])
        finite = np.where(np.isposinf(points), end, np.where(np.isneginf(points), start, points))
        return np.asarray(self._corner + (finite - start) / (end - start) * self._size)

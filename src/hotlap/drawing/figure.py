"""A picture of a size in inches: axes, and lines and texts beside them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hotlap.drawing.axes import Axes
from hotlap.drawing.colours import ColourScale, Floats
from hotlap.drawing.coverage import Box
from hotlap.drawing.marks import Label, Line, Mark, Polygons, join
from hotlap.drawing.raster import Raster
from hotlap.drawing.ticks import choose_ticks, write_ticks

_BAR_CELLS = 256


@dataclass
class Figure:
    """A picture; places are in inches from its upper left corner, y down."""

    width_in: float
    height_in: float
    background: str
    axes: list[Axes] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def labels(self) -> list[Label]:
        """The texts beside the axes, as they were added."""
        return [mark for mark in self.marks if isinstance(mark, Label)]

    def add_axes(self, axes: Axes) -> Axes:
        """Add axes; returns them."""
        self.axes.append(axes)
        return axes

    def line(self, x_in: ArrayLike, y_in: ArrayLike, colour: str, width_pt: float) -> None:
        """Add a line."""
        self.marks.append(Line(join(x_in, y_in), colour, width_pt))

    def text(self, text: str, x_in: float, y_in: float, colour: str, size_pt: float, **style: Any) -> None:
        """Add a text; `style` has further fields of Label."""
        self.marks.append(Label(text, (x_in, y_in), colour, size_pt, **style))

    def colour_bar(self, scale: ColourScale, box_in: tuple[float, float, float, float], colour: str) -> None:
        """Add a bar with the colours of a scale, its values beside it; the box is left, top, width and height."""
        left, top, width, height = box_in
        edges = np.linspace(top + height, top, _BAR_CELLS + 1)
        sides = ((left, edges[:-1]), (left + width, edges[:-1]), (left + width, edges[1:]), (left, edges[1:]))
        values = np.linspace(scale.low, scale.high, _BAR_CELLS)
        self.marks.append(Polygons(np.stack([join(x, y) for x, y in sides], axis=1), scale(values)))
        ticks = choose_ticks(scale.low, scale.high, max(int(height / 0.4), 3))
        for tick, name in zip(ticks, write_ticks(ticks), strict=True):
            up = (tick - scale.low) / ((scale.high - scale.low) or 1.0) * height
            self.text(name, left + width, top + height - up, colour, 9.0, offset_pt=(5.0, 0.0))

    def to_png(self, dpi: float) -> bytes:
        """The picture as PNG bytes."""
        # A half pixel more or less of a size that is not quite exact must not matter.
        raster = Raster(int(self.width_in * dpi + 1e-6), int(self.height_in * dpi + 1e-6), self.background)
        for axes in self.axes:
            axes.draw(raster, dpi)
        view = FigureView(dpi, raster.box)
        for mark in sorted(self.marks, key=lambda mark: mark.layer):
            mark.draw(raster, view)
        return raster.to_png(dpi)


@dataclass(frozen=True)
class FigureView:
    """Where inches are in the picture."""

    dpi: float
    clip: Box

    def to_pixels(self, points: Floats) -> Floats:
        """The places of points (…, 2)."""
        return points * self.dpi

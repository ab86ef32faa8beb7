"""A picture as pixels, onto which shapes are painted."""

from io import BytesIO

import numpy as np
from PIL import Image

from hotlap.drawing.colours import Floats
from hotlap.drawing.coverage import Box, Ints, cover_polygons, cover_strokes


class Raster:
    """Pixels (height, width, 3), which every shape changes; points are in pixels, y down."""

    def __init__(self, width: int, height: int, background: str) -> None:
        self.pixels = np.array(Image.new("RGB", (width, height), background))
        self.box = Box(0, 0, width, height)

    def fill(self, corners: Floats, colours: Floats, *, opacity: float = 1.0, clip: Box | None = None) -> None:
        """Fill polygons (num_polygons, num_corners, 2) in one colour (3), or in one for each (num_polygons, 3).

        Polygons of one call that touch have no seam between them.
        """
        box = (clip or self.box).within(self.box).around(corners)
        ones = np.ones((len(corners), 1))
        weights = ones if colours.ndim == 1 else np.hstack((ones, colours))
        at, sums = cover_polygons(corners, weights, box)
        mixed = colours if colours.ndim == 1 else (sums[1:] / sums[0]).T
        self._paint(box, at, opacity * np.minimum(sums[0], 1.0), mixed)

    def stroke(
        self, segments: Floats, width: float, colours: Floats, *, opacity: float = 1.0, clip: Box | None = None
    ) -> None:
        """Draw segments (num_segments, 2, 2) in one colour (3), or in one for each (num_segments, 3).

        Segments of one call that touch or cross are one line, the last on top; a segment of no length is a disc.
        """
        box = (clip or self.box).within(self.box).around(segments, 0.5 * width + 1.0)
        at, coverage, top = cover_strokes(segments, 0.5 * width, box)
        self._paint(box, at, opacity * coverage, colours if colours.ndim == 1 else colours[top])

    def stamp(self, mask: Floats, left: int, top: int, colour: Floats) -> None:
        """Paint through a mask (height, width) of coverage; what lies outside of the picture is left out."""
        height, width = mask.shape
        box = Box(max(left, 0), max(top, 0), min(left + width, self.box.right), min(top + height, self.box.bottom))
        inside = mask[box.top - top : box.top - top + box.height, box.left - left : box.left - left + box.width].ravel()
        at = np.flatnonzero(inside)
        self._paint(box, at, inside[at], colour)

    def _paint(self, box: Box, at: Ints, coverage: Floats, colours: Floats) -> None:
        """Mix colours, (3) or (num_pixels, 3), into the pixels `at` of a box."""
        if not len(at):
            return
        pixels = self.pixels.reshape(-1, 3)
        place = at + at // box.width * (self.box.width - box.width) + box.top * self.box.width + box.left
        before = pixels[place].astype(np.float32)
        pixels[place] = np.rint(before + coverage.astype(np.float32)[:, None] * (colours.astype(np.float32) - before))

    def to_png(self, dpi: float) -> bytes:
        """The pixels as PNG bytes."""
        content = BytesIO()
        Image.fromarray(self.pixels).save(content, format="PNG", dpi=(dpi, dpi))
        return content.getvalue()

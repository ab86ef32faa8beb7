"""Colours as red, green and blue from 0 to 255, and scales of colours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def parse_colour(text: str) -> Floats:
    """Red, green and blue of a colour such as `#ffc640`."""
    return np.array([int(text[first : first + 2], 16) for first in (1, 3, 5)], dtype=np.float64)


def parse_colours(colour: "str | Sequence[str] | Floats") -> Floats:
    """One colour (3), or one for each shape (num_shapes, 3)."""
    if isinstance(colour, str):
        return parse_colour(colour)
    if isinstance(colour, np.ndarray):
        return colour
    return np.array([parse_colour(one) for one in colour]).reshape(-1, 3)


@dataclass(frozen=True)
class ColourScale:
    """Colours for the values from `low` to `high`, with straight transitions between the stops.

    A stop is a place from 0 (`low`) to 1 (`high`) and its colour.
    """

    stops: Sequence[tuple[float, str]]
    low: float
    high: float

    def __call__(self, values: Floats) -> Floats:
        """The colours of values (num_values, 3); values beyond the ends have the colours of the ends."""
        places = (np.asarray(values, dtype=np.float64) - self.low) / ((self.high - self.low) or 1.0)
        at = [place for place, _ in self.stops]
        colours = np.array([parse_colour(colour) for _, colour in self.stops])
        return np.stack([np.interp(places, at, channel) for channel in colours.T], axis=-1)


def even_scale(colours: Sequence[str], low: float, high: float) -> ColourScale:
    """A scale with its stops at equal distances."""
    places = np.linspace(0.0, 1.0, len(colours)).tolist()
    return ColourScale(list(zip(places, colours, strict=True)), low, high)

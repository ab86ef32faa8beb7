"""Reads pictures back from their pixels."""

from io import BytesIO

import numpy as np
from PIL import Image


def fraction_of(png: bytes, colour: str, tolerance: int = 20) -> float:
    """The fraction of a picture's pixels that have a colour, give or take."""
    pixels = np.asarray(Image.open(BytesIO(png)).convert("RGB"), dtype=np.int64)
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return float((np.abs(pixels - wanted).max(axis=2) <= tolerance).mean())

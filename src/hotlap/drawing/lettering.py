"""Texts as masks of pixels, in the font Inter."""

from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hotlap.drawing.colours import Floats

Align = Literal["left", "centre", "right"]
Vertical = Literal["top", "middle", "baseline", "bottom"]

POINTS_PER_INCH = 72.0
LINE_HEIGHT = 1.3  # of the size of the font
_FONTS = Path(__file__).parent / "fonts"
_CAPITAL, _DESCENT = 0.73, 0.24  # of the size: height of a capital letter, depth of a p
_BELOW: dict[Vertical, float] = {"top": _CAPITAL, "middle": 0.5 * _CAPITAL, "baseline": 0.0, "bottom": -_DESCENT}
_MEASURED_PX = 100


@lru_cache(maxsize=64)
def _load_font(size_px: float, is_bold: bool) -> ImageFont.FreeTypeFont:
    name = "inter-bold.ttf" if is_bold else "inter-regular.ttf"
    # The other layout engine is not in every build of Pillow, and sets texts a little wider or narrower.
    return ImageFont.truetype(_FONTS / name, size_px, layout_engine=ImageFont.Layout.BASIC)


def plain(text: str) -> str:
    """The text on one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def text_width_in(text: str, size_pt: float, *, is_bold: bool = False) -> float:
    """The width of a text in inches."""
    return _load_font(_MEASURED_PX, is_bold).getlength(plain(text)) / _MEASURED_PX * size_pt / POINTS_PER_INCH


def fitting_size(text: str, size_pt: float, room_in: float, *, is_bold: bool = False) -> float:
    """The size of a text, smaller where it would not fit into the room."""
    return min(size_pt, size_pt * max(room_in, 0.1) / max(text_width_in(text, size_pt, is_bold=is_bold), 1e-6))


def below_baseline(vertical: Vertical) -> float:
    """How far the baseline is below the place of a text, in sizes of the font."""
    return _BELOW[vertical]


def text_mask(text: str, size_px: float, *, is_bold: bool = False) -> tuple[Floats, int, int]:
    """Coverage (height, width) of a text, and the column and row of its corner from the start of its baseline."""
    font, line = _load_font(max(size_px, 1.0), is_bold), plain(text)
    left, top, right, bottom = (round(side) for side in font.getbbox(line, anchor="ls"))
    image = Image.new("L", (max(right - left, 1), max(bottom - top, 1)))
    ImageDraw.Draw(image).text((-left, -top), line, fill=255, font=font, anchor="ls")
    return np.asarray(image, dtype=np.float64) / 255.0, left, top

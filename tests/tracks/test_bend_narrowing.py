"""Bends that are a little too tight for their road are narrowed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hotlap.tracks.bend_narrowing import MAX_EXCESS_SHARE, NARROWED_MARGIN, narrow_tight_bends
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.geometry import DEFAULT_SPACING_M, build_nodes, find_fault
from hotlap.tracks.road import ROAD_MARGIN, inner_margin, trace


def hairpin(radius_m: float, *, half_m: float = 4.0, tip_half_m: float | None = None, spacing_m: float = 5.0):
    """Two straights of 150 m, one end round and wide, the other round with `radius_m`; driven to the left."""
    wide_m = 40.0
    lean = math.asin((wide_m - radius_m) / 150.0)
    arcs = []
    for centre_x, radius, first in ((0.0, wide_m, 0.5 * math.pi + lean), (150.0, radius_m, -0.5 * math.pi - lean)):
        turn = math.pi + (-2.0 if centre_x else 2.0) * -lean
        angle = first + np.linspace(0.0, turn, max(5, round(turn * radius / spacing_m)))
        arcs.append((centre_x + radius * np.cos(angle), radius * np.sin(angle)))
    x, y = [], []
    for k, (ax, ay) in enumerate(arcs):
        bx, by = arcs[1 - k]
        count = round(math.hypot(bx[0] - ax[-1], by[0] - ay[-1]) / spacing_m)
        share = np.arange(1, count) / count
        x += [ax, ax[-1] + share * (bx[0] - ax[-1])]
        y += [ay, ay[-1] + share * (by[0] - ay[-1])]
    x, y = np.concatenate(x), np.concatenate(y)
    half = np.full_like(x, half_m)
    left = half.copy()
    if tip_half_m is not None:
        left[np.argmax(x)] = tip_half_m
    return Centreline(x, y, half, left)


def tightest(line, side="left"):
    road = trace(line, DEFAULT_SPACING_M)
    return float(inner_margin(road, side).min())


def with_margin(margin: float) -> Centreline:
    """A hairpin whose inner half is widened at its tip until that share of the radius is left."""
    low, high = 4.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tightest(hairpin(12.0, tip_half_m=middle)) > margin else (low, middle)
    return hairpin(12.0, tip_half_m=low)


@pytest.mark.parametrize("margin", [ROAD_MARGIN - 0.003, -0.02, -0.1, -MAX_EXCESS_SHARE + 0.003])
def test_a_short_peak_is_narrowed_and_nothing_else_changes(margin):
    line = with_margin(margin)
    assert "tighter than the half-width" in find_fault(line).text
    narrowed, [narrowing] = narrow_tight_bends(line, DEFAULT_SPACING_M)
    assert find_fault(narrowed) is None
    assert ROAD_MARGIN < tightest(narrowed) <= NARROWED_MARGIN + 0.01
    changed = np.flatnonzero(narrowed.width_left_m != line.width_left_m)
    tip = int(np.argmax(line.x_m))
    assert set(changed) <= {tip - 1, tip, tip + 1}
    assert narrowing.side == "left"
    assert narrowing.by_m == pytest.approx((line.width_left_m - narrowed.width_left_m).max())
    for name in ("x_m", "y_m", "width_right_m"):
        assert getattr(narrowed, name) is getattr(line, name)
    build_nodes(narrowed)


def test_a_line_that_is_valid_or_beyond_help_is_not_changed():
    valid, much = hairpin(12.0), with_margin(-MAX_EXCESS_SHARE - 0.01)
    long = [hairpin(8.0, half_m=8.4, spacing_m=spacing_m) for spacing_m in (1.0, 2.0, 3.0)]
    tiny = replace(valid, x_m=valid.x_m * 0.1, y_m=valid.y_m * 0.1)
    assert find_fault(valid) is None
    for line in (valid, much, *long, tiny):
        assert line is valid or find_fault(line) is not None
        narrowed, narrowings = narrow_tight_bends(line, DEFAULT_SPACING_M)
        assert (narrowed is line, narrowings) == (True, [])


def test_the_right_hand_side_is_narrowed_the_same():
    line = with_margin(-0.02)
    mirrored = Centreline(line.x_m, -line.y_m, line.width_left_m, line.width_right_m)
    narrowed, [narrowing] = narrow_tight_bends(mirrored, DEFAULT_SPACING_M)
    assert narrowing.side == "right"
    assert narrowed.width_right_m == pytest.approx(narrow_tight_bends(line, DEFAULT_SPACING_M)[0].width_left_m)

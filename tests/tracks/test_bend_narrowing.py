"""Bends a little too tight for their road."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hotlap.tracks.bend_narrowing import EASED_MARGIN, MOST_TOO_TIGHT, ease_bends
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
    """A hairpin whose inner half is widened at its very tip until that much is left of the radius."""
    low, high = 4.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tightest(hairpin(12.0, tip_half_m=middle)) > margin else (low, middle)
    return hairpin(12.0, tip_half_m=low)


@pytest.mark.parametrize("margin", [ROAD_MARGIN - 0.003, -0.02, -0.1, -MOST_TOO_TIGHT + 0.003])
def test_a_short_peak_is_eased_and_nothing_else_is_touched(margin):
    line = with_margin(margin)
    assert "tighter than the half-width" in find_fault(line).text
    eased, [easing] = ease_bends(line, DEFAULT_SPACING_M)
    assert find_fault(eased) is None
    assert ROAD_MARGIN < tightest(eased) <= EASED_MARGIN + 0.01
    changed = np.flatnonzero(eased.width_left_m != line.width_left_m)
    tip = int(np.argmax(line.x_m))
    assert set(changed) <= {tip - 1, tip, tip + 1}
    assert easing.side == "left"
    assert easing.by_m == pytest.approx((line.width_left_m - eased.width_left_m).max())
    for name in ("x_m", "y_m", "width_right_m"):
        assert getattr(eased, name) is getattr(line, name)
    build_nodes(eased)


def test_what_is_too_tight_by_more_is_left_to_be_refused():
    line = with_margin(-MOST_TOO_TIGHT - 0.01)
    eased, easings = ease_bends(line, DEFAULT_SPACING_M)
    assert (eased is line, easings) == (True, [])


@pytest.mark.parametrize("spacing_m", [1.0, 2.0, 3.0])
def test_a_whole_bend_that_is_too_tight_is_left_to_be_refused(spacing_m):
    line = hairpin(8.0, half_m=8.4, spacing_m=spacing_m)
    assert find_fault(line) is not None
    assert ease_bends(line, DEFAULT_SPACING_M)[0] is line


def test_a_good_line_is_left_as_it_is():
    line = hairpin(12.0)
    assert find_fault(line) is None
    assert ease_bends(line, DEFAULT_SPACING_M) == (line, [])


def test_the_right_hand_side_is_eased_the_same():
    line = with_margin(-0.02)
    mirrored = Centreline(line.x_m, -line.y_m, line.width_left_m, line.width_right_m)
    eased, [easing] = ease_bends(mirrored, DEFAULT_SPACING_M)
    assert easing.side == "right"
    assert eased.width_right_m == pytest.approx(ease_bends(line, DEFAULT_SPACING_M)[0].width_left_m)


def test_what_is_no_track_at_all_is_left_alone():
    tiny = replace(hairpin(12.0), x_m=hairpin(12.0).x_m * 0.1, y_m=hairpin(12.0).y_m * 0.1)
    assert ease_bends(tiny, DEFAULT_SPACING_M)[0] is tiny

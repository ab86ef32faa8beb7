"""Lines made quicker: times that are known, derivatives by differences, and what a descent keeps and gains."""

import numpy as np
import pytest

from hotlap.sim import quick_line
from hotlap.sim.quick_line import NUM_ROWS, PointMass, bend, quicken, quicken_line
from sim.kernels import CAR, GRAVITY_MPS2

MASS = PointMass.of(CAR)
COUNT = 320


def ellipse(count: int = COUNT, long_m: float = 200.0, short_m: float = 60.0) -> tuple[np.ndarray, ...]:
    """x, y, normals to the left, and limits of 5 m to both sides."""
    angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    along_x, along_y = -long_m * np.sin(angle), short_m * np.cos(angle)
    size = np.hypot(along_x, along_y)
    room = np.full(count, 5.0)
    return long_m * np.cos(angle), short_m * np.sin(angle), -along_y / size, along_x / size, -room, room


def time_of(road: tuple[np.ndarray, ...], offset_m: np.ndarray) -> float:
    """The time of a line: what `quicken` says of it before the first step."""
    limits = offset_m - 1e-12, offset_m + 1e-12
    return quicken(*road[:4], *limits, offset_m.copy(), MASS, 2, 0.01, np.empty((NUM_ROWS, len(offset_m))))


def test_a_circle_is_driven_at_the_limit_of_grip():
    time_s = time_of(ellipse(long_m=50.0, short_m=50.0), np.zeros(COUNT))
    assert time_s == pytest.approx(2.0 * np.pi * np.sqrt(50.0 / (CAR.friction * GRAVITY_MPS2)), rel=1e-3)


def _slopes_at(curvature: np.ndarray, spacing: np.ndarray) -> tuple[float, np.ndarray]:
    squared, braked, is_braked, is_driven, by_squared, by_curvature = np.empty((6, len(curvature)))
    states = squared, braked, is_braked, is_driven
    time_s = quick_line._limit_speeds(curvature, spacing, MASS, *states)
    quick_line._slopes(curvature, spacing, MASS, *states, by_squared, by_curvature)
    return time_s, by_curvature


def test_the_derivative_by_curvature_is_that_of_differences():
    x, y, *_ = ellipse()
    curvature, spacing = np.empty(COUNT), np.empty(COUNT)
    bend(x, y, curvature, spacing)
    _, found = _slopes_at(curvature, spacing)
    places = np.arange(COUNT)
    for centre in range(0, COUNT, 16):
        bump = 1e-6 * np.exp(-0.5 * ((places - centre + COUNT // 2) % COUNT - COUNT // 2) ** 2 / 9.0)
        after, before = (_slopes_at(curvature + sign * bump, spacing)[0] for sign in (1.0, -1.0))
        assert (found * bump).sum() * 2.0 == pytest.approx(after - before, rel=0.1, abs=2e-7), centre


def test_a_line_made_quicker_keeps_its_limits_and_gains_time():
    road = ellipse()
    before = np.zeros(COUNT)
    after = quicken_line(road, before, CAR)
    assert np.abs(after).max() <= 5.0
    assert before.tolist() == [0.0] * COUNT  # the given line stays
    assert time_of(road, after) < 0.98 * time_of(road, before)
    # It cuts the two bends at the ends of the ellipse, which turn left: its apexes are inside.
    assert min(after[0], after[COUNT // 2]) > 4.0


def test_without_room_the_line_stays():
    x, y, normal_x, normal_y, _, room = ellipse()
    nothing = 0.0 * room
    assert quicken_line((x, y, normal_x, normal_y, nothing, nothing), nothing, CAR).tolist() == [0.0] * COUNT

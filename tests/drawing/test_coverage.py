"""How much of each pixel shapes cover, against areas that are known."""

import math

import numpy as np
import pytest

from hotlap.drawing.coverage import Box, cover_polygons, cover_strokes


def cover(polygons, box) -> np.ndarray:
    """The coverage of all pixels of a box."""
    corners = np.array(polygons, dtype=np.float64)
    at, sums = cover_polygons(corners, np.ones((len(corners), 1)), box)
    return spread(at, sums[0], box)


def stroke(segments, radius, box) -> np.ndarray:
    at, coverage, _ = cover_strokes(np.array(segments, dtype=np.float64), radius, box)
    return spread(at, coverage, box)


def spread(at, values, box) -> np.ndarray:
    whole = np.zeros(box.width * box.height)
    whole[at] = values
    return whole.reshape(box.height, box.width)


def test_a_rectangle_covers_its_part_of_each_pixel():
    box = Box(0, 0, 5, 4)
    rectangle = [(1.25, 1.5), (3.5, 1.5), (3.5, 3.0), (1.25, 3.0)]
    wanted = np.outer([0.0, 0.5, 1.0, 0.0], [0.0, 0.75, 1.0, 0.5, 0.0])
    np.testing.assert_allclose(cover([rectangle], box), wanted, atol=1e-12)
    np.testing.assert_allclose(cover([rectangle[::-1]], box), wanted, atol=1e-12)
    # A box that begins elsewhere sees the same part of it.
    np.testing.assert_allclose(cover([rectangle], Box(2, 1, 5, 4)), wanted[1:, 2:], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_triangle_covers_what_a_fine_grid_of_points_says(seed):
    box, fine = Box(3, 2, 43, 32), 16
    triangle = np.random.default_rng(seed).uniform(-10.0, 60.0, (3, 2))
    x, y = np.meshgrid(
        box.left + (np.arange(box.width * fine) + 0.5) / fine, box.top + (np.arange(box.height * fine) + 0.5) / fine
    )
    sides = [
        (ahead[0] - start[0]) * (y - start[1]) - (ahead[1] - start[1]) * (x - start[0])
        for start, ahead in zip(triangle, np.roll(triangle, -1, axis=0), strict=True)
    ]
    is_inside = np.all(np.array(sides) > 0.0, axis=0) | np.all(np.array(sides) < 0.0, axis=0)
    wanted = is_inside.reshape(box.height, fine, box.width, fine).mean(axis=(1, 3))
    np.testing.assert_allclose(cover([triangle], box), wanted, atol=0.02)


def test_neighbours_leave_no_seam_and_weights_are_mixed():
    angles = np.linspace(0.0, 2.0 * math.pi, 41)
    rim = 20.0 + 15.0 * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    slices = np.stack((np.full((40, 2), 20.0), rim[:-1], rim[1:]), axis=1)
    found, box = cover(slices, Box(0, 0, 40, 40)), Box(0, 0, 40, 40)
    np.testing.assert_allclose(found[12:28, 12:28], 1.0, atol=1e-9)
    halves = np.array([[(0, 0), (1.5, 0), (1.5, 1), (0, 1)], [(1.5, 0), (3, 0), (3, 1), (1.5, 1)]])
    at, sums = cover_polygons(halves, np.array([(1.0, 100.0), (1.0, 200.0)]), Box(0, 0, 3, 1))
    assert at.tolist() == [0, 1, 2]
    np.testing.assert_allclose(sums, [(1.0, 1.0, 1.0), (100.0, 150.0, 200.0)])
    assert found.shape == (box.height, box.width)


def test_shapes_beyond_a_box_cover_it_wholly_or_not_at_all():
    box = Box(0, 0, 4, 3)
    far = 1e5
    np.testing.assert_allclose(cover([[(-far, -far), (far, -far), (far, far), (-far, far)]], box), 1.0)
    for x, y in ((-9, 0), (9, 0), (0, -9), (0, 9)):
        assert cover([[(x, y), (x + 2, y), (x + 2, y + 2)]], box).max() == 0.0


def test_a_straight_line_covers_half_its_width_on_both_sides():
    found = stroke([[(-5, 5), (20, 5)]], 1.25, Box(0, 0, 8, 10))
    np.testing.assert_allclose(found[:, 4], [0, 0, 0, 0.25, 1, 1, 0.25, 0, 0, 0])
    thin = stroke([[(-5, 5.5), (20, 5.5)]], 0.2, Box(0, 0, 8, 10))
    np.testing.assert_allclose(thin[:, 4], [0, 0, 0, 0, 0, 0.4, 0, 0, 0, 0])


def test_a_point_is_a_disc_and_long_slanted_lines_are_as_thick_as_short_ones():
    assert stroke([[(20, 20), (20, 20)]], 9.0, Box(0, 0, 40, 40)).sum() == pytest.approx(math.pi * 81.0, rel=0.01)
    found = stroke([[(-100, -50), (300, 150)]], 2.0, Box(0, 0, 200, 100))
    slope = math.hypot(2.0, 1.0) / 2.0
    np.testing.assert_allclose(found[:, 60:140].sum(axis=0), 4.0 * slope, rtol=0.05)


def test_joined_segments_are_one_line_and_the_last_is_on_top():
    box = Box(0, 0, 20, 6)
    whole, cut = stroke([[(2, 3), (18, 3)]], 1.5, box), stroke([[(2, 3), (9, 3)], [(9, 3), (18, 3)]], 1.5, box)
    np.testing.assert_allclose(cut, whole)
    at, _, top = cover_strokes(np.array([[(2.0, 3.0), (9.0, 3.0)], [(9.0, 3.0), (18.0, 3.0)]]), 1.5, box)
    assert spread(at, top, box)[3, :19].tolist() == [0.0] * 8 + [1.0] * 11  # from the round end of the second on
    # A line that comes back lies on its start, which is a little closer to some pixels.
    at, coverage, top = cover_strokes(np.array([[(2.0, 3.2), (18.0, 3.2)], [(18.0, 3.0), (2.0, 3.0)]]), 1.5, box)
    assert set(top[coverage > 0.99].tolist()) == {1}


def test_a_box_holds_what_is_near_points_and_nothing_far_away():
    box = Box(0, 0, 100, 50)
    assert box.around(np.array([(10.2, 5.5), (20.0, 60.0)]), 1.0) == Box(9, 4, 21, 50)
    assert box.around(np.array([(1e30, -1e30)])).width == 0
    assert box.around(np.empty((0, 2))).height == 0

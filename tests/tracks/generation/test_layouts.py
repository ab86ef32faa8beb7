"""Polygons of generated tracks: simple shapes whose answers are known."""

import math

import numpy as np
import pytest

from hotlap.tracks.generation.layouts import (
    Random,
    _outline,
    draw_cells,
    draw_star,
    edge_frame,
    perimeter,
    turn_at,
    unit_vector,
)

SQUARE = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]


def area(points):
    return 0.5 * sum(points[i - 1][0] * y - x * points[i - 1][1] for i, (x, y) in enumerate(points))


def test_a_square_has_its_perimeter_and_right_angles():
    assert perimeter(SQUARE) == 8.0
    assert turn_at(*SQUARE[:3]) == pytest.approx(math.pi / 2.0, abs=1e-6)
    assert turn_at((0.0, 0.0), (1.0, 0.0), (3.0, 0.0)) == pytest.approx(0.0, abs=1e-6)


def test_directions_are_counted_from_minus_x_anticlockwise():
    assert unit_vector(0.0) == pytest.approx((-1.0, 0.0), abs=1e-6)
    assert unit_vector(0.25) == pytest.approx((0.0, -1.0), abs=1e-6)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_corner_beside_an_edge_is_on_the_chosen_side(side):
    edge = edge_frame((1.0, 1.0), (1.0, 5.0), side)
    assert edge.length_m == 4.0
    assert tuple(edge.corner(1.0, 2.0, 30.0)) == (1.0 - 2.0 * side, 2.0, 30.0)


def test_an_outline_goes_round_its_cells_and_holes_have_none():
    assert len(_outline({(0, 0), (1, 0)})) == 6
    assert area(_outline({(0, 0), (1, 0), (1, 1)})) == 3.0
    assert _outline({(0, 0), (1, 1)}) == []  # they touch by a corner
    assert _outline({(x, y) for x in range(3) for y in range(3)} - {(1, 1)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_drawn_shapes_go_round_once_and_a_seed_gives_the_same(seed):
    for draw, given in ((draw_star, (8, 0.6)), (draw_cells, (7,))):
        points = draw(Random(seed), *given)
        assert area(points) > 0.0
        assert points == draw(Random(seed), *given) != draw(Random(seed + 100), *given)
    star = np.hypot(*np.transpose(draw_star(Random(seed), 8, 0.6)))
    assert star.min() >= 0.4 - 1e-9
    assert star.max() <= 1.0 + 1e-9


def test_draws_are_within_their_bounds():
    rng = Random(3)
    numbers = [rng.below(4) for _ in range(200)]
    assert set(numbers) == {0, 1, 2, 3}
    assert all(2.0 <= rng.between(2.0, 3.0) < 3.0 for _ in range(200))
    assert not any(rng.happens(0.0) for _ in range(50))
    assert all(rng.happens(1.0) for _ in range(50))

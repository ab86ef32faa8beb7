import numpy as np

from hotlap.tracks.geometry.polyline import Crossing, lag, near_pairs, self_crossings


def test_the_lag_of_two_nodes_is_the_shorter_way_round():
    assert [lag(*pair, 10) for pair in ((2, 5), (5, 2), (1, 9), (0, 5))] == [3, 3, 2, 5]


def test_near_pairs_are_those_of_all_distances():
    x, y = np.random.default_rng(3).uniform(0.0, 50.0, (2, 150))  # more than two blocks of nodes
    square = np.subtract.outer(x, x) ** 2 + np.subtract.outer(y, y) ** 2
    expected = {
        (i, j): square[i, j] for i in range(150) for j in range(150) if square[i, j] <= 36.0 and lag(i, j, 150) >= 2
    }
    found = {}
    for i, j, squares in near_pairs(x, y, 6.0):
        found |= dict(zip(zip(i.tolist(), j.tolist(), strict=True), squares.tolist(), strict=True))
    assert found == expected


def test_crossings_are_found_up_to_a_limit():
    x, y = np.array([0.0, 6.0, 6.0, 0.0]), np.array([0.0, 4.0, 0.0, 4.0])
    assert self_crossings(x, y) == [Crossing(0, 2)]  # a bow
    assert self_crossings(np.array([0.0, 4.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 4.0])) == []  # an arrowhead
    star = 2.0 * np.pi * np.arange(5) * 2 / 5
    pairs = [(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]
    assert self_crossings(np.sin(star), np.cos(star)) == [Crossing(*pair) for pair in pairs]
    assert self_crossings(np.sin(star), np.cos(star), limit=3) == [Crossing(*pair) for pair in pairs[:3]]

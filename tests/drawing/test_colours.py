"""Colours and their scales."""

import numpy as np

from hotlap.drawing.colours import ColourScale, even_scale, parse_colour, parse_colours


def test_colours_are_read():
    assert parse_colour("#ff8000").tolist() == [255.0, 128.0, 0.0]
    assert parse_colours(["#000000", "#0000ff"]).tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 255.0]]
    assert parse_colours([]).shape == (0, 3)


def test_a_scale_mixes_neighbouring_stops_and_ends_at_its_ends():
    scale = ColourScale([(0.0, "#000000"), (0.5, "#640000"), (1.0, "#64c800")], 10.0, 30.0)
    wanted = [(0, 0, 0), (0, 0, 0), (50, 0, 0), (100, 0, 0), (100, 100, 0), (100, 200, 0), (100, 200, 0)]
    np.testing.assert_allclose(scale(np.array([0.0, 10.0, 15.0, 20.0, 25.0, 30.0, 99.0])), wanted)
    assert even_scale(["#000000", "#640000", "#64c800"], 10.0, 30.0).stops == scale.stops
    assert np.isfinite(even_scale(["#000000", "#ffffff"], 5.0, 5.0)(np.array([5.0]))).all()

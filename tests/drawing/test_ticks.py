"""Round numbers on axes."""

import pytest

from hotlap.drawing.ticks import choose_ticks, write_ticks


@pytest.mark.parametrize(
    ("low", "high", "count", "names"),
    [
        (-0.5, 14.2, 9, "0 2 4 6 8 10 12 14"),
        (0.0, 0.31, 6, "0.00 0.05 0.10 0.15 0.20 0.25 0.30"),
        (-168.0, 233.0, 8, "−150 −100 −50 0 50 100 150 200"),
        (0.0, 4e3, 4, "0 1,000 2,000 3,000 4,000"),
        (0.0, 11.0, 4, "0.0 2.5 5.0 7.5 10.0"),
        (0.0, 5e-4, 3, "0 2e−4 4e−4"),
        (0.0, 5e-6, 3, "0 2e−6 4e−6"),
        (-1e7, 1e7, 2, "−1e7 0 1e7"),
        (0.1, 0.3, 2, "0.1 0.2 0.3"),
        (3.0, 3.0, 5, "3"),
        (5.1, 5.4, 1, ""),
    ],
)
def test_ticks_are_round_and_have_the_decimals_they_need(low, high, count, names):
    assert write_ticks(choose_ticks(low, high, count)) == names.split()

"""Numbers as text."""

import pytest

from hotlap.reports.formatting import (
    clock,
    counted,
    decimal,
    gap_percent,
    lost_or_gained,
    percent,
    seconds,
    signed,
    signed_percent,
    whole,
    whole_percent,
    whole_seconds,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (seconds(31.416), "31.42 s"),
        (seconds(None), "–"),
        (percent(0.57), "57 %"),
        (percent(0.9999), "99.9 %"),  # nearly all is not all
        (percent(1.0), "100 %"),
        (percent(None), "–"),
        (signed(1.836), "+1.84"),
        (signed(-0.5), "−0.50"),
        (signed(-0.0), "+0.00"),
        (signed_percent(0.1096), "+11.0 %"),
        (signed_percent(-0.001), "−0.1 %"),
        (gap_percent(0.5876), "58.8 %"),
        (gap_percent(None), "–"),
        (clock(6.2), "0:07"),
        (clock(754.0), "12:34"),
        (clock(3723.0), "1:02:03"),
        (decimal(-1234.56), "−1,234.6"),
        (whole(4000.4), "4,000"),
        (whole_seconds(1230.4), "1,230 s"),
        # What rounds to zero is not negative.
        (seconds(-0.004), "0.00 s"),
        (seconds(-0.005001), "−0.01 s"),
        (signed(-0.0049), "+0.00"),
        (signed_percent(-0.0004), "+0.0 %"),
        (decimal(-0.04), "0.0"),
        (whole(-0.4), "0"),
        (whole_percent(-0.004), "0 %"),
        (whole_percent(-0.12), "−12 %"),
        (gap_percent(-0.0004), "0.0 %"),
        (gap_percent(0.00304, decimals=2), "0.30 %"),
        (lost_or_gained(-0.004), "0.00 s lost"),
        (lost_or_gained(0.314), "0.31 s lost"),
        (lost_or_gained(-0.04), "0.04 s gained"),
        (counted(1, "lap"), "1 lap"),
        (counted(0, "lap"), "0 laps"),
        (counted(16_000_000, "step"), "16,000,000 steps"),
    ],
)
def test_numbers_are_formatted(text, expected):
    assert text == expected

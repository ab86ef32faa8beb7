"""Numbers as text."""

import pytest

from hotlap.reports.formatting import (
    clock,
    count,
    decimal,
    gap_percent,
    percent,
    seconds,
    signed,
    signed_percent,
    whole,
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
        (signed(-0.004), "+0.00"),  # no sign on what rounds to zero
        (signed_percent(-0.001), "−0.1 %"),
        (signed_percent(-0.0001), "+0.0 %"),
        (gap_percent(0.5876), "58.8 %"),
        (gap_percent(-0.0001), "0.0 %"),
        (gap_percent(None), "–"),
        (decimal(-0.04), "0.0"),
        (count(1, "lap"), "1 lap"),
        (count(2000, "lap"), "2,000 laps"),
        (clock(6.2), "0:07"),
        (clock(754.0), "12:34"),
        (clock(3723.0), "1:02:03"),
        (decimal(-1234.56), "−1,234.6"),
        (whole(4000.4), "4,000"),
        (whole_seconds(1230.4), "1,230 s"),
    ],
)
def test_numbers_are_formatted(text, expected):
    assert text == expected

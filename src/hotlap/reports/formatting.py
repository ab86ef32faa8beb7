"""Numbers as text for pages, tables and the command line: times, fractions, differences and counts.

A value that rounds to zero has no minus sign.
"""

import math

MISSING = "–"  # a value that does not exist
_MINUS = "−"


def seconds(value: float | None) -> str:
    """A time: 31.42 s."""
    return MISSING if value is None else f"{_rounded(value, '.2f')} s"


def percent(value: float | None) -> str:
    """A fraction of 1, rounded down so that only the whole of it reads 100 %: 96.6 %."""
    return MISSING if value is None else f"{math.floor(1000.0 * value + 1e-6) / 10.0:g} %"


def gap_percent(value: float | None, decimals: int = 1) -> str:
    """A relative difference: 43.9 %."""
    return MISSING if value is None else f"{_rounded(100.0 * value, f'.{decimals}f')} %"


def whole_percent(value: float) -> str:
    """A fraction of 1 in whole per cent: 12 %."""
    return f"{_rounded(100.0 * value, '.0f')} %"


def signed(value: float) -> str:
    """A difference with its sign: +1.84."""
    return _rounded(value, "+.2f")


def signed_percent(value: float) -> str:
    """A relative difference with its sign: +11.0 %."""
    return f"{_rounded(100.0 * value, '+.1f')} %"


def clock(value_s: float) -> str:
    """A time left: 0:07, 12:34 or 1:02:03."""
    minutes, rest_s = divmod(math.ceil(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest_s:02d}" if hours else f"{minutes}:{rest_s:02d}"


def decimal(value: float) -> str:
    """A number with one decimal: −1,234.5."""
    return _rounded(value, ",.1f")


def whole(value: float) -> str:
    """A rounded number with thousands separated: 4,000."""
    return _rounded(value, ",.0f")


def whole_seconds(value: float) -> str:
    """A long time in whole seconds: 1,230 s."""
    return f"{whole(value)} s"


def lost_or_gained(lost_s: float) -> str:
    """A time lost, or gained where it is negative: 0.31 s lost, 0.04 s gained."""
    text = seconds(lost_s)
    return f"{text.removeprefix(_MINUS)} gained" if text.startswith(_MINUS) else f"{text} lost"


def counted(number: int, noun: str) -> str:
    """A number of things: 1 lap, 1,000 laps."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rounded(value: float, spec: str) -> str:
    """The value in a format that rounds; what rounds to zero is not negative."""
    text = format(value, spec)
    if text.startswith("-") and not text.strip("-0.,"):
        return format(0.0, spec)
    return text.replace("-", _MINUS)

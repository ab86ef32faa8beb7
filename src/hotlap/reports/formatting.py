"""Numbers as text for pages, tables and the command line: times, shares and signed differences."""

import math

MISSING = "–"  # a value that does not exist
_MINUS = "−"


def seconds(value: float | None) -> str:
    """A time: 31.42 s."""
    return MISSING if value is None else f"{value:.2f} s"


def percent(value: float | None) -> str:
    """A share of 1, rounded down so that only the whole of it reads 100 %: 96.6 %."""
    return MISSING if value is None else f"{math.floor(1000.0 * value + 1e-6) / 10.0:g} %"


def signed(value: float) -> str:
    """A difference with its sign: +1.84."""
    return f"{_rounded(value, 2):+.2f}".replace("-", _MINUS)


def signed_percent(value: float) -> str:
    """A relative difference with its sign: +11.0 %."""
    return f"{_rounded(100.0 * value, 1):+.1f} %".replace("-", _MINUS)


def gap_percent(value: float | None) -> str:
    """A gap to the optimum: 11.0 %."""
    return MISSING if value is None else f"{_rounded(100.0 * value, 1):.1f} %".replace("-", _MINUS)


def clock(value_s: float) -> str:
    """A time left: 0:07, 12:34 or 1:02:03."""
    minutes, rest_s = divmod(math.ceil(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest_s:02d}" if hours else f"{minutes}:{rest_s:02d}"


def decimal(value: float) -> str:
    """A number with one decimal: −1,234.5."""
    return f"{_rounded(value, 1):,.1f}".replace("-", _MINUS)


def whole(value: float) -> str:
    """A rounded number with thousands separated: 4,000."""
    return f"{value:,.0f}"


def count(number: int, noun: str) -> str:
    """A number of things: 1 lap, 2,000 laps."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def whole_seconds(value: float) -> str:
    """A long time in whole seconds: 1,230 s."""
    return f"{value:,.0f} s"


def _rounded(value: float, digits: int) -> float:
    """Rounded, without a sign on what rounds to zero."""
    return round(value, digits) + 0.0

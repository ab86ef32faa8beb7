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
    return f"{value + 0.0:+.2f}".replace("-", _MINUS)


def signed_percent(value: float) -> str:
    """A relative difference with its sign: +11.0 %."""
    return f"{100.0 * value:+.1f} %".replace("-", _MINUS)


def decimal(value: float) -> str:
    """A number with one decimal: −1,234.5."""
    return f"{value:,.1f}".replace("-", _MINUS)


def whole(value: float) -> str:
    """A rounded number with thousands separated: 4,000."""
    return f"{value:,.0f}"


def whole_seconds(value: float) -> str:
    """A long time in whole seconds: 1,230 s."""
    return f"{value:,.0f} s"

"""Round numbers for the ticks of an axis, and how they are written."""

import math
from collections.abc import Sequence

_SLACK = 0.9  # a few intervals more are better than half as many
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST, _LEAST = 1e6, 1e-3  # beyond these, numbers are written with an exponent


def choose_ticks(low: float, high: float, max_intervals: int) -> list[float]:
    """Round numbers from `low` to `high`, with about `max_intervals` between them at most."""
    if not high > low:
        return [low]
    rough = (high - low) / max(max_intervals, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= _SLACK * rough)
    slack = 1e-6 * (high - low)
    first, last = math.ceil((low - slack) / step), math.floor((high + slack) / step)
    return [index * step for index in range(first, last + 1)]


def write_ticks(ticks: Sequence[float]) -> list[str]:
    """The numbers, all with as many decimals as their distance needs."""
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(ticks[0]) if ticks else 0.0
    if step and (step < _LEAST or max(map(abs, ticks)) >= _MOST):
        return [_minus(_with_exponent(tick)) for tick in ticks]
    decimals = next((count for count in range(6) if math.isclose(round(step, count), step, rel_tol=1e-6)), 6)
    return [_minus(f"{tick + 0.0:,.{decimals}f}") for tick in ticks]


def _with_exponent(number: float) -> str:
    mantissa, exponent = f"{number:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if number else "0"


def _minus(text: str) -> str:
    return text.replace("-", "−")

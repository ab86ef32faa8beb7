"""The table of docs/method.md: every driver that ships, in one row each. `figures.py` writes it."""

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from hotlap.evaluation.evaluate import Evaluation
from hotlap.reports.formatting import percent, signed_percent

HEADS = ["driver", "tracks", "starts", "completed", "clean laps", "median gap", "worst gap"]


def summary(laps: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows; completed and clean are those of the worst track, gaps are over the tracks."""
    found: dict[str, list[Evaluation]] = {}
    for row in laps:
        found.setdefault(row["driver"], []).append(Evaluation(**row))
    return HEADS, [_row(driver, evaluations) for driver, evaluations in found.items()]


def _row(driver: str, evaluations: list[Evaluation]) -> list[str]:
    gaps = [one.gap_to_optimal or 0.0 for one in evaluations]
    return [
        driver,
        str(len(evaluations)),
        f"{sum(one.episodes for one in evaluations):,}",
        percent(min(one.completion_rate for one in evaluations)),
        percent(min(one.clean_lap_rate or 0.0 for one in evaluations)),
        signed_percent(statistics.median(gaps)),
        signed_percent(max(gaps)),
    ]

"""The classification of one race as rows of text."""

from collections.abc import Sequence

import numpy as np

from hotlap.evaluation.races import RaceCounts
from hotlap.reports.formatting import MISSING, seconds, signed
from hotlap.reports.tables import Table

HEADS = ("pos", "driver", "start", "time", "gap", "best lap", "contacts", "at fault", "overtakes")
NOT_FINISHED = "not finished"


def classify(names: Sequence[str], counts: RaceCounts) -> list[list[str]]:
    """A row with the columns of HEADS for each car of the only race, in the order in which they came in."""
    winner_s = float(np.nanmin(counts.race_times_s[0])) if counts.has_finished[0].any() else None
    return [_row(int(car), names, counts, winner_s) for car in counts.positions[0].argsort(kind="stable")]


def _row(car: int, names: Sequence[str], counts: RaceCounts, winner_s: float | None) -> list[str]:
    time_s, best_s = float(counts.race_times_s[0, car]), float(counts.best_laps_s[0, car])
    has_finished = bool(counts.has_finished[0, car])
    return [
        str(counts.positions[0, car]),
        names[car],
        str(counts.slots[0, car] + 1),
        seconds(time_s) if has_finished else NOT_FINISHED,
        f"{signed(time_s - winner_s)} s" if has_finished and winner_s is not None and winner_s != time_s else "",
        seconds(best_s) if np.isfinite(best_s) else MISSING,
        *(str(column[0, car]) for column in (counts.contacts, counts.faults, counts.overtakes)),
    ]


def classification_table(names: Sequence[str], counts: RaceCounts) -> Table:
    """The classification for a page: position and driver are one column."""
    rows = [[f"{position}. {driver}", *others] for position, driver, *others in classify(names, counts)]
    return Table(["driver", *HEADS[2:]], rows)

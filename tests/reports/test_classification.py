"""The classification of a race, against one worked out by hand."""

import numpy as np

from hotlap.evaluation.races import RaceCounts
from hotlap.reports.classification import classification_table, classify

NAN, INF = np.nan, np.inf


def known_counts() -> RaceCounts:
    """Car 2 wins, car 0 is second, car 1 is out."""

    def row(*values, dtype=np.int64):
        return np.array([values], dtype)

    return RaceCounts(
        positions=row(2, 3, 1, dtype=np.int32),
        has_finished=row(True, False, True, dtype=bool),
        race_times_s=row(61.5, NAN, 60.25, dtype=np.float32),
        distances_m=row(2000.0, 10.0, 2000.0, dtype=np.float64),
        contacts=row(1, 2, 1),
        faults=row(0, 2, 0),
        hard_faults=row(0, 0, 0),
        overtakes=row(4, 0, 1),
        clean_overtakes=row(4, 0, 1),
        best_laps_s=row(29.0, INF, 28.5, dtype=np.float64),
        slots=row(0, 1, 2),
        repeat=1,
    )


def test_cars_are_in_the_order_in_which_they_came_in():
    assert classify(["a", "b", "c"], known_counts()) == [
        ["1", "c", "3", "60.25 s", "", "28.50 s", "1", "0", "1"],
        ["2", "a", "1", "61.50 s", "+1.25 s", "29.00 s", "1", "0", "4"],
        ["3", "b", "2", "not finished", "", "–", "2", "2", "0"],
    ]
    table = classification_table(["a", "b", "c"], known_counts())
    assert table.heads[:3] == ["driver", "start", "time"]
    assert [row[0] for row in table.rows] == ["1. c", "2. a", "3. b"]

"""A race of three cars whose figures are known."""

from types import SimpleNamespace

import numpy as np

from hotlap.evaluation.races import RaceCounts

REPLAY = SimpleNamespace(
    track="track-01", laps=2, start="rolling", seed=5, drivers=["<i>slow</i>", "fast", "lost"], slots=[0, 1, 2]
)


def known_counts():
    """The second car wins before the first; the third does not finish."""
    zeros = np.zeros((1, 3), np.int64)
    known = {
        "positions": np.array([[2, 1, 3]], np.int32),
        "race_times_s": np.array([[70.5, 65.25, np.nan]], np.float32),
        "has_finished": np.array([[True, True, False]]),
        "best_laps_s": np.array([[34.0, 31.5, np.inf]]),
        "contacts": np.array([[2, 1, 0]]),
        "overtakes": np.array([[0, 1, 0]]),
        "slots": np.array([[0, 1, 2]]),
        "repeat": 1,
    }
    return RaceCounts(**{**dict.fromkeys(RaceCounts.__dataclass_fields__, zeros), **known})

"""Runs of equal actions."""

import numpy as np
import pytest

from hotlap.benchmark.actions import RUN_DTYPE, read_runs, to_runs, to_ticks
from hotlap.errors import ReplayError

ACTIONS = np.array([[0.5, 1, 0], [0.5, 1, 0], [0.0, 1, 0], [-0.0, 1, 0]], np.float32)


def test_runs_hold_equal_bits_and_come_back():
    runs = to_runs(ACTIONS)
    assert runs["ticks"].tolist() == [2, 1, 1]  # 0.0 and -0.0 are different inputs
    assert to_ticks(runs).tobytes() == ACTIONS.tobytes()
    assert RUN_DTYPE.itemsize == 16


def test_drives_are_cut_by_their_counts():
    runs = to_runs(ACTIONS)
    first, second = read_runs(runs.tobytes(), [1, 2], "here")
    assert (first["ticks"].tolist(), second["ticks"].tolist()) == ([2], [1, 1])


def changed(name, value):
    runs = to_runs(ACTIONS)
    runs[name][0] = value
    return runs.tobytes()


@pytest.mark.parametrize(
    ("content", "counts", "text"),
    [
        (to_runs(ACTIONS).tobytes()[:-1], [3], "47 bytes, not the 3 runs"),
        (to_runs(ACTIONS).tobytes(), [2], "48 bytes, not the 2 runs"),
        (changed("steer", np.nan), [3], "not finite"),
        (changed("brake", np.inf), [3], "not finite"),
        (changed("ticks", 0), [3], "from 1 to 36000 ticks"),
        (changed("ticks", 2**32 - 1), [3], "from 1 to 36000 ticks"),
        (changed("ticks", 35_999), [3], "drive 0 has 36001 ticks"),
    ],
)
def test_runs_that_make_no_sense_are_refused(content, counts, text):
    with pytest.raises(ReplayError, match=f"^here: .*{text}"):
        read_runs(content, counts, "here")

"""Plan tables: each car looks up its own plan, linear between rows, and a lap is periodic."""

import numpy as np

from hotlap.optimal.feedback import feedback_gains
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES
from hotlap.optimal.plan_table import PlanTables, close_lap, make_table
from hotlap.tracks.registry import load_track

COLUMNS = NUM_STATES + NUM_CONTROLS + NUM_CONTROLS * NUM_STATES
NODES = load_track("track-01").nodes


def ramp(arc_m: list[float], times: float) -> tuple[np.ndarray, np.ndarray]:
    """A table whose columns are the arc length times a number, times one more than the column's."""
    at_m = np.array(arc_m)
    return at_m, times * at_m[:, None] * np.arange(1.0, COLUMNS + 1.0)


def test_each_car_reads_its_own_plan_linear_between_rows():
    tables = PlanTables([ramp([0.0, 10.0, 30.0], 1.0), ramp([5.0, 6.0], 100.0), ramp([0.0, 1.0, 2.0, 900.0], -1.0)])
    which = np.array([2, 0, 1, 0, 2])
    at_m = np.array([450.0, 25.0, 5.25, 3.0, 0.5])
    states, controls, gains = tables.read(which, at_m)
    times = np.array([-1.0, 1.0, 100.0, 1.0, -1.0]) * at_m
    columns = np.arange(1.0, COLUMNS + 1.0)
    np.testing.assert_allclose(states, times[:, None] * columns[:NUM_STATES])
    np.testing.assert_allclose(controls, times[:, None] * columns[NUM_STATES : NUM_STATES + NUM_CONTROLS])
    assert gains.shape == (5, NUM_CONTROLS, NUM_STATES)
    np.testing.assert_allclose(gains[1].ravel(), times[1] * columns[NUM_STATES + NUM_CONTROLS :])


def test_a_plan_is_constant_beyond_its_ends_and_a_closed_lap_continues_past_the_start_line():
    tables = PlanTables([ramp([10.0, 20.0], 1.0), ramp([0.0, 5.0], 7.0)])
    states, _, _ = tables.read(np.array([0, 0, 1, 1]), np.array([3.0, 500.0, -40.0, 6.0]))
    np.testing.assert_allclose(states[:, 0], [10.0, 20.0, 0.0, 35.0])
    closed = PlanTables([close_lap(ramp([2.0, 50.0, 100.0], 1.0), 100.0)])
    states, _, _ = closed.read(np.zeros(3, np.int64), np.array([0.0, 1.0, 99.0]))
    # Between the last point, which is the line, and the first.
    np.testing.assert_allclose(states[:, 0], [100.0, 51.0, 99.0])


def test_a_table_has_the_plan_and_its_gains(followed):
    flying, _ = followed
    tables = PlanTables([make_table(flying, NODES)])
    states, controls, gains = tables.read(np.zeros(5, np.int64), flying.arc_m[100:105])
    np.testing.assert_allclose(states, flying.states[100:105], atol=1e-9)
    np.testing.assert_allclose(controls, flying.controls[100:105], atol=1e-9)
    np.testing.assert_allclose(gains, feedback_gains(flying, NODES)[100:105], rtol=1e-6, atol=1e-9)

"""Plans with their feedback gains as tables over arc length, looked up for many cars at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hotlap.optimal.collocation import Floats
from hotlap.optimal.feedback import feedback_gains
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES
from hotlap.optimal.plan import Plan
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import CarParameters

# Offset between the arc lengths of different plans in the one sorted column that is searched.
_APART_M = 1e6

PlanTable = tuple[Floats, Floats]  # arc lengths (num_rows,) and rows of states, controls and gains


def make_table(plan: Plan, nodes: RibbonNodes, car: CarParameters | None = None) -> PlanTable:
    """The table of a car's plan: one row of states, controls and gains per point."""
    gains = feedback_gains(plan, nodes, car)
    return plan.arc_m, np.concatenate([plan.states, plan.controls, gains.reshape(len(gains), -1)], axis=1)


def close_lap(table: PlanTable, lap_m: float) -> PlanTable:
    """A flying lap's table, extended past the start line at both ends."""
    arc_m, rows = table
    arcs_m = np.concatenate([[arc_m[-1] - lap_m], arc_m, [arc_m[0] + lap_m]])
    return arcs_m, np.concatenate([rows[-1:], rows, rows[:1]])


class PlanTables:
    """Several plans in one table; each car looks up its own."""

    def __init__(self, tables: Sequence[PlanTable]) -> None:
        ends = np.cumsum([len(arc_m) for arc_m, _ in tables])
        self._first, self._last = np.concatenate([[0], ends[:-1]]), ends - 1
        self._key_m = np.concatenate([_APART_M * k + arc_m for k, (arc_m, _) in enumerate(tables)])
        self._rows = np.concatenate([rows for _, rows in tables])

    def read(self, which: NDArray[np.int64], at_m: Floats) -> tuple[Floats, Floats, Floats]:
        """States (num_cars, 9), controls (num_cars, 3) and gains (num_cars, 3, 9) of the plans at arc lengths.

        Linear between rows; constant beyond the ends of a plan.
        """
        key_m = _APART_M * which + at_m
        at = np.clip(np.searchsorted(self._key_m, key_m, side="right") - 1, self._first[which], self._last[which] - 1)
        fraction = np.clip((key_m - self._key_m[at]) / (self._key_m[at + 1] - self._key_m[at]), 0.0, 1.0)[:, None]
        rows = self._rows[at] * (1.0 - fraction) + self._rows[at + 1] * fraction
        states, controls, gains = np.split(rows, [NUM_STATES, NUM_STATES + NUM_CONTROLS], axis=1)
        return states, controls, gains.reshape(-1, NUM_CONTROLS, NUM_STATES)

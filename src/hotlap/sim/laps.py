"""Gates, laps, and lap times to a fraction of a tick.

Gates stand at equal distances along the lap; gate 0 is the start line. Only the next gate counts, and only when crossed
forwards, so circling, reversing over the line or skipping a gate never counts as a lap. Consecutive ticks compare the
same stored arc length, so no gate is missed between them.
"""

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.vehicle import TICK_S

F = np.float32
ZERO, ONE = F(0.0), F(1.0)


@kernel
def crossing_fraction(gate_s_m, from_s_m, to_s_m, moved_m, length_m):
    """The fraction of a tick's distance at which the gate was crossed forwards; negative if it was not crossed."""
    if moved_m <= ZERO:
        return -ONE
    gap_m = gate_s_m - from_s_m
    if to_s_m >= from_s_m:
        if gap_m <= ZERO or gate_s_m > to_s_m:
            return -ONE
    elif gap_m <= ZERO:  # the tick passed the end of the loop
        if gate_s_m > to_s_m:
            return -ONE
        gap_m = max(gap_m + length_m, ZERO)  # the last node's arc length may round to more than the lap's
    return min(gap_m / moved_m, ONE)


@kernel
def count_gates(me, from_s_m, to_s_m, moved_m, length_m, num_gates):
    """Count the gates that the car `me` crossed; returns (lap time in s or NaN, whether the lap was clean)."""
    lap_time_s = F(np.nan)
    lap_clean = False
    # At the inside wall of a bend arc length grows quickly: two gates in a tick are possible, more are not.
    for _ in range(2):
        gate_s_m = F(me.next_gate) * length_m / F(num_gates)
        fraction = crossing_fraction(gate_s_m, from_s_m, to_s_m, moved_m, length_m)
        if fraction < ZERO:
            break
        if me.next_gate == 0:
            if me.clock_runs:
                whole_ticks = me.tick - 1 - me.lap_start_tick
                lap_time_s = (F(whole_ticks) + (fraction - me.lap_start_share)) * TICK_S
                lap_clean = me.lap_spoiled == 0
                me.lap += 1
            me.clock_runs = 1
            me.lap_start_tick = me.tick - 1
            me.lap_start_share = fraction
            me.lap_spoiled = 0
        me.gate = me.next_gate
        me.next_gate = me.next_gate + 1 if me.next_gate + 1 < num_gates else 0
    return lap_time_s, lap_clean

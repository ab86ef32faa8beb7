"""Tyre forces from slip, load and surface.

Lateral force is Pacejka's magic formula, sin(C atan(B slip)), with the shape factor C = 3/2. At that value the formula
is algebraic: with c = cos(atan(y)) = 1/sqrt(1 + y²),

    sin(3/2 atan(y)) = y c (1 + 2c) / sqrt(2 + 2c),

so it needs two square roots and no trigonometry. It peaks at y = tan(60°) and falls to 0.71 of the peak when the
tyre slides sideways: a slide costs grip, but can be caught.

Drive and brake share the grip through a friction circle. A demand q (in units of the available grip) is met up to the
limit with a soft shoulder, q / (1 + q⁴)^(1/4), and what remains of the circle is left for cornering. That stands for
a wheel that begins to spin or lock, without the wheel's own very fast dynamics.
"""

from math import sqrt

import numpy as np

from hotlap.sim.compilation import kernel

F = np.float32
ONE, TWO = F(1.0), F(2.0)


@kernel
def available_grip(load_n, slope, curve_per_n):
    """Largest force (N) of an axle under `load_n`: friction falls a little with load, as real tyres' does."""
    return load_n * (slope - curve_per_n * load_n)


@kernel
def tyre_force(demand_n, slip, grip_n, stiffness):
    """Longitudinal and lateral force (N) in the wheel's frame.

    `demand_n` is the drive (positive) or brake (negative) force asked for, `slip` the sideways over the rolling speed,
    `grip_n` the radius of the friction circle, `stiffness` Pacejka's B.
    """
    q = demand_n / grip_n
    q2 = q * q
    shoulder = sqrt(ONE + q2 * q2)
    longitudinal_n = demand_n / sqrt(shoulder)
    y = stiffness * slip
    c = ONE / sqrt(ONE + y * y)
    # grip * sqrt(1 - (longitudinal/grip)²) * sin(3/2 atan(y)), written without cancellation.
    lateral_n = -grip_n * y * c * (ONE + TWO * c) / sqrt(shoulder * (shoulder + q2) * (TWO + TWO * c))
    return longitudinal_n, lateral_n

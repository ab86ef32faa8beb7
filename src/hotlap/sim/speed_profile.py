"""A quick estimate of the speed along a line, limited by grip, brakes and power."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import entry_point
from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, GRAVITY_MPS2, CarParameters


@entry_point()
def _sweep(squared, curvature, step_m, grip_mps2, drag_per_m, power_wpkg, force_npkg):
    """Limit squared speeds to what brakes (backwards) and drive (forwards) allow; two laps, as the lap is closed."""
    count = squared.shape[0]
    for k in range(2 * count, 0, -1):
        ahead = squared[k % count]
        bend = ahead * curvature[k % count]
        spare = sqrt(max(grip_mps2 * grip_mps2 - bend * bend, 0.0))
        limit = ahead + 2.0 * step_m * (spare + drag_per_m * ahead)
        squared[(k - 1) % count] = min(squared[(k - 1) % count], limit)
    for k in range(2 * count):
        behind = squared[k % count]
        bend = behind * curvature[k % count]
        spare = sqrt(max(grip_mps2 * grip_mps2 - bend * bend, 0.0))
        drive = min(min(power_wpkg / sqrt(max(behind, 1.0)), force_npkg), 0.6 * spare)
        limit = behind + 2.0 * step_m * max(drive - drag_per_m * behind, 0.0)
        squared[(k + 1) % count] = min(squared[(k + 1) % count], limit)


def speed_profile(
    curvature_radpm: NDArray[np.float64], step_m: float, car: CarParameters, grip_fraction: float
) -> NDArray[np.float64]:
    """Speeds (m/s) along a closed line driven with `grip_fraction` of the grip, estimated for a point mass.

    The drive can use 0.6 of the remaining grip, since only the rear wheels are driven.
    """
    grip_mps2 = grip_fraction * car.friction * float(GRAVITY_MPS2)
    top2 = car.top_speed_mps * car.top_speed_mps
    squared = np.minimum(grip_mps2 / np.maximum(np.abs(curvature_radpm), 1e-9), top2)
    drag_per_m = 0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2 / car.mass_kg
    _sweep(
        squared,
        np.ascontiguousarray(curvature_radpm, np.float64),
        step_m,
        grip_mps2,
        drag_per_m,
        car.power_w / car.mass_kg,
        car.drive_force_n / car.mass_kg,
    )
    return np.sqrt(squared)

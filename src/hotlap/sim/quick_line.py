"""Makes a line quicker: the lap time of a point mass on it, how bending the line changes that time, and a descent.

The speeds are those of `speed_profile`, with the spacing of the points of their own. The derivative of the time goes
the same way back: a speed that brakes or drive limit depends on the point before or after it, any other speed on the
curvature there.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import entry_point, kernel
from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, GRAVITY_MPS2, CarParameters

DRIVEN_GRIP = 0.6  # of the grip left: only the rear wheels are driven
# With less than this left for brakes or drive, what is left does not count as depending on the speed: its slope would
# be without limit, and at the limit of grip the speed keeps it at zero.
SOFT_MPS2 = 1.0

# The line is shifted by splines whose coefficients are so many points apart, each for so many rounds: long bends first.
STRIDES = 16, 8, 4, 2
ROUNDS = 200
FIRST_STEP_M, LAST_STEP_M = 0.2, 0.005  # of the coefficients, that of the longest stride at first
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.97  # of the slope and of its square, as in Adam
NUM_ROWS = 17  # of the work array


class PointMass(NamedTuple):
    """What limits the speed of the point mass."""

    grip_mps2: float
    drag_per_m: float
    power_wpkg: float
    force_npkg: float
    top2: float  # the square of the top speed

    @classmethod
    def of(cls, car: CarParameters) -> "PointMass":
        """A car with all its grip. Its parameters are rounded to float32, which is what the page has of them."""
        names = "mass_kg", "friction", "drag_area_m2", "power_w", "drive_force_n", "top_speed_mps"
        mass_kg, friction, area_m2, power_w, force_n, top_mps = (
            float(np.float32(getattr(car, name))) for name in names
        )
        drag_per_m = 0.5 * AIR_DENSITY_KGPM3 * area_m2 / mass_kg
        return cls(friction * GRAVITY_MPS2, drag_per_m, power_w / mass_kg, force_n / mass_kg, top_mps * top_mps)


@kernel
def wrapped(k, count):
    """The number of a point of the loop, given one up to a loop before or after; a remainder would take longer."""
    if k < 0:
        return k + count
    return k - count if k >= count else k


@entry_point()
def bend(x, y, curvature, spacing):
    """Fill curvature and spacing of the points of a closed line; returns its length."""
    count = x.shape[0]
    length = 0.0
    for k in range(count):
        before, after = wrapped(k - 1, count), wrapped(k + 1, count)
        along_x, along_y = 0.5 * (x[after] - x[before]), 0.5 * (y[after] - y[before])
        bend_x, bend_y = x[before] - 2.0 * x[k] + x[after], y[before] - 2.0 * y[k] + y[after]
        squared = max(along_x * along_x + along_y * along_y, 1e-9)
        spacing[k] = sqrt(squared)
        curvature[k] = (along_x * bend_y - along_y * bend_x) / (squared * spacing[k])
        length += spacing[k]
    return length


@kernel
def _spare(squared, curvature, mass):
    """Grip (m/s²) left for brakes or drive in a bend."""
    across = squared * curvature
    return sqrt(max(mass.grip_mps2 * mass.grip_mps2 - across * across, 0.0))


@kernel
def _drive(squared, spare, mass):
    return min(min(mass.power_wpkg / sqrt(max(squared, 1.0)), mass.force_npkg), DRIVEN_GRIP * spare)


@kernel
def _limit_speeds(curvature, spacing, mass, squared, braked, is_braked, is_driven):
    """Fill the squared speeds, those before the drive limits them, and where brakes and drive do; returns the time."""
    count = curvature.shape[0]
    for k in range(count):
        squared[k] = min(mass.grip_mps2 / max(abs(curvature[k]), 1e-9), mass.top2)
        is_braked[k], is_driven[k] = 0.0, 0.0
    k = 0
    for step in range(2 * count):
        before = wrapped(k - 1, count)
        spare = _spare(squared[k], curvature[k], mass)
        limit = squared[k] + 2.0 * spacing[before] * (spare + mass.drag_per_m * squared[k])
        if limit < squared[before]:
            squared[before], is_braked[before] = limit, 1.0
        elif step >= count:  # what follows is as it was the first time around
            break
        k = before
    for k in range(count):
        braked[k] = squared[k]
    k = 0
    for step in range(2 * count):
        after = wrapped(k + 1, count)
        drive = _drive(squared[k], _spare(squared[k], curvature[k], mass), mass)
        limit = squared[k] + 2.0 * spacing[k] * max(drive - mass.drag_per_m * squared[k], 0.0)
        if limit < squared[after]:
            squared[after], is_driven[after] = limit, 1.0
        elif step >= count:
            break
        k = after
    time_s = 0.0
    for k in range(count):
        time_s += spacing[k] / sqrt(squared[k])
    return time_s


@kernel
def _slopes(curvature, spacing, mass, squared, braked, is_braked, is_driven, by_squared, by_curvature):
    """Fill the derivative of the time by each curvature. `by_squared` is that by each squared speed, on the way."""
    count = curvature.shape[0]
    for k in range(count):
        by_squared[k] = -0.5 * spacing[k] / (squared[k] * sqrt(squared[k]))
        by_curvature[k] = 0.0
    after = 0
    for step in range(2 * count):
        k = wrapped(after - 1, count)
        slope = by_squared[after]
        if is_driven[after] == 1.0 and slope != 0.0:
            across = squared[k] * curvature[k]
            spare = _spare(squared[k], curvature[k], mass)
            drive, reach = _drive(squared[k], spare, mass), 2.0 * spacing[k]
            by_speed, by_bend = 0.0, 0.0
            if drive == mass.power_wpkg / sqrt(max(squared[k], 1.0)):
                by_speed = -0.5 * drive / squared[k]
            elif drive < mass.force_npkg and spare > SOFT_MPS2:
                by_speed = -DRIVEN_GRIP * across * curvature[k] / spare
                by_bend = -DRIVEN_GRIP * across * squared[k] / spare
            by_squared[after] = 0.0
            by_squared[k] += slope * max(1.0 + reach * (by_speed - mass.drag_per_m), 0.0)
            by_curvature[k] += slope * reach * by_bend
        elif step >= count:  # nothing is left to pass on
            break
        after = k
    before = 0
    for step in range(2 * count):
        k = wrapped(before + 1, count)
        slope = by_squared[before]
        if is_braked[before] == 1.0 and slope != 0.0:
            across = braked[k] * curvature[k]
            spare, reach = _spare(braked[k], curvature[k], mass), 2.0 * spacing[before]
            by_speed, by_bend = 0.0, 0.0
            if spare > SOFT_MPS2:
                by_speed, by_bend = -across * curvature[k] / spare, -across * braked[k] / spare
            by_squared[before] = 0.0
            by_squared[k] += slope * max(1.0 + reach * (mass.drag_per_m + by_speed), 0.0)
            by_curvature[k] += slope * reach * by_bend
        elif step >= count:
            break
        before = k
    for k in range(count):
        size = abs(curvature[k])
        if mass.grip_mps2 / max(size, 1e-9) < mass.top2:
            by_curvature[k] -= by_squared[k] * mass.grip_mps2 / (size * curvature[k])


@kernel
def _spline(weights, part):
    """Fill the weights of the four coefficients around a point, `part` of the way from the second to the third."""
    rest = 1.0 - part
    weights[0] = rest * rest * rest / 6.0
    weights[1] = (3.0 * part * part * part - 6.0 * part * part + 4.0) / 6.0
    weights[2] = (3.0 * rest * rest * rest - 6.0 * rest * rest + 4.0) / 6.0
    weights[3] = part * part * part / 6.0


@kernel
def _shift(offset, shifts, stride, weights, lowest, highest, shifted):
    """Fill the offsets shifted by the spline, within limits."""
    num_shifts = offset.shape[0] // stride
    for part in range(stride):
        _spline(weights, part / stride)
        for j in range(num_shifts):
            k = j * stride + part
            moved = offset[k]
            for near in range(4):
                moved += weights[near] * shifts[wrapped(j + near - 1, num_shifts)]
            shifted[k] = min(max(moved, lowest[k]), highest[k])


@kernel
def _gather(slopes, stride, weights, by_shift):
    """Fill the derivatives by the spline's coefficients, given those by the points' offsets."""
    num_shifts = slopes.shape[0] // stride
    for j in range(num_shifts):
        by_shift[j] = 0.0
    for part in range(stride):
        _spline(weights, part / stride)
        for j in range(num_shifts):
            slope = slopes[j * stride + part]
            for near in range(4):
                by_shift[wrapped(j + near - 1, num_shifts)] += weights[near] * slope


@kernel
def _limit_shifts(offset, lowest, highest, stride, least, most):
    """Fill the limits of each coefficient: what the points nearest to it allow."""
    count = offset.shape[0]
    for j in range(count // stride):
        least[j], most[j] = -1e9, 1e9
        for away in range(1 - stride, stride):
            k = wrapped(j * stride + away, count)
            least[j], most[j] = max(least[j], lowest[k] - offset[k]), min(most[j], highest[k] - offset[k])
        least[j], most[j] = min(least[j], 0.0), max(most[j], 0.0)


@entry_point()
def quicken(x, y, normal_x, normal_y, lowest, highest, offset, mass, stride, first_step, work):
    """Move the points along their normals, within limits, to lessen the time; returns the time at the best round.

    Adam's steps on the coefficients of a spline, `stride` points apart. `work` has `NUM_ROWS` rows of the points'
    number, which is a multiple of `stride`.
    """
    count = offset.shape[0]
    num_shifts = count // stride
    shifted, line_x, line_y, curvature, spacing = work[0], work[1], work[2], work[3], work[4]
    squared, braked, is_braked, is_driven, by_squared = work[5], work[6], work[7], work[8], work[9]
    by_curvature, slopes = work[10], work[11]
    # Coefficients are half as many as points at most, so a row has room for two of them.
    half = count // 2
    shifts, best = work[12, :half], work[12, half:]
    least, most = work[13, :half], work[13, half:]
    mean, square = work[14, :half], work[14, half:]
    by_shift, weights = work[15], work[16]
    _limit_shifts(offset, lowest, highest, stride, least, most)
    for j in range(num_shifts):
        shifts[j], best[j], mean[j], square[j] = 0.0, 0.0, 0.0, 0.0
    best_s = 1e18
    for number in range(ROUNDS):
        _shift(offset, shifts, stride, weights, lowest, highest, shifted)
        for k in range(count):
            line_x[k], line_y[k] = x[k] + normal_x[k] * shifted[k], y[k] + normal_y[k] * shifted[k]
        bend(line_x, line_y, curvature, spacing)
        time_s = _limit_speeds(curvature, spacing, mass, squared, braked, is_braked, is_driven)
        if time_s < best_s:
            best_s = time_s
            for j in range(num_shifts):
                best[j] = shifts[j]
        _slopes(curvature, spacing, mass, squared, braked, is_braked, is_driven, by_squared, by_curvature)
        for k in range(count):
            by_squared[k] = by_curvature[k] / (spacing[k] * spacing[k])
        for k in range(count):
            before, after = wrapped(k - 1, count), wrapped(k + 1, count)
            slope = by_squared[before] - 2.0 * by_squared[k] + by_squared[after]
            slope += curvature[k] * curvature[k] * by_curvature[k]
            slopes[k] = slope - curvature[k] * spacing[k] / sqrt(squared[k])
        _gather(slopes, stride, weights, by_shift)
        step_m = LAST_STEP_M + (first_step - LAST_STEP_M) * (1.0 - number / ROUNDS)
        for j in range(num_shifts):
            mean[j] = MEAN_DECAY * mean[j] + (1.0 - MEAN_DECAY) * by_shift[j]
            square[j] = SQUARE_DECAY * square[j] + (1.0 - SQUARE_DECAY) * by_shift[j] * by_shift[j]
            shifts[j] = min(max(shifts[j] - step_m * mean[j] / (sqrt(square[j]) + 1e-9), least[j]), most[j])
    _shift(offset, best, stride, weights, lowest, highest, shifted)
    for k in range(count):
        offset[k] = shifted[k]
    return best_s


def quicken_line(
    road: tuple[NDArray[np.float64], ...], offset_m: NDArray[np.float64], car: CarParameters
) -> NDArray[np.float64]:
    """Offsets of a line that a car is quicker on, given one; `road` has x, y, normals and limits of its points."""
    offset_m, mass, work = offset_m.copy(), PointMass.of(car), np.empty((NUM_ROWS, len(offset_m)))
    for stride in STRIDES:
        quicken(*road, offset_m, mass, stride, FIRST_STEP_M * stride / STRIDES[0], work)
    return offset_m

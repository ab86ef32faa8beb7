"""Compares a driver's lap with the optimal one along the track and finds where time is lost."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ReportError
from hotlap.evaluation.evaluate import Lap
from hotlap.evaluation.telemetry import Floats, Telemetry
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, TICKS_PER_SECOND, CarParameters
from hotlap.tracks.files.raceline_file import Raceline
from hotlap.tracks.geometry.corners import find_corners, name_corners
from hotlap.tracks.registry import Track

# A raceline is sampled, so its speeds give its lap time only approximately. A larger mismatch is an error.
TIME_MISMATCH = 0.02

# The nearest node is searched this far around the place that even progress along the raceline gives.
_SEARCH_FRACTION = 0.08  # of the lap
_MIN_SEARCH_M = 60.0
_BLOCK = 512  # points compared at once, to limit memory on long tracks
_MIN_SPEED_MPS = 0.1  # keeps the time at a point of standstill finite


@dataclass(frozen=True)
class Sector:
    """The road around a corner, from halfway after the previous corner to halfway before the next one.

    `start_m` is greater than `end_m` if the start line is between them; `number` is 0 on a track without corners.
    """

    number: int
    name: str
    apex_m: float
    start_m: float
    end_m: float
    lost_s: float
    driver_slowest_mps: float
    optimal_slowest_mps: float

    @property
    def label(self) -> str:
        """The label in reports, for example 'T4 hairpin'."""
        return f"T{self.number} {self.name}" if self.number else self.name


@dataclass(frozen=True)
class Comparison:
    """A flying lap of a driver and the optimal lap, as functions of arc length along the centreline.

    The optimal throttle and brake are estimated from the acceleration; the driver's are recorded.
    """

    lap: Lap
    optimal_lap_s: float
    arc_m: Floats  # (num_nodes + 1,), from the start line to the start line
    driver_time_s: Floats
    optimal_time_s: Floats
    driver_speed_mps: Floats
    optimal_speed_mps: Floats
    driver_throttle: Floats
    optimal_throttle: Floats
    driver_brake: Floats
    optimal_brake: Floats
    driver_line: tuple[Floats, Floats, Floats]  # x (m), y (m), speed (m/s) per tick
    optimal_line: tuple[Floats, Floats, Floats]
    sectors: list[Sector]  # by time lost, largest first

    @property
    def delta_s(self) -> Floats:
        """Time lost since the start line; the last value is the difference of the lap times."""
        return self.driver_time_s - self.optimal_time_s

    @property
    def gap(self) -> float:
        """The driver's lap time / optimal lap time - 1."""
        return self.lap.time_s / self.optimal_lap_s - 1.0


def best_flying_lap(laps: list[Lap]) -> Lap | None:
    """The fastest clean flying lap; the fastest flying lap if none is clean; None if there is no flying lap."""
    flying = [lap for lap in laps if lap.number > 1]
    return min(flying, key=lambda lap: (not lap.is_clean, lap.time_s), default=None)


def lap_line(trace: Telemetry, track: Track, lap: Lap) -> tuple[Floats, Floats, Floats]:
    """A lap of a drive: x (m), y (m), speed (m/s) per tick."""
    rows, _, _ = _lap_rows(trace, lap, track.nodes.length_m)
    return trace.x_m[rows], trace.y_m[rows], trace.speed_mps[rows]


def compare(trace: Telemetry, track: Track, raceline: Raceline, optimal_lap_s: float) -> Comparison:
    """Compare the best flying lap of a drive with the track's optimal lap."""
    lap = best_flying_lap(trace.laps)
    if lap is None:
        raise ReportError(f"there is no flying lap among {len(trace.laps)} laps. Drive at least 2 laps in a row.")
    nodes = track.nodes
    arc_m: Floats = np.arange(nodes.num_nodes + 1, dtype=np.float64) * nodes.step_m
    rows, times_s, reached_m = _lap_rows(trace, lap, nodes.length_m)
    is_new = _is_progress(reached_m)
    driver_time_s = np.interp(arc_m, reached_m[is_new], times_s[is_new])
    columns = np.stack([trace.speed_mps, trace.throttle, trace.brake])[:, rows]
    speed_mps, throttle, brake = (np.interp(arc_m, reached_m[1:-1][is_new[1:-1]], c[is_new[1:-1]]) for c in columns)
    optimal_time_s, optimal_speed_mps, accel_mps2 = optimal_profile(raceline, nodes, optimal_lap_s, arc_m)
    optimal_throttle, optimal_brake = estimate_pedals(optimal_speed_mps, accel_mps2, CarParameters())
    return Comparison(
        lap=lap,
        optimal_lap_s=optimal_lap_s,
        arc_m=arc_m,
        driver_time_s=driver_time_s,
        optimal_time_s=optimal_time_s,
        driver_speed_mps=speed_mps,
        optimal_speed_mps=optimal_speed_mps,
        driver_throttle=throttle,
        optimal_throttle=optimal_throttle,
        driver_brake=brake,
        optimal_brake=optimal_brake,
        driver_line=lap_line(trace, track, lap),
        optimal_line=(raceline.x_m, raceline.y_m, raceline.vx_mps),
        sectors=_sectors(nodes, arc_m, driver_time_s - optimal_time_s, (speed_mps, optimal_speed_mps)),
    )


def _lap_rows(trace: Telemetry, lap: Lap, length_m: float) -> tuple[slice, Floats, Floats]:
    """The trace's rows in a lap, and their times (s) and progress (m) with the start line added at both ends."""
    start_s = sum(other.time_s for other in trace.laps if other.number < lap.number)
    first = math.floor(start_s * TICKS_PER_SECOND) + 1
    last = math.ceil((start_s + lap.time_s) * TICKS_PER_SECOND) - 1
    rows = slice(first, last + 1)
    times_s = np.arange(first, last + 1) / TICKS_PER_SECOND - start_s
    unwrapped_m = _unwrap(trace.arc_m[rows], length_m)
    # By rounding, a row next to the start line may be on its other side.
    progress_m = unwrapped_m - length_m * round(unwrapped_m[0] / length_m)
    return rows, np.concatenate([[0.0], times_s, [lap.time_s]]), np.concatenate([[0.0], progress_m, [length_m]])


def _unwrap(arc_m: Floats, length_m: float) -> Floats:
    """Arc lengths that keep growing at the start line."""
    unwrapped: Floats = np.unwrap(arc_m, period=length_m)
    return unwrapped


def _is_progress(reached_m: Floats) -> NDArray[np.bool_]:
    """Which rows are further along the lap than all earlier ones: a car that spins passes a place more than once."""
    furthest_m = np.maximum.accumulate(reached_m)
    is_new = np.concatenate([[True], reached_m[1:] > furthest_m[:-1]])
    is_new[1:-1] &= (reached_m[1:-1] > reached_m[0]) & (reached_m[1:-1] < reached_m[-1])
    is_new[-1] = True
    return np.asarray(is_new)


def project(raceline: Raceline, nodes: RibbonNodes) -> Floats:
    """Arc length (m) along the centreline of each point of a raceline; it keeps growing at the start line.

    The nearest node is searched around the place that even progress gives, and only among nodes with a similar
    direction, so that an overpass or the other leg of a hairpin is not matched.
    """
    size = nodes.num_nodes
    x, y = raceline.x_m, raceline.y_m
    step_m = np.hypot(np.diff(x, append=x[0]), np.diff(y, append=y[0]))
    fraction = np.concatenate([[0.0], np.cumsum(step_m)[:-1]]) / max(float(step_m.sum()), 1e-9)
    course_x, course_y = -np.sin(raceline.psi_rad), np.cos(raceline.psi_rad)  # psi is 0 to the north

    def nearest(points: slice, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
        at = candidates % size
        dx, dy = x[points, None] - nodes.x_m[at], y[points, None] - nodes.y_m[at]
        is_facing = course_x[points, None] * nodes.tangent_x[at] + course_y[points, None] * nodes.tangent_y[at] > 0.0
        square = np.where(is_facing, dx * dx + dy * dy, np.inf)
        best = np.argmin(square, axis=1)
        return np.take_along_axis(np.broadcast_to(at, square.shape), best[:, None], axis=1)[:, 0]

    start = nearest(slice(0, 1), np.arange(size)[None, :])[0]
    reach = min(round(max(_MIN_SEARCH_M, _SEARCH_FRACTION * nodes.length_m) / nodes.step_m), size // 2)
    centre = start + np.round(fraction * size).astype(np.intp)
    around = np.arange(-reach, reach + 1)[None, :]
    blocks = [slice(first, first + _BLOCK) for first in range(0, len(x), _BLOCK)]
    node = np.concatenate([nearest(block, centre[block, None] + around) for block in blocks])
    ahead_m = _ahead(nodes, node, x, y)
    node = np.where(ahead_m < 0.0, node - 1, node) % size
    behind_m, beyond_m = _ahead(nodes, node, x, y), _ahead(nodes, (node + 1) % size, x, y)
    within = np.clip(behind_m / np.maximum(behind_m - beyond_m, 1e-9), 0.0, 1.0)
    return _unwrap((node + within) * nodes.step_m, nodes.length_m)


def _ahead(nodes: RibbonNodes, node: NDArray[np.intp], x: Floats, y: Floats) -> Floats:
    """How far (m) points lie ahead of the cross-sections of their nodes."""
    ahead: Floats = (x - nodes.x_m[node]) * nodes.tangent_x[node] + (y - nodes.y_m[node]) * nodes.tangent_y[node]
    return ahead


def optimal_profile(
    raceline: Raceline, nodes: RibbonNodes, optimal_lap_s: float, arc_m: Floats
) -> tuple[Floats, Floats, Floats]:
    """Time since the line (s), speed (m/s) and acceleration (m/s²) of the raceline at arc lengths of the centreline."""
    length_m = nodes.length_m
    own_m = project(raceline, nodes)
    if not (np.diff(own_m, append=own_m[0] + length_m) > 0.0).all():
        raise ReportError("the raceline does not go once around this track. Does it belong to another track?")
    # Two laps, starting before the start line, so that a lap from line to line can be cut out.
    begin = own_m[0] - length_m * math.floor(own_m[0] / length_m) - length_m
    have_m = np.concatenate([own_m, own_m + length_m, [own_m[0] + 2.0 * length_m]]) - own_m[0] + begin
    speed_mps = np.maximum(np.concatenate([np.tile(raceline.vx_mps, 2), raceline.vx_mps[:1]]), _MIN_SPEED_MPS)
    closing_m = math.hypot(raceline.x_m[0] - raceline.x_m[-1], raceline.y_m[0] - raceline.y_m[-1])
    pieces_m = np.tile(np.append(np.diff(raceline.s_m), closing_m), 2)
    # Constant acceleration between points: the time of a piece is its length over its mean speed.
    taken_s = 2.0 * pieces_m / (speed_mps[1:] + speed_mps[:-1])
    reached_s = np.concatenate([[0.0], np.cumsum(taken_s)])
    at = np.clip(np.searchsorted(have_m, arc_m, side="right") - 1, 0, len(taken_s) - 1)
    fraction = (arc_m - have_m[at]) / (have_m[at + 1] - have_m[at])
    at_speed_mps = np.sqrt((1.0 - fraction) * speed_mps[at] ** 2 + fraction * speed_mps[at + 1] ** 2)
    mean_mps = 0.5 * (speed_mps[at] + speed_mps[at + 1])
    since_s = fraction * taken_s[at] * 2.0 * mean_mps / (speed_mps[at] + at_speed_mps)
    time_s = reached_s[at] + since_s
    time_s -= time_s[0]
    if abs(time_s[-1] / optimal_lap_s - 1.0) > TIME_MISMATCH:
        raise ReportError(
            f"the raceline takes {time_s[-1]:.2f} s at its speeds, but the given lap time is {optimal_lap_s:.2f} s. "
            f"Do they belong to the same lap?"
        )
    accel = np.concatenate([np.tile(raceline.ax_mps2, 2), raceline.ax_mps2[:1]])
    return time_s * (optimal_lap_s / time_s[-1]), at_speed_mps, np.interp(arc_m, have_m, accel)


def estimate_pedals(speed_mps: Floats, accel_mps2: Floats, car: CarParameters) -> tuple[Floats, Floats]:
    """Throttle and brake (0 to 1) that give this acceleration on a straight.

    Drag and rolling resistance are included; cornering drag and the limit of grip under braking are not.
    """
    drag_mps2 = 0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2 / car.mass_kg * speed_mps**2
    force_n = car.mass_kg * (accel_mps2 + drag_mps2 + car.rolling_mps2)
    ratio = speed_mps * car.drive_force_n / car.power_w
    available_n = car.drive_force_n / np.sqrt(1.0 + ratio * ratio)
    return np.clip(force_n / available_n, 0.0, 1.0), np.clip(-force_n / car.brake_force_n, 0.0, 1.0)


def _sectors(nodes: RibbonNodes, arc_m: Floats, delta_s: Floats, speeds_mps: tuple[Floats, Floats]) -> list[Sector]:
    """The lap cut halfway between corners, with the time lost in each sector, largest first."""
    corners = find_corners(nodes)
    length_m, total_s = nodes.length_m, float(delta_s[-1])
    if not corners:
        slowest = (float(speed_mps.min()) for speed_mps in speeds_mps)
        return [Sector(0, "whole lap", 0.5 * length_m, 0.0, length_m, total_s, *slowest)]
    apexes_m = np.array([corner.apex for corner in corners]) * nodes.step_m
    gaps_m = np.diff(apexes_m, append=apexes_m[0] + length_m)
    ends_m = (apexes_m + 0.5 * gaps_m) % length_m
    starts_m = np.roll(ends_m, 1)
    names = name_corners(nodes, corners)
    sectors = []
    for index, (start_m, end_m) in enumerate(zip(starts_m.tolist(), ends_m.tolist(), strict=True)):
        start_s, end_s = np.interp([start_m, end_m], arc_m, delta_s).tolist()
        lost_s = end_s - start_s + (total_s if end_m <= start_m else 0.0)
        is_inside = (arc_m - start_m) % length_m <= ((end_m - start_m) % length_m or length_m)
        slowest = (float(speed_mps[is_inside].min()) for speed_mps in speeds_mps)
        sectors.append(Sector(index + 1, names[index], float(apexes_m[index]), start_m, end_m, lost_s, *slowest))
    return sorted(sectors, key=lambda sector: -sector.lost_s)

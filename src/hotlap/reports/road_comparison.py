"""Compares generated roads with real ones: percentiles of what was measured, and how many real corners they cover."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from hotlap.errors import ReportError
from hotlap.tracks.geometry.road_statistics import CornerStatistics, RoadStatistics

_Item = TypeVar("_Item")

LONG_STRAIGHT_M = 150.0
PERCENTILES = (0, 10, 50, 90, 100)
MANY_NEIGHBOURS = 10

# Two corners are near each other if they differ by no more than this in every measure.
NEAR_ENTRY_M, NEAR_ENTRY_FRACTION = 25.0, 0.3
NEAR_RADIUS_FRACTION = 0.25
NEAR_WIDTH_M = 1.5
NEAR_TURN_RAD = math.radians(20.0)


@dataclass(frozen=True)
class MeasureSpread:
    """A measure's percentiles, those of `PERCENTILES`."""

    real: tuple[float, ...]
    generated: tuple[float, ...]


@dataclass(frozen=True)
class RoadComparison:
    """The measures of both sets by name, and the fractions of real corners near a generated one, and near many."""

    num_real_corners: int
    num_generated_corners: int
    spreads: dict[str, MeasureSpread]
    covered: float
    covered_many: float
    left_fraction: float  # of the generated corners

    def as_json(self) -> dict[str, object]:
        """The figures for a result file."""
        return asdict(self)


def compare_roads(real: Sequence[RoadStatistics], generated: Sequence[RoadStatistics]) -> RoadComparison:
    """The comparison of two sets of roads."""
    real_corners, generated_corners = corners_of(real), corners_of(generated)
    if not real_corners or not generated_corners:
        raise ReportError("roads to compare need corners, got none. Give circuits, and at least one seed.")
    spreads = {name: _spread(pick, real, generated) for name, pick in ROAD_MEASURES.items()}
    for suffix, least_m in (("", -1.0), (AFTER_STRAIGHT, LONG_STRAIGHT_M)):
        both = [[c for c in found if c.entry_m > least_m] for found in (real_corners, generated_corners)]
        for name, pick in CORNER_MEASURES.items():
            spreads[name + suffix] = _spread(pick, *both)
    near = count_near(real_corners, generated_corners)
    return RoadComparison(
        num_real_corners=len(real_corners),
        num_generated_corners=len(generated_corners),
        spreads=spreads,
        covered=float(np.mean(near >= 1)),
        covered_many=float(np.mean(near >= MANY_NEIGHBOURS)),
        left_fraction=float(np.mean([c.turn_rad > 0.0 for c in generated_corners])),
    )


def corners_of(roads: Sequence[RoadStatistics]) -> list[CornerStatistics]:
    """The corners of all roads."""
    return [corner for road in roads for corner in road.corners]


def count_near(corners: Sequence[CornerStatistics], among: Sequence[CornerStatistics]) -> np.ndarray:
    """For each corner how many of `among` are near it; left and right are the same."""
    entry_m, radius_m, width_m, turn_rad = _columns(among)
    counts = []
    for at in corners:
        is_near = np.abs(entry_m - at.entry_m) <= NEAR_ENTRY_M + NEAR_ENTRY_FRACTION * at.entry_m
        is_near &= np.abs(radius_m - at.radius_m) <= NEAR_RADIUS_FRACTION * at.radius_m
        is_near &= np.abs(width_m - at.width_m) <= NEAR_WIDTH_M
        is_near &= np.abs(turn_rad - abs(at.turn_rad)) <= NEAR_TURN_RAD
        counts.append(int(is_near.sum()))
    return np.array(counts)


def _columns(corners: Sequence[CornerStatistics]) -> tuple[np.ndarray, ...]:
    rows = [(c.entry_m, c.radius_m, c.width_m, abs(c.turn_rad)) for c in corners]
    return tuple(np.array(rows, dtype=np.float64).T)


def _spread(pick: Callable[[_Item], float], real: Sequence[_Item], generated: Sequence[_Item]) -> MeasureSpread:
    return MeasureSpread(_percentiles(list(map(pick, real))), _percentiles(list(map(pick, generated))))


def _percentiles(values: list[float]) -> tuple[float, ...]:
    return tuple(np.percentile(values, PERCENTILES).tolist()) if values else ()


AFTER_STRAIGHT = f", after a straight of over {LONG_STRAIGHT_M:g} m"
ROAD_MEASURES: dict[str, Callable[[RoadStatistics], float]] = {
    "lap (m)": lambda road: road.length_m,
    "narrowest (m)": lambda road: road.min_width_m,
    "median width (m)": lambda road: road.median_width_m,
    "widest (m)": lambda road: road.max_width_m,
    "widest over narrowest": lambda road: road.max_width_m / road.min_width_m,
    "longest straight (m)": lambda road: road.longest_straight_m,
    "straight fraction of a lap": lambda road: road.straight_fraction,
    "turning (rad/km)": lambda road: road.turning_radpkm,
    "corners per km": lambda road: 1000.0 * len(road.corners) / road.length_m,
}
CORNER_MEASURES: dict[str, Callable[[CornerStatistics], float]] = {
    "straight before a corner (m)": lambda corner: corner.entry_m,
    "tightest radius (m)": lambda corner: corner.radius_m,
    "width at a corner (m)": lambda corner: corner.width_m,
    "angle (°)": lambda corner: math.degrees(abs(corner.turn_rad)),
}

"""The guide: a quick line through a road and the speed along it, from the road's shape alone.

A driver can be shown it (`road_view`) and its progress can be measured by it (`rewards`). The line of least curvature
is found first and made quicker then (`quick_line`). It is not the optimal lap: that minimizes the time of the simulated
car, and this the time of a point mass. The page computes it too, with the same arithmetic in the same order, so that
both have the same road.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import entry_point
from hotlap.sim.quick_line import STRIDES, bend, quicken_line, wrapped
from hotlap.sim.ribbon import GUIDE, Ribbons
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import CarParameters

# The line is found on points about 12 m apart, then on twice as many, then on four times as many: long bends first.
# These are a multiple of the longest stride of `quick_line`.
COARSE_SPACING_M = 12.0
COARSE_MULTIPLE = STRIDES[0] // 4
SWEEPS = 1500, 600, 300
# Of the gradient: less than the inverse of its largest slope, 16 for second differences.
STEP_SIZE = 1.0 / 17.0

EDGE_MARGIN_M = 0.5
GRIP_FRACTION = 0.9
MIN_STRETCH = 0.25  # of the line over the centreline: a line around a bend's centre point would have none
MIN_SPEED_MPS = 1.0


@entry_point()
def _sample(values, count, samples):
    """Fill `samples` with `values` at `count` even places of the loop, linear between the given ones."""
    size = values.shape[0]
    for k in range(count):
        place = k * size / count
        node = int(place)
        fraction = place - node
        samples[k] = values[node] * (1.0 - fraction) + values[(node + 1) % size] * fraction


@entry_point()
def _straighten(x, y, normal_x, normal_y, lowest, highest, offset, sweeps, work):
    """Move the points along their normals to lessen the sum of squared second differences, within limits.

    Projected gradient descent with Nesterov's momentum, which begins again whenever it leads uphill. `work` has three
    rows of the points' number.
    """
    count = offset.shape[0]
    tried, bend_x, bend_y = work[0], work[1], work[2]
    for k in range(count):
        tried[k] = offset[k]
    weight = 1.0
    for _ in range(sweeps):
        for k in range(count):
            before, after = wrapped(k - 1, count), wrapped(k + 1, count)
            here_x, here_y = x[k] + normal_x[k] * tried[k], y[k] + normal_y[k] * tried[k]
            before_x = x[before] + normal_x[before] * tried[before]
            before_y = y[before] + normal_y[before] * tried[before]
            after_x, after_y = x[after] + normal_x[after] * tried[after], y[after] + normal_y[after] * tried[after]
            bend_x[k] = before_x - 2.0 * here_x + after_x
            bend_y[k] = before_y - 2.0 * here_y + after_y
        next_weight = 0.5 * (1.0 + sqrt(1.0 + 4.0 * weight * weight))
        momentum, weight = (weight - 1.0) / next_weight, next_weight
        uphill = 0.0
        for k in range(count):
            before, after = wrapped(k - 1, count), wrapped(k + 1, count)
            slope_x = bend_x[before] - 2.0 * bend_x[k] + bend_x[after]
            slope_y = bend_y[before] - 2.0 * bend_y[k] + bend_y[after]
            slope = slope_x * normal_x[k] + slope_y * normal_y[k]
            found = min(max(tried[k] - STEP_SIZE * slope, lowest[k]), highest[k])
            moved = found - offset[k]
            uphill += (tried[k] - found) * moved
            tried[k], offset[k] = found + momentum * moved, found
        if uphill > 0.0:
            weight = 1.0


def _sampled(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    samples = np.empty(count)
    _sample(np.ascontiguousarray(values, np.float64), count, samples)
    return samples


def guide_line(nodes: RibbonNodes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For every node the guide's distance (m) to the left of the centreline, and its progress (m/s) along the lap."""
    car = CarParameters()
    coarse = COARSE_MULTIPLE * max(2, int(nodes.length_m / (COARSE_SPACING_M * COARSE_MULTIPLE) + 0.5))
    highest_m = np.maximum(np.minimum(nodes.road_left_m, nodes.wall_left_m - car.radius_m) - EDGE_MARGIN_M, 0.0)
    lowest_m = -np.maximum(np.minimum(nodes.road_right_m, nodes.wall_right_m - car.radius_m) - EDGE_MARGIN_M, 0.0)
    columns = nodes.x_m, nodes.y_m, -nodes.tangent_y, nodes.tangent_x, lowest_m, highest_m
    offset_m = np.zeros(coarse)
    for level, sweeps in enumerate(SWEEPS):
        count = coarse << level
        road = tuple(_sampled(column, count) for column in columns)
        offset_m = np.minimum(np.maximum(_sampled(offset_m, count), road[4]), road[5])
        _straighten(*road, offset_m, sweeps, np.empty((3, count)))
    offset_m = quicken_line(road, offset_m, car)
    x, y, normal_x, normal_y = road[:4]
    curvature_radpm, spacing_m = np.empty(count), np.empty(count)
    line_m = bend(x + normal_x * offset_m, y + normal_y * offset_m, curvature_radpm, spacing_m)
    step_m = nodes.length_m / count
    speed_mps = speed_profile(curvature_radpm, line_m / count, car, GRIP_FRACTION)
    progress_mps = np.maximum(speed_mps / np.maximum(spacing_m / step_m, MIN_STRETCH), MIN_SPEED_MPS)
    return _sampled(offset_m, nodes.num_nodes), _sampled(progress_mps, nodes.num_nodes)


def add_guides(ribbons: Ribbons, tracks: Sequence[RibbonNodes]) -> Ribbons:
    """The ribbons with the guides of their tracks. It takes many times as long as all the rest of a ribbon."""
    nodes = ribbons.nodes.copy()
    for head, track in zip(ribbons.tracks, tracks, strict=True):
        first = int(head["first_node"])
        for name, column in zip(GUIDE, guide_line(track), strict=True):
            nodes[name][first : first + track.num_nodes] = column
    return ribbons._replace(nodes=nodes)

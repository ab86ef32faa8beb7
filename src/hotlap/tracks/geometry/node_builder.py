"""From a centreline's points to the uniform nodes that the simulator drives on.

Splines, roads and walls are hand-written in plain IEEE arithmetic (add, multiply, divide, square root, in a fixed
order), without the platform's math library, BLAS or fused sums: the nodes are part of the physics version and must be
bit-identical on every machine.
"""

import numpy as np

from hotlap.errors import TrackError
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.centreline import Centreline, recentre
from hotlap.tracks.geometry.polyline import Crossing, self_crossings
from hotlap.tracks.geometry.road import Fault, Road, find_overpasses, road_fault, trace
from hotlap.tracks.geometry.spline import FloatArray
from hotlap.tracks.geometry.walls import build_walls

DEFAULT_RUNOFF_M = 6.0
DEFAULT_SPACING_M = 1.0


def build_nodes(
    centreline: Centreline, *, runoff_m: float = DEFAULT_RUNOFF_M, spacing_m: float = DEFAULT_SPACING_M
) -> RibbonNodes:
    """Uniform nodes along the periodic cubic spline through the points, node 0 on the first point.

    Walls stand `runoff_m` beyond the road, less on the inside of a bend and between two parallel legs, but a car on
    the road touches none: where the inside of a bend is too tight, the road is narrowed. A centreline more than 10 km
    from the origin is first moved there (see `recentre`).
    """
    if not (runoff_m >= 0.0 and spacing_m > 0.0):
        raise TrackError(
            f"runoff is {runoff_m} m and spacing {spacing_m} m; runoff must be at least 0, spacing positive."
        )
    nodes = try_to_build(centreline, runoff_m, spacing_m)
    if isinstance(nodes, Fault):
        raise TrackError(nodes.text)
    return nodes


def try_to_build(
    centreline: Centreline, runoff_m: float = DEFAULT_RUNOFF_M, spacing_m: float = DEFAULT_SPACING_M
) -> RibbonNodes | Fault:
    """The nodes of `build_nodes`, or the first reason why there are none."""
    laid = _lay(centreline, spacing_m)
    if isinstance(laid, Fault):
        return laid
    road, wall_left_m, wall_right_m = build_walls(*laid, runoff_m)
    return RibbonNodes(
        step_m=road.step,
        x_m=road.x,
        y_m=road.y,
        tangent_x=road.tx,
        tangent_y=road.ty,
        curvature_radpm=road.curvature,
        road_left_m=road.left,
        road_right_m=road.right,
        wall_left_m=wall_left_m,
        wall_right_m=wall_right_m,
    )


def find_fault(centreline: Centreline) -> Fault | None:
    """The first reason `build_nodes` would refuse this centreline, or None."""
    laid = _lay(centreline, DEFAULT_SPACING_M)
    return laid if isinstance(laid, Fault) else None


def _lay(centreline: Centreline, spacing_m: float) -> tuple[Road, list[Crossing]] | Fault:
    """The road without walls and its overpasses, or the first reason why it cannot be driven."""
    road = trace(recentre(centreline), spacing_m)
    if isinstance(road, Fault):
        return road
    crossings = find_overpasses(road)
    return road_fault(road, crossings) or (road, crossings)


def edge_points(nodes: RibbonNodes, distance_left_m: FloatArray | float) -> FloatArray:
    """World points (num_nodes, 2) at a distance left of the centreline; negative is right."""
    x = nodes.x_m - nodes.tangent_y * distance_left_m
    y = nodes.y_m + nodes.tangent_x * distance_left_m
    return np.stack((x, y), axis=1)


def road_edges(nodes: RibbonNodes) -> tuple[FloatArray, FloatArray]:
    """Left and right edge of the road, each (num_nodes, 2)."""
    return edge_points(nodes, nodes.road_left_m), edge_points(nodes, -nodes.road_right_m)


def wall_lines(nodes: RibbonNodes) -> tuple[FloatArray, FloatArray]:
    """Left and right wall, each (num_nodes, 2)."""
    return edge_points(nodes, nodes.wall_left_m), edge_points(nodes, -nodes.wall_right_m)


def find_crossings(nodes: RibbonNodes) -> list[Crossing]:
    """Every place where the centreline crosses itself."""
    return self_crossings(nodes.x_m, nodes.y_m)

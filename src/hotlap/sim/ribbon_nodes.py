"""A track as evenly spaced nodes in float64: what tracks are built as, and ribbons are packed from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RibbonNodes:
    """One closed track as uniform nodes, float64 of shape (num_nodes,), world frame, in driving order.

    Node 0 lies on the start line. `road_*` and `wall_*` are distances from the centreline to the road's edge and to
    the wall, measured along the normal (left of travel is positive curvature's side).
    """

    step_m: float  # arc length from node to node
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    tangent_x: NDArray[np.float64]  # unit
    tangent_y: NDArray[np.float64]
    curvature_radpm: NDArray[np.float64]  # positive turns left
    road_left_m: NDArray[np.float64]
    road_right_m: NDArray[np.float64]
    wall_left_m: NDArray[np.float64]
    wall_right_m: NDArray[np.float64]

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the loop."""
        return len(self.x_m)

    @property
    def length_m(self) -> float:
        """Length of the lap along the centreline."""
        return self.step_m * self.num_nodes

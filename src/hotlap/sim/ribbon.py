"""A track as arrays: position on it, distances to the road's edges, walls.

Neighbouring nodes and their wall points span a strip of quads, one per metre. The strip is all the simulator knows of a
track, so a track may cross over itself: the other level is another part of the strip.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import kernel
from hotlap.sim.maths import mix
from hotlap.sim.ribbon_nodes import RibbonNodes

F = np.float32
U = np.uintp  # unsigned indices: numba need not look for negative ones
N = np.int32  # node numbers: a GPU adds and compares 64 bits in two instructions each
ZERO, ONE = F(0.0), F(1.0)

# A car moves at most a few nodes in a tick; the bound keeps the search finite for any input.
MAX_WALK = 64

# How many nodes a ray may jump at once, far and near (see rays.py).
FAR_SPAN, NEAR_SPAN = 16, 4


TRACK_DTYPE = np.dtype(
    [
        ("first_node", np.int32),
        ("first_portal", np.int32),
        ("num_nodes", np.int32),
        ("step_m", np.float32),
        ("length_m", np.float32),
        ("widest_wall_m", np.float32),
    ],
    align=True,
)

NODE_DTYPE = np.dtype(
    [
        ("x_m", np.float32),
        ("y_m", np.float32),
        ("tangent_x", np.float32),
        ("tangent_y", np.float32),
        ("road_left_m", np.float32),
        ("road_right_m", np.float32),
        ("wall_left_m", np.float32),
        ("wall_right_m", np.float32),
        ("curvature_radpm", np.float32),
        ("start_speed_mps", np.float32),  # a speed from which the rest of the lap can be driven
        ("guide_left_m", np.float32),  # a quick line, left of the centreline (see guide_line.py)
        ("guide_mps", np.float32),  # and the progress along the lap of a car that follows it
    ],
    align=True,
)
GUIDE = "guide_left_m", "guide_mps"
_SHAPE = tuple(name for name in NODE_DTYPE.names or () if name not in ("start_speed_mps", *GUIDE))

# The portal at each node (left and right wall point), and how far the walls of the next few quads stray from
# the straight line between this portal's wall point and the last one's: what a ray needs to jump (see rays.py).
# Each track's portals are repeated over the ends of the loop, so that a jump needs no wrapping.
PORTAL_DTYPE = np.dtype(
    [
        ("left_x", np.float32),
        ("left_y", np.float32),
        ("right_x", np.float32),
        ("right_y", np.float32),
        ("far_stray_m", np.float32),
        ("near_stray_m", np.float32),
    ],
    align=True,
)


class Ribbons(NamedTuple):
    """Any number of tracks in three flat arrays; `tracks[k]` says where track k's nodes begin."""

    tracks: NDArray[np.void]
    nodes: NDArray[np.void]
    portals: NDArray[np.void]


def pack_ribbons(tracks: Sequence[RibbonNodes], start_speeds_mps: Sequence[NDArray[np.float64]]) -> Ribbons:
    """The tracks in the simulator's format; `start_speeds_mps` has a speed for every node of every track.

    They have no guide: `guide_line.add_guides` gives them one, for those who see it.
    """
    heads = np.zeros(len(tracks), TRACK_DTYPE)
    nodes = np.zeros(sum(track.num_nodes for track in tracks), NODE_DTYPE)
    portals = np.zeros(len(nodes) + 2 * FAR_SPAN * len(tracks), PORTAL_DTYPE)
    first = 0
    for index, (head, track, start_speed_mps) in enumerate(zip(heads, tracks, start_speeds_mps, strict=True)):
        last = first + track.num_nodes
        head["first_node"], head["num_nodes"] = first, track.num_nodes
        head["step_m"], head["length_m"] = track.step_m, track.length_m
        head["widest_wall_m"] = max(track.wall_left_m.max(), track.wall_right_m.max())
        nodes["start_speed_mps"][first:last] = start_speed_mps
        for name in _SHAPE:
            nodes[name][first:last] = getattr(track, name)
        loop = _portals(nodes[first:last])
        first_portal = first + (2 * index + 1) * FAR_SPAN
        head["first_portal"] = first_portal
        portals[first_portal - FAR_SPAN : first_portal + track.num_nodes + FAR_SPAN] = np.concatenate(
            [loop[-FAR_SPAN:], loop, loop[:FAR_SPAN]]
        )
        first = last
    return Ribbons(heads, nodes, portals)


def _portals(nodes: NDArray[np.void]) -> NDArray[np.void]:
    """The wall points of one track, from its float32 nodes, and the strays of its walls."""
    portals = np.zeros(len(nodes), PORTAL_DTYPE)
    portals["left_x"] = nodes["x_m"] - nodes["tangent_y"] * nodes["wall_left_m"]
    portals["left_y"] = nodes["y_m"] + nodes["tangent_x"] * nodes["wall_left_m"]
    portals["right_x"] = nodes["x_m"] + nodes["tangent_y"] * nodes["wall_right_m"]
    portals["right_y"] = nodes["y_m"] - nodes["tangent_x"] * nodes["wall_right_m"]
    for span, name in ((FAR_SPAN, "far"), (NEAR_SPAN, "near")):
        portals[f"{name}_stray_m"] = np.maximum(
            _stray(portals["left_x"], portals["left_y"], span), _stray(portals["right_x"], portals["right_y"], span)
        )
    return portals


def _stray(x: NDArray[np.float32], y: NDArray[np.float32], span: int) -> NDArray[np.float64]:
    """Farthest that points k+1 .. k+span-1 lie from the segment between points k and k+span, for each k."""
    x0, y0 = x.astype(np.float64), y.astype(np.float64)
    dx, dy = np.roll(x0, -span) - x0, np.roll(y0, -span) - y0
    squared_length = dx * dx + dy * dy + 1e-12
    stray2 = np.zeros(len(x0))
    for offset in range(1, span):
        px, py = np.roll(x0, -offset) - x0, np.roll(y0, -offset) - y0
        fraction = np.clip((px * dx + py * dy) / squared_length, 0.0, 1.0)
        ex, ey = px - fraction * dx, py - fraction * dy
        stray2 = np.maximum(stray2, ex * ex + ey * ey)
    # A millimetre for the rounding of float32 coordinates.
    return np.sqrt(stray2) + 1e-3


@kernel
def node_after(track, node):
    """Index of the next node of the loop; nodes count from the track's first."""
    following = N(node + 1)
    return following if following < track.num_nodes else N(0)


@kernel
def ahead_of(nodes, k, x, y):
    """How far (m) the point lies ahead of node k's cross-section."""
    here = nodes[U(k)]
    return (x - here.x_m) * here.tangent_x + (y - here.y_m) * here.tangent_y


@kernel
def locate(track, nodes, node, x, y):
    """Position of a point on the ribbon, searched from `node`: (node, fraction of the step to the next, metres left).

    O(1) for a car, which moves about a metre in a tick.
    """
    first = track.first_node
    behind = ahead_of(nodes, first + node, x, y)
    following = node_after(track, node)
    beyond = ahead_of(nodes, first + following, x, y)
    for _ in range(MAX_WALK):
        if beyond >= ZERO:
            node, behind = following, beyond
            following = node_after(track, node)
            beyond = ahead_of(nodes, first + following, x, y)
        elif behind < ZERO:
            following, beyond = node, behind
            node = N(node - 1) if node > 0 else N(track.num_nodes - 1)
            behind = ahead_of(nodes, first + node, x, y)
        else:
            break
    fraction = min(max(behind / (behind - beyond), ZERO), ONE) if behind > beyond else ZERO
    here, there = nodes[U(first + node)], nodes[U(first + following)]
    normal_x = -mix(here.tangent_y, there.tangent_y, fraction)
    normal_y = mix(here.tangent_x, there.tangent_x, fraction)
    left_m = (x - mix(here.x_m, there.x_m, fraction)) * normal_x + (y - mix(here.y_m, there.y_m, fraction)) * normal_y
    return node, fraction, left_m


@kernel
def place(track, nodes, node, fraction, left_m):
    """World position of a point on the ribbon: the inverse of `locate`."""
    here = nodes[U(track.first_node + node)]
    there = nodes[U(track.first_node + node_after(track, node))]
    x = mix(here.x_m, there.x_m, fraction) - mix(here.tangent_y, there.tangent_y, fraction) * left_m
    y = mix(here.y_m, there.y_m, fraction) + mix(here.tangent_x, there.tangent_x, fraction) * left_m
    return x, y


@kernel
def arc_length(track, node, fraction):
    """Metres along the centreline from the start line."""
    return (F(node) + fraction) * track.step_m

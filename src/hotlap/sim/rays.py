"""Exact distance to the wall along a ray: a walk through the ribbon's quads that skips ahead where no wall is near.

A ray inside the strip leaves each quad through the next portal (the cross-section between two wall points) or hits a
wall. It passes portal k when the left wall point lies left of it and the right one right of it: two cross products. For
longer steps the ribbon knows how far the walls between portal k and portal k+16 (or k+4) stray from the straight lines
between their wall points. If the ray clears all four wall points by more than that, no wall in between can
touch it, and the quads are passed in one test. Only the last few metres are walked quad by quad.
"""

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.ribbon import FAR_SPAN, NEAR_SPAN

F = np.float32
U = np.uintp  # unsigned indices: numba skips its check for negative ones, a tenth of a step
N = np.int32  # portal numbers: a GPU adds and compares 64 bits in two instructions each
ZERO = F(0.0)

NUM_RAYS = 9
RAY_RANGE_M = F(200.0)
MAX_TESTS = 4096

# Directions from the heading, -90° to 90° in steps of 22.5°, ray 0 to the right.
_RAY_COS = tuple(F(v) for v in (0.0, 0.38268343, 0.70710678, 0.92387953, 1.0, 0.92387953, 0.70710678, 0.38268343, 0.0))
_RAY_SIN = tuple(
    F(v) for v in (-1.0, -0.92387953, -0.70710678, -0.38268343, 0.0, 0.38268343, 0.70710678, 0.92387953, 1.0)
)


@kernel
def ray_direction(index, cos_yaw, sin_yaw):
    """Unit vector of ray `index` in the world frame."""
    c, s = _RAY_COS[index], _RAY_SIN[index]
    return cos_yaw * c - sin_yaw * s, sin_yaw * c + cos_yaw * s


@kernel
def hit_distance(ox, oy, dx, dy, near, far, on_left):
    """Distance along the ray to the wall between two portals; the full range where they are parallel."""
    ax, ay = (near.left_x, near.left_y) if on_left else (near.right_x, near.right_y)
    bx, by = (far.left_x, far.left_y) if on_left else (far.right_x, far.right_y)
    ex, ey = bx - ax, by - ay
    across = dx * ey - dy * ex
    if across == ZERO:
        return RAY_RANGE_M
    distance = ((ax - ox) * ey - (ay - oy) * ex) / across
    return min(max(distance, ZERO), RAY_RANGE_M)


@kernel
def room_beside(portals, k, ox, oy, dx, dy):
    """By how much (m) a line along (dx, dy) clears portal k's left and right wall point; negative if it does not."""
    gate = portals[U(k)]
    return dx * (gate.left_y - oy) - dy * (gate.left_x - ox), dy * (gate.right_x - ox) - dx * (gate.right_y - oy)


@kernel
def is_out_of_range(portals, k, ox, oy, dx, dy):
    """Whether the whole portal lies farther along the ray than the ray reaches."""
    gate = portals[U(k)]
    left_m = dx * (gate.left_x - ox) + dy * (gate.left_y - oy)
    right_m = dx * (gate.right_x - ox) + dy * (gate.right_y - oy)
    return min(left_m, right_m) > RAY_RANGE_M


@kernel
def wrap_portal(track, k):
    """Portal index `k` brought back into the loop, for indices at most one lap off."""
    at = N(k - track.first_portal)
    if at >= track.num_nodes:
        return N(k - track.num_nodes)
    return N(k + track.num_nodes) if at < 0 else k


@kernel
def cast(track, portals, node, ox, oy, dx, dy):
    """Distance (m, at most 200) to the wall from a point in quad `node` along the unit vector (dx, dy)."""
    here = N(track.first_portal + node)
    left, right = room_beside(portals, N(here + 1), ox, oy, dx, dy)
    if left > ZERO and right > ZERO:
        here, way = N(here + 1), N(1)
        ex, ey = dx, dy
    else:
        back_left, back_right = room_beside(portals, here, ox, oy, dx, dy)
        if not (back_left < ZERO and back_right < ZERO):
            on_left = back_left > ZERO and left <= ZERO
            if on_left == (back_right > ZERO and right <= ZERO):
                # The ray runs along the portal at the car, where rounding is undecided; its direction decides the side.
                across = portals[U(here)]
                on_left = dx * (across.left_x - across.right_x) + dy * (across.left_y - across.right_y) > ZERO
            return hit_distance(ox, oy, dx, dy, portals[U(here)], portals[U(here + 1)], on_left)
        # For a backward ray the line is reversed: the tests are the same, and portals count down.
        way = N(-1)
        ex, ey = -dx, -dy
        left, right = -back_left, -back_right

    clear = min(left, right)
    leap, jump = N(way * FAR_SPAN), N(way * NEAR_SPAN)
    # Long jumps in a loop of their own: on a GPU the 32 rays of a warp then leave it together.
    for _ in range(MAX_TESTS):
        here = wrap_portal(track, here)
        for _ in range(MAX_TESTS):
            ahead = N(here + leap)
            left, right = room_beside(portals, ahead, ox, oy, ex, ey)
            clear_next = min(left, right)
            if min(clear, clear_next) <= portals[U(min(here, ahead))].far_stray_m:
                break
            if is_out_of_range(portals, ahead, ox, oy, dx, dy):
                return RAY_RANGE_M
            clear = clear_next
            here = wrap_portal(track, ahead)

        # Four jumps and then four quads, each group without a branch: a misprediction costs more than counting.
        passed = N(0)
        still = True
        for k in range(FAR_SPAN // NEAR_SPAN):
            from_k = N(here + k * jump)
            ahead = N(from_k + jump)
            left, right = room_beside(portals, ahead, ox, oy, ex, ey)
            clear_next = min(left, right)
            still &= min(clear, clear_next) > portals[U(min(from_k, ahead))].near_stray_m
            passed = N(passed + still)
            clear = clear_next
        here = wrap_portal(track, N(here + passed * jump))

        passed = N(0)
        still = True
        on_left = False
        for k in range(NEAR_SPAN):
            left, right = room_beside(portals, N(here + (k + 1) * way), ox, oy, ex, ey)
            on_left = left <= ZERO if still else on_left
            still &= min(left, right) > ZERO
            passed = N(passed + still)
        here = N(here + passed * way)
        if passed < NEAR_SPAN:
            return hit_distance(ox, oy, dx, dy, portals[U(here)], portals[U(here + way)], on_left)
        clear = min(left, right)
        if is_out_of_range(portals, here, ox, oy, dx, dy):
            return RAY_RANGE_M
    return RAY_RANGE_M

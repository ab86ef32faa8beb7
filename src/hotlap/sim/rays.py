"""Distance to the wall along a ray, exactly: a walk through the ribbon's quads that jumps where the way is clear.

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
U = np.uintp  # unsigned indices: numba need not look for negative ones, a tenth of a step
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
    """By how much (m) a line along (dx, dy) clears portal k's left and right wall point; negative: not at all."""
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
def cast(track, portals, node, ox, oy, dx, dy):
    """Distance (m, at most 200) to the wall from a point in quad `node` along the unit vector (dx, dy)."""
    first, count = track.first_portal, track.num_nodes
    left, right = room_beside(portals, first + node + 1, ox, oy, dx, dy)
    if left > ZERO and right > ZERO:
        at, way = node + 1, 1
        ex, ey = dx, dy
    else:
        back_left, back_right = room_beside(portals, first + node, ox, oy, dx, dy)
        if not (back_left < ZERO and back_right < ZERO):
            on_left = back_left > ZERO and left <= ZERO
            if on_left == (back_right > ZERO and right <= ZERO):
                # The ray runs along the portal the car stands on, and rounding decides nothing; the side does.
                across = portals[U(first + node)]
                on_left = dx * (across.left_x - across.right_x) + dy * (across.left_y - across.right_y) > ZERO
            return hit_distance(ox, oy, dx, dy, portals[U(first + node)], portals[U(first + node + 1)], on_left)
        # Backwards, the line is turned round: the tests are then the same, only the portals count down.
        at, way = node, -1
        ex, ey = -dx, -dy
        left, right = -back_left, -back_right

    for _ in range(MAX_TESTS):
        at = at - count if at >= count else (at + count if at < 0 else at)
        here = first + at
        clear = min(left, right)
        left, right = room_beside(portals, here + way * FAR_SPAN, ox, oy, ex, ey)
        if min(clear, min(left, right)) > portals[U(min(here, here + way * FAR_SPAN))].far_stray_m:
            at += way * FAR_SPAN
            if is_out_of_range(portals, first + at, ox, oy, dx, dy):
                return RAY_RANGE_M
            continue

        # Four jumps and then four quads, each group without a branch: guessing wrong costs more than counting.
        jump = way * NEAR_SPAN
        after_left, after_right = left, right
        passed = 0
        still = True
        for k in range(FAR_SPAN // NEAR_SPAN):
            from_k = here + k * jump
            left, right = room_beside(portals, from_k + jump, ox, oy, ex, ey)
            clear_next = min(left, right)
            still &= min(clear, clear_next) > portals[U(min(from_k, from_k + jump))].near_stray_m
            passed += still
            clear = clear_next
        at += passed * jump
        here += passed * jump
        if passed == FAR_SPAN // NEAR_SPAN:
            left, right = after_left, after_right
            if is_out_of_range(portals, here, ox, oy, dx, dy):
                return RAY_RANGE_M
            continue

        passed = 0
        still = True
        on_left = False
        for k in range(NEAR_SPAN):
            left, right = room_beside(portals, here + (k + 1) * way, ox, oy, ex, ey)
            on_left = left <= ZERO if still else on_left
            still &= min(left, right) > ZERO
            passed += still
        at += passed * way
        here += passed * way
        if passed < NEAR_SPAN:
            return hit_distance(ox, oy, dx, dy, portals[U(here)], portals[U(here + way)], on_left)
        if is_out_of_range(portals, here, ox, oy, dx, dy):
            return RAY_RANGE_M
    return RAY_RANGE_M

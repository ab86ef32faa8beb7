"""Two cars touch: where, and the impulse between them.

A car is three discs in a row. The impulse has restitution and Coulomb friction, and acts at the mean of the overlaps of
the discs. A car that touches n others meets each of them with the nth part of its mass and inertia. So impulses can be
found from one snapshot of all cars, each without the others, and their sum never adds energy: n parts that each lose
energy lose more when they become one body again.
"""

from math import sqrt

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.maths import clamp

F = np.float32
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)

DISC_RADIUS_M = F(0.95)
DISC_OFFSET_M = F(1.3)  # of the front and the rear disc from the car's centre
NUM_DISCS = 3
# Cars farther apart cannot touch.
MAX_TOUCH_M = TWO * (DISC_OFFSET_M + DISC_RADIUS_M)
# Cars farther apart along the road are on different levels of a crossing, or on two roads side by side.
MAX_TOUCH_ALONG_M = F(30.0)

RESTITUTION = F(0.1)
FRICTION = F(0.3)

# Of the depth beyond the slop each of two cars gives way by this fraction in a tick. Their speeds are left alone, so
# that it adds no energy.
PUSH_FRACTION = F(0.4)
DEPTH_SLOP_M = F(0.01)

# What a car looks like to the others in a tick: the same for all of them, whoever is computed first.
POSE_DTYPE = np.dtype(
    [
        ("x_m", np.float32),
        ("y_m", np.float32),
        ("sin_yaw", np.float32),
        ("cos_yaw", np.float32),
        ("yaw_rad", np.float32),
        ("vx_mps", np.float32),
        ("vy_mps", np.float32),
        ("yaw_radps", np.float32),
        ("arc_m", np.float32),
        ("lateral_m", np.float32),
        ("across_mps", np.float32),  # speed across the road, to the left
        ("on_road", np.int32),
        ("num_touching", np.int32),
    ],
    align=True,
)


@kernel
def gap_along(from_arc_m, to_arc_m, length_m):
    """Metres along the road from one place to another, the shorter way round; negative backwards."""
    gap_m = to_arc_m - from_arc_m
    if gap_m > HALF * length_m:
        return gap_m - length_m
    if gap_m < -HALF * length_m:
        return gap_m + length_m
    return gap_m


@kernel
def may_touch(a, b, length_m):
    """Whether two cars are near enough, on one part of the road; most pairs are not, and cost no more than this."""
    dx, dy = b.x_m - a.x_m, b.y_m - a.y_m
    if a.on_road == 0 or b.on_road == 0 or dx * dx + dy * dy > MAX_TOUCH_M * MAX_TOUCH_M:
        return False
    return abs(gap_along(a.arc_m, b.arc_m, length_m)) < MAX_TOUCH_ALONG_M


@kernel
def find_touch(a, b):
    """Where car a touches car b: (depth in m, unit normal from a to b, point); depth zero where they do not.

    Point and normal are means over all pairs of discs that overlap, weighted by depth: they move smoothly as the cars
    do, and no pair of discs is favoured.
    """
    deepest_m, total_m = ZERO, ZERO
    normal_x, normal_y, point_x, point_y = ZERO, ZERO, ZERO, ZERO
    for i in range(NUM_DISCS):
        along_m = DISC_OFFSET_M * F(i - 1)
        ax, ay = a.x_m + a.cos_yaw * along_m, a.y_m + a.sin_yaw * along_m
        for j in range(NUM_DISCS):
            along_m = DISC_OFFSET_M * F(j - 1)
            bx, by = b.x_m + b.cos_yaw * along_m, b.y_m + b.sin_yaw * along_m
            dx, dy = bx - ax, by - ay
            distance_m = sqrt(dx * dx + dy * dy)
            depth_m = TWO * DISC_RADIUS_M - distance_m
            if depth_m > ZERO:
                deepest_m, total_m = max(deepest_m, depth_m), total_m + depth_m
                point_x, point_y = point_x + depth_m * HALF * (ax + bx), point_y + depth_m * HALF * (ay + by)
                if distance_m > ZERO:
                    normal_x, normal_y = normal_x + depth_m * dx / distance_m, normal_y + depth_m * dy / distance_m
    if total_m <= ZERO:
        return ZERO, ONE, ZERO, ZERO, ZERO
    length = sqrt(normal_x * normal_x + normal_y * normal_y)
    if length > F(1e-6):
        normal_x, normal_y = normal_x / length, normal_y / length
    else:  # one car lies exactly on the other
        normal_x, normal_y = a.cos_yaw, a.sin_yaw
    return deepest_m, normal_x, normal_y, point_x / total_m, point_y / total_m


@kernel
def find_impulse(a, b, touch, car):
    """The impulse (kg m/s) on car b, whose opposite acts on car a, and the speed (m/s) at which they close in.

    Friction is found after the normal impulse, so that neither can add energy, even off the centres of mass.
    """
    _, normal_x, normal_y, point_x, point_y = touch
    arm_ax, arm_ay, arm_bx, arm_by = point_x - a.x_m, point_y - a.y_m, point_x - b.x_m, point_y - b.y_m
    vx = (b.vx_mps - b.yaw_radps * arm_by) - (a.vx_mps - a.yaw_radps * arm_ay)
    vy = (b.vy_mps + b.yaw_radps * arm_bx) - (a.vy_mps + a.yaw_radps * arm_ax)
    closing_mps = -(vx * normal_x + vy * normal_y)
    if closing_mps <= ZERO:
        return ZERO, ZERO, ZERO
    parts_a, parts_b = F(a.num_touching), F(b.num_touching)
    per_mass = (parts_a + parts_b) * car.per_mass
    turn_a, turn_b = parts_a * car.per_yaw_inertia, parts_b * car.per_yaw_inertia
    across_x, across_y = -normal_y, normal_x
    normal_a, normal_b = arm_ax * normal_y - arm_ay * normal_x, arm_bx * normal_y - arm_by * normal_x
    across_a, across_b = arm_ax * across_y - arm_ay * across_x, arm_bx * across_y - arm_by * across_x

    push = (ONE + RESTITUTION) * closing_mps / (per_mass + turn_a * normal_a * normal_a + turn_b * normal_b * normal_b)
    sliding_mps = vx * across_x + vy * across_y
    sliding_mps += push * (turn_a * normal_a * across_a + turn_b * normal_b * across_b)
    rub = -sliding_mps / (per_mass + turn_a * across_a * across_a + turn_b * across_b * across_b)
    rub = clamp(rub, -FRICTION * push, FRICTION * push)
    return push * normal_x + rub * across_x, push * normal_y + rub * across_y, closing_mps

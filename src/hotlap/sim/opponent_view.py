"""The other cars as a driver sees them: the columns that the observation `race` adds to those of `road`."""

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.contact import gap_along
from hotlap.sim.maths import PI, wrap_angle
from hotlap.sim.race import ALONGSIDE_M
from hotlap.sim.road_view import limited

F = np.float32
U = np.uintp  # unsigned indices: numba skips its check for negative ones
ZERO, ONE = F(0.0), F(1.0)

NUM_OPPONENTS = 4  # the nearest along the road, nearest first
(
    OPPONENT_PRESENCE,
    OPPONENT_GAP,
    OPPONENT_AHEAD,
    OPPONENT_LEFT,
    OPPONENT_FORWARD_SPEED,
    OPPONENT_LEFT_SPEED,
    OPPONENT_HEADING,
    OPPONENT_ALONGSIDE,
    COLUMNS_PER_OPPONENT,
) = range(9)
NUM_OPPONENT_VIEW = NUM_OPPONENTS * COLUMNS_PER_OPPONENT

SIGHT_M = F(50.0)  # along the road, and the scale of distances along the car
LEFT_SCALE_M = F(10.0)
SPEED_SCALE_MPS = F(20.0)


@kernel
def find_nearest(i, first, last, poses, length_m, after_m, after):
    """The nearest other car along the road that is farther than `after_m`: (its number, gap in m); -1 without one.

    Cars at the same distance come in the order of their numbers, so `after` is the number of the one found last.
    """
    own = poses[U(i)]
    nearest, nearest_gap_m, nearest_m = -1, ZERO, F(np.inf)
    for j in range(first, last):
        if j == i or poses[U(j)].on_road == 0:
            continue
        gap_m = gap_along(own.arc_m, poses[U(j)].arc_m, length_m)
        distance_m = abs(gap_m)
        is_new = distance_m > after_m or (distance_m == after_m and j > after)
        if is_new and distance_m < nearest_m:
            nearest, nearest_gap_m, nearest_m = j, gap_m, distance_m
    if nearest_m > SIGHT_M:
        nearest = -1
    return nearest, nearest_gap_m


@kernel
def view_opponents(i, first, last, poses, length_m, view):
    """Fill the columns of car i; those of cars that are not there are zero."""
    found, gap_m = find_nearest(i, first, last, poses, length_m, -ONE, -1)
    for k in range(NUM_OPPONENTS):
        view_opponent(i, found, gap_m, poses, k * COLUMNS_PER_OPPONENT, view)
        if found >= 0:
            found, gap_m = find_nearest(i, first, last, poses, length_m, abs(gap_m), found)


@kernel
def view_one_opponent(i, first, last, k, poses, length_m, view):
    """The same for opponent k only; on a GPU each has a thread."""
    found, gap_m = find_nearest(i, first, last, poses, length_m, -ONE, -1)
    for _ in range(k):
        if found >= 0:
            found, gap_m = find_nearest(i, first, last, poses, length_m, abs(gap_m), found)
    view_opponent(i, found, gap_m, poses, k * COLUMNS_PER_OPPONENT, view)


@kernel
def view_opponent(i, found, gap_m, poses, start, view):
    """Fill the columns of one opponent from `start` on; zeros without one (-1), or where car i is not on the road."""
    own = poses[U(i)]
    if found < 0 or own.on_road == 0:
        for column in range(COLUMNS_PER_OPPONENT):
            view[start + column] = ZERO
        return
    other = poses[U(found)]
    dx, dy = other.x_m - own.x_m, other.y_m - own.y_m
    vx, vy = other.vx_mps - own.vx_mps, other.vy_mps - own.vy_mps
    view[start + OPPONENT_PRESENCE] = ONE
    view[start + OPPONENT_GAP] = limited(gap_m / SIGHT_M)
    view[start + OPPONENT_AHEAD] = limited((dx * own.cos_yaw + dy * own.sin_yaw) / SIGHT_M)
    view[start + OPPONENT_LEFT] = limited((dy * own.cos_yaw - dx * own.sin_yaw) / LEFT_SCALE_M)
    view[start + OPPONENT_FORWARD_SPEED] = limited((vx * own.cos_yaw + vy * own.sin_yaw) / SPEED_SCALE_MPS)
    view[start + OPPONENT_LEFT_SPEED] = limited((vy * own.cos_yaw - vx * own.sin_yaw) / SPEED_SCALE_MPS)
    view[start + OPPONENT_HEADING] = limited(wrap_angle(other.yaw_rad - own.yaw_rad) / PI)
    view[start + OPPONENT_ALONGSIDE] = ONE if abs(gap_m) < ALONGSIDE_M else ZERO

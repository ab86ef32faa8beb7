"""The road as a driver sees it: the columns that the observation `road` adds to the 14 of `rays`.

They tell where the car is on the road, how it slides, and where the road goes, at distances that grow with the speed.
None of them depends on the track's length or place, so a policy can drive roads that it has never seen.

There are two versions. The second has more points, looks further ahead, and shows the guide (`guide_line`): a line
through the road and the speed along it. A view is of the second version if it has room for it.
"""

from math import sqrt

import numpy as np

from hotlap.sim.compilation import kernel, rare_kernel
from hotlap.sim.maths import arc_tangent, clamp, mix, sin_cos
from hotlap.sim.ribbon import node_after

F = np.float32
U = np.uintp  # unsigned indices: numba skips its check for negative ones
ZERO, ONE = F(0.0), F(1.0)

NUM_POINTS, NUM_POINTS_2 = 12, 24  # of the road ahead
(
    VIEW_OFFSET,
    VIEW_ROOM_LEFT,
    VIEW_ROOM_RIGHT,
    VIEW_HEADING_SINE,
    VIEW_HEADING_COSINE,
    VIEW_SIDE_SLIP,
    VIEW_THROTTLE,
    VIEW_BRAKE,
    NUM_POSITION,
) = range(9)
COLUMNS_PER_POINT = 3  # mean curvature of the road up to the point, sine of the bearing of its left and right edge
NUM_ROAD_VIEW = NUM_POSITION + COLUMNS_PER_POINT * NUM_POINTS
# After the points of version 2: how far left of the guide the car is, the guide's speed there, and for every point the
# sine of the guide's bearing and its speed.
FIRST_GUIDE = NUM_POSITION + COLUMNS_PER_POINT * NUM_POINTS_2
COLUMNS_PER_GUIDE = 2
NUM_ROAD_VIEW_2 = FIRST_GUIDE + COLUMNS_PER_GUIDE * (1 + NUM_POINTS_2)

# The last point lies this far ahead; the others are closer together near the car.
MIN_REACH_M = F(20.0)
REACH_S, REACH_2_S = F(4.0), F(8.0)

WIDTH_SCALE_M = F(20.0)
SLIP_SCALE_MPS = F(20.0)
RADIUS_SCALE_M = F(10.0)
GUIDE_SCALE_MPS = F(80.0)  # more than the top speed: the guide's progress is that along the lap
MIN_BEARING_M = F(1.0)  # the bearing of a closer point is meaningless


@kernel
def limited(value):
    """`value` clipped to the range of an observation."""
    return clamp(value, -ONE, ONE)


@kernel
def count_points(num_columns):
    """The number of points of a view with so many columns; those of something else may follow the road's."""
    return NUM_POINTS_2 if num_columns >= NUM_ROAD_VIEW_2 else NUM_POINTS


@kernel
def point_distance(point, num_points, reach_m):
    """How far ahead (m) a point lies; point -1 is the car's own place."""
    fraction = F(point + 1) / F(num_points)
    return fraction * (fraction if num_points == NUM_POINTS else sqrt(fraction)) * reach_m


@kernel
def reach_of(me, num_points):
    """How far ahead (m) the last point lies."""
    reach_s = REACH_S if num_points == NUM_POINTS else REACH_2_S
    return MIN_REACH_M + reach_s * sqrt(me.forward_mps * me.forward_mps + me.left_mps * me.left_mps)


@kernel
def point_ahead(me, track, distance_m):
    """Node and fraction of the point of the centreline that lies `distance_m` ahead of the car."""
    steps = me.share + distance_m / track.step_m
    whole = int(steps)
    node = me.node + whole
    if node < 0 or node >= track.num_nodes:  # also what becomes of a speed that is not finite
        node %= track.num_nodes
    return node, steps - F(whole)


@kernel
def tangent_at(track, nodes, node, fraction):
    """The direction of the centreline, almost of unit length."""
    here, there = nodes[U(track.first_node + node)], nodes[U(track.first_node + node_after(track, node))]
    return mix(here.tangent_x, there.tangent_x, fraction), mix(here.tangent_y, there.tangent_y, fraction)


@kernel
def view_position(me, track, nodes, sin_yaw, cos_yaw, view):
    """Fill the first columns: where the car is on the road, how it slides, and its pedals."""
    here, there = nodes[U(track.first_node + me.node)], nodes[U(track.first_node + node_after(track, me.node))]
    left_m = mix(here.road_left_m, there.road_left_m, me.share)
    right_m = mix(here.road_right_m, there.road_right_m, me.share)
    tangent_x, tangent_y = tangent_at(track, nodes, me.node, me.share)
    view[VIEW_OFFSET] = limited(me.lateral_m / WIDTH_SCALE_M)
    view[VIEW_ROOM_LEFT] = limited((left_m - me.lateral_m) / WIDTH_SCALE_M)
    view[VIEW_ROOM_RIGHT] = limited((right_m + me.lateral_m) / WIDTH_SCALE_M)
    view[VIEW_HEADING_SINE] = limited(tangent_x * sin_yaw - tangent_y * cos_yaw)
    view[VIEW_HEADING_COSINE] = limited(tangent_x * cos_yaw + tangent_y * sin_yaw)
    view[VIEW_SIDE_SLIP] = limited(me.left_mps / SLIP_SCALE_MPS)
    view[VIEW_THROTTLE] = clamp(me.throttle, ZERO, ONE)
    view[VIEW_BRAKE] = clamp(me.brake, ZERO, ONE)
    if count_points(view.shape[0]) == NUM_POINTS_2:
        guide_m = mix(here.guide_left_m, there.guide_left_m, me.share)
        view[FIRST_GUIDE] = limited((me.lateral_m - guide_m) / WIDTH_SCALE_M)
        view[FIRST_GUIDE + 1] = limited(mix(here.guide_mps, there.guide_mps, me.share) / GUIDE_SCALE_MPS)


@kernel
def bearing_sine(me, sin_yaw, cos_yaw, x_m, y_m):
    """Sine of the angle from the car's heading to a point, positive on its left."""
    dx, dy = x_m - me.x_m, y_m - me.y_m
    return limited((dy * cos_yaw - dx * sin_yaw) / max(sqrt(dx * dx + dy * dy), MIN_BEARING_M))


@kernel
def view_point(me, track, nodes, point, reach_m, sin_yaw, cos_yaw, from_x, from_y, view):
    """Fill the columns of one point of the road ahead; returns the road's direction there.

    `from_x` and `from_y` are its direction at the point before.
    """
    num_points = count_points(view.shape[0])
    from_m, to_m = point_distance(point - 1, num_points, reach_m), point_distance(point, num_points, reach_m)
    node, fraction = point_ahead(me, track, to_m)
    here, there = nodes[U(track.first_node + node)], nodes[U(track.first_node + node_after(track, node))]
    x_m, y_m = mix(here.x_m, there.x_m, fraction), mix(here.y_m, there.y_m, fraction)
    to_x, to_y = mix(here.tangent_x, there.tangent_x, fraction), mix(here.tangent_y, there.tangent_y, fraction)
    left_m = mix(here.road_left_m, there.road_left_m, fraction)
    right_m = -mix(here.road_right_m, there.road_right_m, fraction)
    turn_rad = arc_tangent(from_x * to_y - from_y * to_x, from_x * to_x + from_y * to_y)
    first = NUM_POSITION + COLUMNS_PER_POINT * point
    view[first] = limited(RADIUS_SCALE_M * turn_rad / (to_m - from_m))
    view[first + 1] = bearing_sine(me, sin_yaw, cos_yaw, x_m - to_y * left_m, y_m + to_x * left_m)
    view[first + 2] = bearing_sine(me, sin_yaw, cos_yaw, x_m - to_y * right_m, y_m + to_x * right_m)
    if num_points == NUM_POINTS_2:
        guide_m = mix(here.guide_left_m, there.guide_left_m, fraction)
        first = FIRST_GUIDE + COLUMNS_PER_GUIDE * (point + 1)
        view[first] = bearing_sine(me, sin_yaw, cos_yaw, x_m - to_y * guide_m, y_m + to_x * guide_m)
        view[first + 1] = limited(mix(here.guide_mps, there.guide_mps, fraction) / GUIDE_SCALE_MPS)
    return to_x, to_y


@kernel
def direction_before(me, track, nodes, point, num_points, reach_m):
    """The road's direction at the point before this one; that before the first is the car's own place."""
    node, fraction = point_ahead(me, track, point_distance(point - 1, num_points, reach_m))
    return tangent_at(track, nodes, node, fraction)


@rare_kernel
def view_road(me, tracks, nodes, view):
    """Fill all columns."""
    track = tracks[me.track]
    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    view_position(me, track, nodes, sin_yaw, cos_yaw, view)
    num_points = count_points(view.shape[0])
    reach_m = reach_of(me, num_points)
    x, y = direction_before(me, track, nodes, 0, num_points, reach_m)
    for point in range(num_points):
        x, y = view_point(me, track, nodes, point, reach_m, sin_yaw, cos_yaw, x, y, view)

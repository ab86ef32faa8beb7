"""What the casual driver sees and does on a tick, compiled: for a few cars NumPy takes ten times as long."""

from math import cos, hypot, sin

import numpy as np

from hotlap.sim.compilation import entry_point, kernel

SEEN_DTYPE = np.dtype([(name, np.float64) for name in ("x_m", "y_m", "yaw_rad", "speed_mps", "yaw_radps", "arc_m")])
ROAD_DTYPE = np.dtype([("first_node", np.int64), ("num_nodes", np.int64), ("step_m", np.float64)])
# The columns of a node: its place, the target speed, the road's direction and its curvature.
NODE_X, NODE_Y, NODE_SPEED, NODE_TANGENT_X, NODE_TANGENT_Y, NODE_CURVATURE, NUM_NODE_COLUMNS = range(7)
# What a driver does because of others: how far left of the centreline it drives, how fast at most, and the full lock
# (1 right, -1 left) with which it turns when it is lost.
ADVICE_DTYPE = np.dtype([("offset_m", np.float64), ("max_speed_mps", np.float64), ("lock", np.float64)])
# What a driver would do alone: its target speed, and the sharpest curvature of the next second.
AIM_DTYPE = np.dtype([("speed_mps", np.float64), ("curvature_radpm", np.float64)])
BEND_AHEAD_S = (0.0, 0.25, 0.5, 0.75, 1.0)
# What a driver knows of its car, besides its habits.
CAR_TRAITS = ("wheelbase_m", "steering_slow_rad", "steering_fast_rad", "steering_scale_mps")


@entry_point()
def observe(states, seen):
    """Fill position, heading, speed, yaw rate and arc length of every car."""
    for i in range(states.shape[0]):
        state, one = states[i], seen[i]
        one.x_m, one.y_m, one.yaw_rad = state.x_m, state.y_m, state.yaw_rad
        one.speed_mps = hypot(np.float64(state.forward_mps), np.float64(state.left_mps))
        one.yaw_radps, one.arc_m = state.yaw_radps, state.arc_m


@kernel
def _node(road, arc_m):
    """Index of the node at this arc length of a car's track."""
    return road.first_node + np.int64(arc_m / road.step_m) % road.num_nodes


@kernel
def _target(road, points, ahead_s, speed_mps, arc_m):
    """The lowest target speed between here and `brake_early_s` ahead."""
    lowest_mps = np.inf
    for k in range(ahead_s.shape[0]):
        lowest_mps = min(lowest_mps, points[_node(road, arc_m + ahead_s[k] * speed_mps), NODE_SPEED])
    return lowest_mps


@kernel
def _steering(road, points, traits, x_m, y_m, yaw_rad, speed_mps, arc_m, offset_m):
    """Pure pursuit: the arc through a point ahead, left of the centreline, as a steering input (positive right)."""
    ahead_m = traits.look_ahead_m + traits.look_ahead_s * speed_mps
    goal = points[_node(road, arc_m + ahead_m)]
    dx = goal[NODE_X] - x_m - goal[NODE_TANGENT_Y] * offset_m
    dy = goal[NODE_Y] - y_m + goal[NODE_TANGENT_X] * offset_m
    left_m = dy * cos(yaw_rad) - dx * sin(yaw_rad)
    curvature = 2.0 * left_m / max(dx * dx + dy * dy, 1.0)
    angle = curvature * (traits.wheelbase_m + traits.understeer_s2pm * speed_mps * speed_mps)
    share = 1.0 / (1.0 + speed_mps * speed_mps / (traits.steering_scale_mps * traits.steering_scale_mps))
    full_lock_rad = traits.steering_fast_rad + (traits.steering_slow_rad - traits.steering_fast_rad) * share
    return -angle / full_lock_rad


@entry_point()
def find_aims(seen, roads, points, ahead_s, traits, aims):
    """Fill what every car would do alone."""
    for i in range(seen.shape[0]):
        one, road, aim = seen[i], roads[i], aims[i]
        arc_m = one.arc_m + traits[0].reaction_s * one.speed_mps
        aim.speed_mps = _target(road, points, ahead_s, one.speed_mps, arc_m)
        aim.curvature_radpm = 0.0
        for after_s in BEND_AHEAD_S:
            curvature_radpm = points[_node(road, arc_m + after_s * one.speed_mps), NODE_CURVATURE]
            if abs(curvature_radpm) > abs(aim.curvature_radpm):
                aim.curvature_radpm = curvature_radpm


@entry_point()
def decide(seen, noise, roads, points, ahead_s, traits, advice, actions):
    """Fill the action of every car from what was seen one reaction time ago."""
    habits = traits[0]
    for i in range(seen.shape[0]):
        one, road = seen[i], roads[i]
        # The state one reaction time later at constant speed and yaw rate: people anticipate.
        speed_mps = one.speed_mps
        middle_rad = one.yaw_rad + 0.5 * habits.reaction_s * one.yaw_radps
        distance_m = habits.reaction_s * speed_mps
        x_m, y_m = one.x_m + distance_m * cos(middle_rad), one.y_m + distance_m * sin(middle_rad)
        yaw_rad, arc_m = one.yaw_rad + habits.reaction_s * one.yaw_radps, one.arc_m + distance_m
        steer = _steering(road, points, habits, x_m, y_m, yaw_rad, speed_mps, arc_m, advice[i].offset_m)
        steer += habits.steer_noise * noise[i, 0]
        target_mps = min(_target(road, points, ahead_s, speed_mps, arc_m), advice[i].max_speed_mps)
        error_mps = target_mps - speed_mps
        shake = habits.pedal_noise * noise[i, 1]
        throttle = error_mps * habits.throttle_per_mps + shake
        brake = -error_mps * habits.brake_per_mps + shake
        lift = 1.0 - habits.throttle_lift_per_steer * min(abs(steer), 1.0)
        if advice[i].lock != 0.0:
            steer, lift = advice[i].lock, 1.0
        actions[i, 0] = min(max(steer, -1.0), 1.0)
        actions[i, 1] = min(max(throttle, 0.0), lift) if error_mps > 0.0 else 0.0
        actions[i, 2] = min(max(brake, 0.0), habits.max_brake) if error_mps < -0.5 else 0.0

"""The page's casual driver among others, compiled: `static/js/casual_pilot.js` line by line, to the same bits.

Only sums, products, quotients and square roots of float64, so that a browser and the server compute the same.
"""

from math import floor, pi, sqrt

import numpy as np

from hotlap.sim.compilation import entry_point, kernel

CASUAL_VERSION = 2  # raised whenever it drives differently: replays of races name it
GRAVITY_MPS2 = 9.81
REACTION_S, LOOK_AHEAD_M, LOOK_AHEAD_S, BRAKE_EARLY_S = 0.25, 7.0, 0.8, 0.4
UNDERSTEER = 0.0012  # s²/m: extra steering per squared speed
THROTTLE_PER_MPS, BRAKE_PER_MPS, MAX_BRAKE, LIFT_PER_STEER = 0.35, 0.15, 0.6, 0.5
STEER_NOISE, PEDAL_NOISE = 0.03, 0.05
NOISE_KEPT = 0.9459594689067654  # a tick: exp(-1 / 18), a memory of 0.3 s
SIGHT_M, BESIDE_M, CLEARANCE_M, EDGE_M, BEND_EDGE_M = 45.0, 7.0, 2.9, 1.2, 1.8
FOLLOW_M, FOLLOW_S, FOLLOW_PER_S, CREEP_MPS, KEEN_MPS = 7.0, 0.12, 0.9, 3.0, 0.3
MOVE_MPS, BEND_RADPM, SETTLE_MPS = 2.2, 0.02, 1.0
DRIFT_PER_M, MAX_DRIFT, GRASS_MPS = 0.15, 0.3, 0.8
LOST_COSINE, LOST_MPS, TURN_M, RUNOFF_M = 0.8, 3.5, 5.5, 4.0
STANDING_MPS, AROUND_M, PATIENCE_TICKS, CRAWL_MPS = 1.0, 1.0, 528, 2.2
BEND_AHEAD_S = (0.0, 0.25, 0.5, 0.75, 1.0)
BRAKE_AHEAD = (0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0)
TICK_S = 1.0 / 60.0
QUARTER_TURN = pi / 2.0

SEEN_DTYPE = np.dtype([(name, np.float64) for name in ("x_m", "y_m", "yaw_rad", "speed_mps", "yaw_radps", "arc_m")])
# What a driver remembers from tick to tick; `noise` is its generator of random numbers.
MIND_DTYPE = np.dtype(
    [
        ("car", np.int64),
        ("noise", np.int64),
        ("shake_steer", np.float64),
        ("shake_pedal", np.float64),
        ("side", np.int64),
        ("waited", np.int64),  # ticks behind a car that stands
        ("lock", np.int64),  # full lock of a lost car: 1 right, -1 left
        ("offset_m", np.float64),
    ]
)
ROAD_DTYPE = np.dtype([(name, np.float64) for name in ("length_m", "step_m")])
# Of every node: the centreline, its direction and curvature, and how far the edges of the road are from it.
NODE_X, NODE_Y, NODE_TANGENT_X, NODE_TANGENT_Y, NODE_CURVATURE, NODE_LEFT_M, NODE_RIGHT_M = range(7)


@kernel
def _clamp(value, low, high):
    return min(high, max(low, value))


@kernel
def _turn(angle):
    """The sine and the cosine of an angle."""
    quarters = floor(angle / QUARTER_TURN + 0.5)
    x = angle - quarters * QUARTER_TURN
    y = x * x
    sine = x * (1.0 - (y / 6.0) * (1.0 - (y / 20.0) * (1.0 - (y / 42.0) * (1.0 - (y / 72.0) * (1.0 - y / 110.0)))))
    cosine = 1.0 - (y / 2.0) * (1.0 - (y / 12.0) * (1.0 - (y / 30.0) * (1.0 - (y / 56.0) * (1.0 - y / 90.0))))
    side = np.int64(quarters) & 3
    if side == 0:
        return sine, cosine
    if side == 1:
        return cosine, -sine
    if side == 2:
        return -sine, -cosine
    return -cosine, sine


@kernel
def _length(x, y):
    return sqrt(x * x + y * y)


@kernel
def _noise(mind):
    """A nearly normal number: the sum of four even ones."""
    total = 0.0
    for _ in range(4):
        mind.noise = (mind.noise * 1664525 + 1013904223) & 0xFFFFFFFF
        total = total + (np.float64(mind.noise) + 1.0) / 4294967297.0
    return (total - 2.0) * 1.7320508075688772


@kernel
def _node(road, num_nodes, arc_m):
    return np.int64(floor(arc_m / road.step_m)) % num_nodes


@kernel
def _spare(grip, squared, bend):
    across = squared * bend
    return sqrt(max(grip * grip - across * across, 0.0))


@entry_point()
def profile_speeds(nodes, road, car, grip_share, squared):
    """Fill the speeds (m/s) that use a share of the grip, with brakes before bends and power after them."""
    count, step_m = nodes.shape[0], road.step_m
    mass_kg, drag = np.float64(car.mass_kg), np.float64(car.drag_per_m)
    top_mps = np.float64(car.top_speed_mps)
    grip = grip_share * np.float64(car.friction) * GRAVITY_MPS2
    for k in range(count):
        squared[k] = min(grip / max(abs(nodes[k, NODE_CURVATURE]), 1e-9), top_mps * top_mps)
    for k in range(2 * count, 0, -1):
        here, before = k % count, (k - 1) % count
        spare = _spare(grip, squared[here], nodes[here, NODE_CURVATURE])
        limit = squared[here] + 2.0 * step_m * (spare + drag * squared[here])
        squared[before] = min(squared[before], limit)
    for k in range(2 * count):
        here, after = k % count, (k + 1) % count
        power = np.float64(car.power_w) / mass_kg / sqrt(max(squared[here], 1.0))
        spare = _spare(grip, squared[here], nodes[here, NODE_CURVATURE])
        drive = min(power, np.float64(car.drive_force_n) / mass_kg, 0.6 * spare)
        limit = squared[here] + 2.0 * step_m * max(drive - drag * squared[here], 0.0)
        squared[after] = min(squared[after], limit)
    for k in range(count):
        squared[k] = sqrt(squared[k])


@entry_point()
def see(states, minds, seen):
    """Fill what every driver sees of its own car now."""
    for k in range(minds.shape[0]):
        state, one = states[minds[k].car], seen[k]
        one.x_m, one.y_m, one.yaw_rad = state.x_m, state.y_m, state.yaw_rad
        one.speed_mps = _length(np.float64(state.forward_mps), np.float64(state.left_mps))
        one.yaw_radps, one.arc_m = state.yaw_radps, state.arc_m


@entry_point()
def drive_casually(seen, minds, speeds, nodes, road, traits, states, poses, actions):
    """Fill the actions of the casual drivers, from what they saw one reaction time ago."""
    fresh = sqrt(1.0 - NOISE_KEPT * NOISE_KEPT)
    for k in range(minds.shape[0]):
        mind = minds[k]
        mind.shake_steer = NOISE_KEPT * mind.shake_steer + fresh * _noise(mind)
        mind.shake_pedal = NOISE_KEPT * mind.shake_pedal + fresh * _noise(mind)
        steer, throttle, brake = _decide(seen[k], mind, speeds[k], nodes, road, traits, states, poses)
        action = actions[mind.car]
        action[0], action[1], action[2] = steer, throttle, brake


@kernel
def _decide(seen, mind, speeds, nodes, road, traits, states, poses):
    count, speed = nodes.shape[0], seen.speed_mps
    distance = REACTION_S * speed
    sine, cosine = _turn(seen.yaw_rad + 0.5 * REACTION_S * seen.yaw_radps)
    later = seen.arc_m + distance
    target = np.inf
    for ahead in BRAKE_AHEAD:
        target = min(target, speeds[_node(road, count, later + ahead * BRAKE_EARLY_S * speed)])
    bend = 0.0
    for seconds in BEND_AHEAD_S:
        there = nodes[_node(road, count, later + seconds * speed), NODE_CURVATURE]
        if abs(there) > abs(bend):
            bend = there
    most = _look(mind, target, bend, nodes, road, states, poses)
    yaw = seen.yaw_rad + REACTION_S * seen.yaw_radps
    x, y = seen.x_m + distance * cosine, seen.y_m + distance * sine
    steer = _steer(mind, x, y, yaw, speed, later, nodes, road, traits) + STEER_NOISE * mind.shake_steer
    error = min(target, most) - speed
    shake = PEDAL_NOISE * mind.shake_pedal
    lift = 1.0 - LIFT_PER_STEER * min(abs(steer), 1.0)
    if mind.lock != 0:
        steer, lift = np.float64(mind.lock), 1.0
    throttle = min(max(error * THROTTLE_PER_MPS + shake, 0.0), lift) if error > 0.0 else 0.0
    brake = _clamp(-error * BRAKE_PER_MPS + shake, 0.0, MAX_BRAKE) if error < -0.5 else 0.0
    return _clamp(steer, -1.0, 1.0), throttle, brake


@kernel
def _steer(mind, x, y, yaw, speed, arc_m, nodes, road, traits):
    """The arc through a point ahead, left of the centreline by the offset, as a steering input (positive right)."""
    goal = nodes[_node(road, nodes.shape[0], arc_m + LOOK_AHEAD_M + LOOK_AHEAD_S * speed)]
    dx = goal[NODE_X] - x - goal[NODE_TANGENT_Y] * mind.offset_m
    dy = goal[NODE_Y] - y + goal[NODE_TANGENT_X] * mind.offset_m
    sine, cosine = _turn(yaw)
    left = dy * cosine - dx * sine
    wheelbase_m = np.float64(traits.front_m) + np.float64(traits.rear_m)
    angle = ((2.0 * left) / max(dx * dx + dy * dy, 1.0)) * (wheelbase_m + UNDERSTEER * speed * speed)
    fast, slow = np.float64(traits.steering_fast_rad), np.float64(traits.steering_slow_rad)
    share = 1.0 / (1.0 + speed * speed * np.float64(traits.per_steering_scale2))
    return -angle / (fast + (slow - fast) * share)


@kernel
def _look(mind, target, bend, nodes, road, states, poses):
    """Decide where across the road to drive because of others, and how fast at most."""
    state, pose = states[mind.car], poses[mind.car]
    own, speed = np.float64(state.lateral_m), _length(np.float64(pose.vx_mps), np.float64(pose.vy_mps))
    blocker, gap, across, their_speed = -1, np.inf, 0.0, 0.0
    lowest, highest = -np.inf, np.inf
    for other in range(poses.shape[0]):
        one = poses[other]
        if other == mind.car or one.on_road == 0:
            continue
        there, away = np.float64(one.lateral_m), np.float64(one.arc_m) - np.float64(pose.arc_m)
        away = away - road.length_m * floor(away / road.length_m + 0.5)
        if 0.0 < away < SIGHT_M and abs(there - own) < CLEARANCE_M and away < gap:
            blocker, gap, across = other, away, there
            their_speed = _length(np.float64(one.vx_mps), np.float64(one.vy_mps))
        if abs(away) < BESIDE_M and there > own:
            highest = min(highest, there - CLEARANCE_M)
        elif abs(away) < BESIDE_M:
            lowest = max(lowest, there + CLEARANCE_M)
    sharp = min(abs(bend) / BEND_RADPM, 1.0)
    has_blocker = blocker >= 0
    is_standing = has_blocker and their_speed < STANDING_MPS
    margin = EDGE_M + BEND_EDGE_M * sharp
    left_edge, right_edge = nodes[state.node, NODE_LEFT_M], nodes[state.node, NODE_RIGHT_M]
    if is_standing and abs(across) + (right_edge if across > 0.0 else left_edge) - margin - CLEARANCE_M <= 0.0:
        margin = -AROUND_M
    left, right = max(left_edge - margin, 0.0), max(right_edge - margin, 0.0)
    wanted = _pass(mind, has_blocker and target > their_speed + KEEN_MPS, across, left, right)
    wanted = (lowest + highest) / 2.0 if lowest > highest else _clamp(wanted, lowest, highest)
    wanted = _clamp(wanted, -right, left)
    calm = 1.0 / (1.0 + (2.0 * abs(bend)) / BEND_RADPM)
    most = (MOVE_MPS if mind.side != 0 or has_blocker else SETTLE_MPS) * calm * TICK_S
    mind.offset_m = mind.offset_m + _clamp(wanted - mind.offset_m, -most, most)
    possible = target * sqrt(_clamp(1.0 - bend * mind.offset_m, 0.5, 1.0))  # the inside is sharper
    possible = _stay_on_road(possible, abs(own) - (left_edge if own > 0.0 else right_edge), speed)
    is_held = has_blocker and abs(across - own) < 0.85 * CLEARANCE_M
    waits = is_held and is_standing and speed < STANDING_MPS
    mind.waited = mind.waited + 1 if waits else max(mind.waited - 1, 0)
    _find_way(mind, own, speed, state, nodes, left_edge, right_edge)
    if mind.lock != 0:
        return LOST_MPS
    if not is_held:
        return possible
    allowed = their_speed + FOLLOW_PER_S * (gap - FOLLOW_M - FOLLOW_S * speed)
    creep = CREEP_MPS if mind.side != 0 and gap > BESIDE_M - 1.0 else 0.0
    crawl = CRAWL_MPS if mind.waited > PATIENCE_TICKS else 0.0
    return min(possible, max(allowed, creep, crawl))


@kernel
def _stay_on_road(possible, out, speed):
    """Slower the further it drifts towards the grass; on it, no more than a little faster than now."""
    slower = possible * (1.0 - _clamp(DRIFT_PER_M * (out + EDGE_M), 0.0, MAX_DRIFT))
    return min(slower, max(speed + GRASS_MPS, LOST_MPS)) if out > 0.0 else slower


@kernel
def _find_way(mind, own, speed, state, nodes, left_edge, right_edge):
    """Turn a car that points away from the road's direction: the short way, or backwards where a wall is near."""
    sine, cosine = _turn(np.float64(state.yaw_rad))
    along_x, along_y = nodes[state.node, NODE_TANGENT_X], nodes[state.node, NODE_TANGENT_Y]
    ahead, leftward = along_x * cosine + along_y * sine, along_x * sine - along_y * cosine
    if ahead >= LOST_COSINE:
        mind.lock = 0
    elif mind.lock == 0 or ahead >= 0.0 or speed < STANDING_MPS:
        facing = 1 if leftward > 0.0 else -1
        room = (left_edge if facing > 0 else right_edge) - facing * own + RUNOFF_M
        has_room = ahead > 0.0 or TURN_M * (1.0 - ahead) < room
        mind.lock = facing if has_room else -facing


@kernel
def _pass(mind, is_keen, across, left, right):
    """Beside the car in the way, on the side with more room; a side once chosen is kept while there is room on it."""
    room_left, room_right = left - (across + CLEARANCE_M), right + (across - CLEARANCE_M)
    kept = room_left if mind.side > 0 else room_right
    side = mind.side if mind.side != 0 and kept > 0.0 else (1 if room_left > room_right else -1)
    mind.side = side if is_keen and max(room_left, room_right) > 0.0 else 0
    return across + mind.side * CLEARANCE_M if mind.side != 0 else 0.0

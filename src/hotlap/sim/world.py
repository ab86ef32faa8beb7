"""One car, one tick: motion, walls, laps, reward and observation. Every engine runs these functions."""

from math import sqrt

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.laps import count_gates
from hotlap.sim.maths import PI, arc_tangent, clamp, mix, sin_cos, wrap_angle
from hotlap.sim.rays import NUM_RAYS, RAY_RANGE_M, cast, ray_direction
from hotlap.sim.rewards import START_RANDOM, reward_terms
from hotlap.sim.ribbon import arc_length, locate, node_after, place
from hotlap.sim.rng import uniform
from hotlap.sim.road_view import view_road
from hotlap.sim.vehicle import advance

F = np.float32
U = np.uintp  # unsigned indices: numba skips its check for negative ones
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)

NUM_OBSERVATIONS = 14
NUM_ACTIONS = 3  # steer, throttle, brake
OBS_SPEED, OBS_YAW_RATE, OBS_STEER, OBS_PROGRESS, OBS_OFFSET = range(NUM_RAYS, NUM_OBSERVATIONS)
YAW_RATE_SCALE_RADPS = F(5.0)

# Random starts: fraction of the half-width used, heading scatter, and the fraction of the feasible speed, from and to.
START_WIDTH = F(0.6)
START_HEADING_RAD = F(0.06)
START_SPEED_FROM, START_SPEED_TO = F(0.3), F(0.95)
# Random starts of cars that have spun: the fraction of the distance to the walls used, and the greatest yaw rate of
# those that slide. Half of them do, at up to the feasible speed; the others stand.
SPUN_WIDTH = F(0.95)
SPUN_YAW_RADPS = F(2.0)

# Limits the spin that a wall contact can cause.
MAX_WALL_SPIN_RADPS = F(4.0)

STATE_DTYPE = np.dtype(
    [
        # Pose and body: what the equations of motion move.
        ("x_m", np.float32),
        ("y_m", np.float32),
        ("yaw_rad", np.float32),
        ("forward_mps", np.float32),
        ("left_mps", np.float32),
        ("yaw_radps", np.float32),
        ("steer", np.float32),
        ("throttle", np.float32),
        ("brake", np.float32),
        ("shift_n", np.float32),
        # Position on the ribbon: located once per tick, used by surface, laps, rewards and rays.
        ("share", np.float32),
        ("lateral_m", np.float32),
        ("arc_m", np.float32),
        ("node", np.int32),
        ("track", np.int32),
        # Laps and the episode.
        ("lap_start_share", np.float32),
        ("lap_start_tick", np.int32),
        ("lap", np.int32),
        ("gate", np.int32),
        ("next_gate", np.int32),
        ("clock_runs", np.int32),
        ("lap_spoiled", np.int32),
        ("tick", np.int32),
        ("still_ticks", np.int32),
        ("episode", np.int32),
        ("seed", np.uint64),
    ],
    align=True,
)

# These columns become the environment's info and keep its public names.
INFO_DTYPE = np.dtype(
    [
        ("progress", np.float32),
        ("speed", np.float32),
        ("wall", np.float32),
        ("offTrack", np.float32),
        ("backward", np.float32),
        ("stillness", np.float32),
        ("lap", np.int32),
        ("checkpoint", np.int32),
        ("stepCount", np.int32),
        ("tick", np.int32),
        ("rawSpeed", np.float32),
        ("wallContact", np.bool_),
        ("stillnessCounter", np.int32),
        ("lapTime", np.float32),  # NaN unless a lap ended on this tick
        ("lapClean", np.bool_),
    ],
    align=True,
)


@kernel
def begin_episode(me, tracks, nodes, rules):
    """Put the car on the start line; or with random starts somewhere on the road at a feasible speed.

    A fraction of the random starts have spun: on or beside the road, with any heading, standing or sliding.
    """
    track = tracks[me.track]
    node, fraction, left_m, turn_rad, pace = 0, ZERO, ZERO, ZERO, ZERO
    is_spun = False
    is_random = rules.start == START_RANDOM
    if is_random:
        node = min(int(uniform(me.seed, me.episode, 0) * F(track.num_nodes)), track.num_nodes - 1)
        fraction = uniform(me.seed, me.episode, 1)
        side = TWO * uniform(me.seed, me.episode, 2) - ONE
        turn_rad = START_HEADING_RAD * (TWO * uniform(me.seed, me.episode, 3) - ONE)
        pace = mix(START_SPEED_FROM, START_SPEED_TO, uniform(me.seed, me.episode, 4))
        at = nodes[U(track.first_node + node)]
        left_m = START_WIDTH * side * (at.road_left_m if side > ZERO else at.road_right_m)
        is_spun = uniform(me.seed, me.episode, 5) < rules.spun_fraction
        if is_spun:
            turn_rad = PI * (TWO * uniform(me.seed, me.episode, 6) - ONE)
            pace = max(ZERO, TWO * uniform(me.seed, me.episode, 7) - ONE)
            left_m = SPUN_WIDTH * side * (at.wall_left_m if side > ZERO else at.wall_right_m)
    here = nodes[U(track.first_node + node)]
    me.x_m, me.y_m = place(track, nodes, node, fraction, left_m)
    me.yaw_rad = wrap_angle(arc_tangent(here.tangent_y, here.tangent_x) + turn_rad)
    me.forward_mps = pace * here.start_speed_mps
    me.left_mps = ZERO
    me.yaw_radps = me.forward_mps * here.curvature_radpm
    if is_spun:  # it slides along the road, whatever it faces
        sin_turn, cos_turn = sin_cos(turn_rad)
        me.left_mps = -me.forward_mps * sin_turn
        me.forward_mps *= cos_turn
        me.yaw_radps = SPUN_YAW_RADPS * (TWO * uniform(me.seed, me.episode, 8) - ONE) if pace > ZERO else ZERO
    me.steer = ZERO
    me.throttle = ZERO
    me.brake = ZERO
    me.shift_n = ZERO
    me.node, me.share, me.lateral_m = locate(track, nodes, node, me.x_m, me.y_m)
    me.arc_m = arc_length(track, me.node, me.share)
    me.lap = 1
    me.gate = 0
    me.next_gate = 0 if is_random else 1
    me.clock_runs = 0 if is_random else 1
    me.lap_start_tick = 0
    me.lap_start_share = ZERO
    me.lap_spoiled = 0
    me.tick = 0
    me.still_ticks = 0


@kernel
def road_room(me, track, nodes):
    """Metres from the car's centre to the road's edge on its side; negative off the road."""
    here = nodes[U(track.first_node + me.node)]
    there = nodes[U(track.first_node + node_after(track, me.node))]
    if me.lateral_m > ZERO:
        return mix(here.road_left_m, there.road_left_m, me.share) - me.lateral_m
    return mix(here.road_right_m, there.road_right_m, me.share) + me.lateral_m


@kernel
def meet_wall(me, track, nodes, portals, car):
    """Keep the car inside the walls: it slides along and loses speed with the impact angle. True on contact."""
    after = node_after(track, me.node)
    here, there = nodes[U(track.first_node + me.node)], nodes[U(track.first_node + after)]
    on_left = me.lateral_m > ZERO
    if on_left:
        room_m = mix(here.wall_left_m, there.wall_left_m, me.share) - car.radius_m
    else:
        room_m = mix(here.wall_right_m, there.wall_right_m, me.share) - car.radius_m
    room_m = max(room_m, ZERO)
    if abs(me.lateral_m) <= room_m:
        return False
    me.lateral_m = room_m if on_left else -room_m
    me.x_m, me.y_m = place(track, nodes, me.node, me.share, me.lateral_m)

    near, far = portals[U(track.first_portal + me.node)], portals[U(track.first_portal + after)]
    if on_left:
        wall_x, wall_y = far.left_x - near.left_x, far.left_y - near.left_y
    else:
        wall_x, wall_y = far.right_x - near.right_x, far.right_y - near.right_y
    length_m = sqrt(wall_x * wall_x + wall_y * wall_y)
    wall_x, wall_y = wall_x / length_m, wall_y / length_m
    out_x, out_y = (-wall_y, wall_x) if on_left else (wall_y, -wall_x)

    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    vx = me.forward_mps * cos_yaw - me.left_mps * sin_yaw
    vy = me.forward_mps * sin_yaw + me.left_mps * cos_yaw
    into = vx * out_x + vy * out_y
    if into <= ZERO:
        return True
    slide = vx * wall_x + vy * wall_y
    rub = min(car.wall_friction * into, abs(slide))
    slide = slide - rub if slide > ZERO else slide + rub
    vx, vy = slide * wall_x, slide * wall_y
    me.forward_mps = vx * cos_yaw + vy * sin_yaw
    me.left_mps = vy * cos_yaw - vx * sin_yaw

    # The end of the car that points at the wall is pushed away from it.
    arm_m = car.front_m if cos_yaw * out_x + sin_yaw * out_y > ZERO else -car.rear_m
    turning = -arm_m * (cos_yaw * out_y - sin_yaw * out_x)
    kick = car.wall_yaw_share * car.mass_kg * into * turning / car.yaw_inertia_kgm2
    me.yaw_radps = clamp(me.yaw_radps + kick, -MAX_WALL_SPIN_RADPS, MAX_WALL_SPIN_RADPS)
    return True


@kernel
def move(me, track, nodes, steer, throttle, brake, car):
    """Drive one tick on the surface under the car and locate it; returns the metres gained along the lap."""
    grip, resistance_mps2 = ONE, car.rolling_mps2
    if road_room(me, track, nodes) < ZERO:
        grip, resistance_mps2 = car.runoff_grip, car.rolling_mps2 + car.runoff_drag_mps2
    pose = (me.x_m, me.y_m, me.yaw_rad)
    body = (me.forward_mps, me.left_mps, me.yaw_radps, me.steer, me.throttle, me.brake, me.shift_n)
    command = (clamp(steer, -ONE, ONE), clamp(throttle, ZERO, ONE), clamp(brake, ZERO, ONE))
    pose, body = advance(pose, body, command, grip, resistance_mps2, car)
    me.x_m, me.y_m, me.yaw_rad = pose[0], pose[1], wrap_angle(pose[2])
    me.forward_mps, me.left_mps, me.yaw_radps = body[0], body[1], body[2]
    me.steer, me.throttle, me.brake, me.shift_n = body[3], body[4], body[5], body[6]
    return relocate(me, track, nodes)


@kernel
def relocate(me, track, nodes):
    """Locate the car on the road again after it moved; returns the metres gained along the lap."""
    node, fraction, left_m = locate(track, nodes, me.node, me.x_m, me.y_m)
    steps = node - me.node
    if 2 * steps > track.num_nodes:
        steps -= track.num_nodes
    elif 2 * steps < -track.num_nodes:
        steps += track.num_nodes
    moved_m = (F(steps) + (fraction - me.share)) * track.step_m
    me.node, me.share, me.lateral_m = node, fraction, left_m
    return moved_m


@kernel
def progress_unit(me, track, nodes, rules):
    """The distance (m) whose reward is the weight of the progress: a lap, or what the rules say."""
    if rules.progress_time_s > ZERO:
        here, there = nodes[U(track.first_node + me.node)], nodes[U(track.first_node + node_after(track, me.node))]
        return mix(here.guide_mps, there.guide_mps, me.share) * rules.progress_time_s
    return rules.progress_length_m if rules.progress_length_m > ZERO else track.length_m


@kernel
def tick(me, action, tracks, nodes, portals, cars, rules, info):
    """Advance the car `me` by one tick and fill `info`; returns (reward, terminated, truncated)."""
    from_arc_m = me.arc_m
    moved_m = move(me, tracks[me.track], nodes, action[0], action[1], action[2], cars[0])
    return settle(me, from_arc_m, moved_m, tracks, nodes, portals, cars, rules, info)


@kernel
def settle(me, from_arc_m, moved_m, tracks, nodes, portals, cars, rules, info):
    """End the tick of a car that moved: walls, laps and reward; fills `info`, returns (reward, terminated, truncated).

    It was at `from_arc_m` when the tick began.
    """
    track, car = tracks[me.track], cars[0]
    me.arc_m = arc_length(track, me.node, me.share)
    touches_wall = meet_wall(me, track, nodes, portals, car)
    room_m = road_room(me, track, nodes)
    me.tick += 1
    if touches_wall or room_m < ZERO:
        me.lap_spoiled = 1
    lap_time_s, lap_clean = count_gates(me, from_arc_m, me.arc_m, moved_m, track.length_m, rules.num_gates)

    speed_mps = sqrt(me.forward_mps * me.forward_mps + me.left_mps * me.left_mps)
    is_still = speed_mps < rules.stillness_speed_mps
    me.still_ticks = me.still_ticks + 1 if is_still else 0
    is_fast = speed_mps >= rules.penalty_min_speed_mps
    pays_for_wall, pays_for_edge = is_fast and touches_wall, is_fast and room_m < ZERO
    speed_fraction = speed_mps / car.top_speed_mps
    moved_fraction = moved_m / progress_unit(me, track, nodes, rules)
    terms = reward_terms(rules, moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge)
    info.progress, info.speed, info.wall = terms[0], terms[1], terms[2]
    info.offTrack, info.backward, info.stillness = terms[3], terms[4], terms[5]
    describe(me, info)
    info.rawSpeed = speed_mps
    info.wallContact = touches_wall
    info.lapTime = lap_time_s
    info.lapClean = lap_clean
    reward = terms[0] + terms[1] + terms[2] + terms[3] + terms[4] + terms[5]
    return reward, me.still_ticks >= rules.stillness_timeout_ticks, me.tick >= rules.max_ticks


@kernel
def describe(me, info):
    """Fill the part of `info` that describes the position in the episode."""
    info.lap = me.lap
    info.checkpoint = me.gate
    info.stepCount = me.tick
    info.tick = me.tick
    info.stillnessCounter = me.still_ticks


@kernel
def observe_ray(me, tracks, portals, ray, cos_yaw, sin_yaw):
    """The observation of one ray: the distance to the wall as a fraction of the ray's range."""
    dx, dy = ray_direction(ray, cos_yaw, sin_yaw)
    return cast(tracks[me.track], portals, me.node, me.x_m, me.y_m, dx, dy) / RAY_RANGE_M


@kernel
def observe_motion(me, tracks, cars, obs):
    """Fill the observations that need no ray, each clipped into its range."""
    track, car = tracks[me.track], cars[0]
    speed_mps = sqrt(me.forward_mps * me.forward_mps + me.left_mps * me.left_mps)
    obs[OBS_SPEED] = clamp(speed_mps / car.top_speed_mps, ZERO, ONE)
    obs[OBS_YAW_RATE] = clamp(me.yaw_radps / YAW_RATE_SCALE_RADPS, -ONE, ONE)
    obs[OBS_STEER] = clamp(me.steer, -ONE, ONE)
    obs[OBS_PROGRESS] = clamp(me.arc_m / track.length_m, ZERO, ONE)
    obs[OBS_OFFSET] = clamp(abs(me.lateral_m) / track.widest_wall_m, ZERO, ONE)


@kernel
def observe(me, ribbons, cars, obs):
    """Fill the 14 observations, and the view of the road where `obs` has room for it."""
    tracks, nodes, portals = ribbons
    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    for ray in range(NUM_RAYS):
        obs[ray] = observe_ray(me, tracks, portals, ray, cos_yaw, sin_yaw)
    observe_motion(me, tracks, cars, obs)
    if obs.shape[0] > NUM_OBSERVATIONS:
        view_road(me, tracks, nodes, obs[NUM_OBSERVATIONS:])

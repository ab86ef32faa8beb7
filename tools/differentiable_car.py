"""The simulator's car on its roads as tensors with derivatives: one tick, and what a driver sees of the road.

The equations are those of `hotlap.sim` (`vehicle.body_rates`, `world.move`, `road_view`); a test compares the two. The
place of a car is that along the road, which differs from the simulator's by millimetres. There are no walls and rays.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.sim import road_view
from hotlap.sim.ribbon import Ribbons
from hotlap.sim.vehicle import TICK_S, car_record
from hotlap.sim.world import YAW_RATE_SCALE_RADPS

Car = dict[str, float]
Body = tuple[Tensor, ...]  # in the order of `vehicle.Body`

NODE_COLUMNS = (
    *("x_m", "y_m", "tangent_x", "tangent_y", "road_left_m", "road_right_m"),
    *("curvature_radpm", "guide_left_m", "guide_mps"),
)
(X, Y, TANGENT_X, TANGENT_Y, LEFT, RIGHT, CURVATURE, GUIDE_LEFT, GUIDE_MPS) = range(len(NODE_COLUMNS))
STATE_COLUMNS = (
    "arc_m", "lateral_m", "turn_rad", "forward_mps", "left_mps", "yaw_radps", "steer", "throttle", "brake", "shift_n",
)  # fmt: skip
(ARC, LATERAL, TURN, FORWARD, SIDEWAYS, YAW_RATE, STEER, THROTTLE, BRAKE, SHIFT) = range(len(STATE_COLUMNS))
TINY = 1e-6  # under roots, whose derivative has no limit at zero


class Roads(NamedTuple):
    """Roads as tensors: of each its first node, how many it has and how far apart they are; and the nodes of all."""

    first: Tensor
    num_nodes: Tensor
    step_m: Tensor
    nodes: Tensor  # (nodes, NODE_COLUMNS)

    @classmethod
    def of(cls, ribbons: Ribbons, device: torch.device) -> "Roads":
        """The roads of these ribbons, which must have guides."""
        heads = ribbons.tracks
        columns = np.stack([ribbons.nodes[name] for name in NODE_COLUMNS], axis=1)
        arrays = heads["first_node"].astype(np.int64), heads["num_nodes"].astype(np.int64), heads["step_m"], columns
        return cls(*(torch.as_tensor(np.ascontiguousarray(array), device=device) for array in arrays))

    def on(self, track: Tensor) -> "Roads":
        """The roads of single cars."""
        return Roads(self.first[track], self.num_nodes[track], self.step_m[track], self.nodes)

    def at(self, arc_m: Tensor) -> Tensor:
        """The columns of the nodes, linear between them, at arc lengths (cars) or (cars, points)."""
        first, num_nodes, step_m = self.first, self.num_nodes, self.step_m
        if arc_m.dim() == 2:
            first, num_nodes, step_m = first[:, None], num_nodes[:, None], step_m[:, None]
        steps = arc_m / step_m
        whole = steps.detach().floor()
        node = whole.long() % num_nodes
        after = torch.where(node + 1 == num_nodes, 0, node + 1)
        here, there = self.nodes[first + node], self.nodes[first + after]
        return here + (there - here) * (steps - whole)[..., None]


def standard_car() -> Car:
    """The parameters of the standard car as the kernels have them."""
    record = car_record()[0]
    return {name: float(record[name]) for name in record.dtype.names}


def place_cars(states: NDArray[np.void], roads: Roads) -> Tensor:
    """The simulator's cars along their roads, (cars, STATE_COLUMNS)."""
    columns = {name: torch.as_tensor(states[name].copy()) for name in STATE_COLUMNS if name != "turn_rad"}
    road = roads.at(columns["arc_m"])
    turn_rad = torch.as_tensor(states["yaw_rad"].copy()) - torch.atan2(road[:, TANGENT_Y], road[:, TANGENT_X])
    columns["turn_rad"] = torch.remainder(turn_rad + torch.pi, 2.0 * torch.pi) - torch.pi
    return torch.stack([columns[name].float() for name in STATE_COLUMNS], 1)


def _tyre_force(demand_n: Tensor, slip: Tensor, grip_n: Tensor, stiffness: float) -> tuple[Tensor, Tensor]:
    """Longitudinal and lateral force, as `tyres.tyre_force`."""
    q2 = (demand_n / grip_n).square()
    shoulder = (1.0 + q2.square()).sqrt()
    y = stiffness * slip
    c = (1.0 + y.square()).rsqrt()
    lateral_n = -grip_n * y * c * (1.0 + 2.0 * c) * (shoulder * (shoulder + q2) * (2.0 + 2.0 * c)).rsqrt()
    return demand_n * shoulder.rsqrt(), lateral_n


def body_rates(body: Body, command: Body, grip: Tensor, resistance_mps2: Tensor, car: Car) -> Body:
    """Time derivative of a body, as `vehicle.body_rates`."""
    vx, vy, yaw_rate, steer, throttle, brake, shift_n = body
    speed2 = vx.square() + vy.square()
    speed = (speed2 + TINY).sqrt()
    slope, curve = car["grip_slope"], car["grip_curve_per_n"]
    load_front_n, load_rear_n = car["static_front_n"] - shift_n, car["static_rear_n"] + shift_n
    grip_front_n = grip * (load_front_n * (slope - curve * load_front_n)) + 1.0
    grip_rear_n = grip * (load_rear_n * (slope - curve * load_rear_n)) + 1.0
    slow_rad, fast_rad = car["steering_slow_rad"], car["steering_fast_rad"]
    angle = -steer * (fast_rad + (slow_rad - fast_rad) / (1.0 + speed2 * car["per_steering_scale2"]))
    sin_d, cos_d = angle.sin(), angle.cos()
    front_vy = vy + car["front_m"] * yaw_rate
    roll_front = vx * cos_d + front_vy * sin_d
    slip_front = (front_vy * cos_d - vx * sin_d) / roll_front.abs().clamp(min=car["slip_floor_mps"])
    slip_rear = (vy - car["rear_m"] * yaw_rate) / vx.abs().clamp(min=car["slip_floor_mps"])
    drive_n = throttle * (1.0 - brake).square() * car["drive_force_n"]
    drive_n = drive_n * (1.0 + (vx * car["per_drive_scale"]).square()).rsqrt()
    demand_front_n = -brake * car["brake_front_n"] * (2.0 * roll_front).clamp(-1.0, 1.0)
    demand_rear_n = drive_n - brake * car["brake_rear_n"] * (2.0 * vx).clamp(-1.0, 1.0)
    along_n, across_n = _tyre_force(demand_front_n, slip_front, grip_front_n, car["stiffness_front"])
    rear_x, rear_y = _tyre_force(demand_rear_n, slip_rear, grip_rear_n, car["stiffness_rear"])
    front_x, front_y = along_n * cos_d - across_n * sin_d, along_n * sin_d + across_n * cos_d
    against = car["drag_per_m"] * speed + resistance_mps2 / speed.clamp(min=0.5)
    ax = (front_x + rear_x) * car["per_mass"] - against * vx
    ay = (front_y + rear_y) * car["per_mass"] - against * vy
    yaw_acceleration = (car["front_m"] * front_y - car["rear_m"] * rear_y) * car["per_yaw_inertia"]
    low_mps, high_mps = car["kinematic_below_mps"], car["dynamic_above_mps"]
    t = ((speed - low_mps) / (high_mps - low_mps)).clamp(0.0, 1.0)
    dynamic = t.square() * (3.0 - 2.0 * t)
    rolling_yaw = vx * sin_d * car["per_wheelbase"] / cos_d
    kinematic = (1.0 - dynamic) * car["kinematic_rate_per_s"]
    limit = car["steering_rate_per_s"]
    return (
        ax + yaw_rate * vy,
        dynamic * (ay - yaw_rate * vx) + kinematic * (rolling_yaw * car["rear_m"] - vy),
        dynamic * yaw_acceleration + kinematic * (rolling_yaw - yaw_rate),
        ((command[0] - steer) * car["per_steering_lag"]).clamp(-limit, limit),
        (command[1] - throttle) * car["per_throttle_lag"],
        (command[2] - brake) * car["per_brake_lag"],
        (car["shift_per_mps2"] * ax - shift_n) * car["per_pitch_lag"],
    )


def road_room(state: Tensor, road: Tensor) -> Tensor:
    """Metres from the car's centre to the nearer edge of the road; negative off the road."""
    return torch.minimum(road[:, LEFT] - state[:, LATERAL], road[:, RIGHT] + state[:, LATERAL])


def drive_tick(state: Tensor, command: Body, road: Tensor, car: Car) -> tuple[Tensor, Tensor]:
    """The cars after one tick on the road beside them, as `world.move` without walls, and the metres gained."""
    arc_m, lateral_m, turn_rad, *body = state.unbind(1)
    is_off = road_room(state.detach(), road.detach()) < 0.0
    grip = torch.where(is_off, car["runoff_grip"], 1.0)
    resistance_mps2 = car["rolling_mps2"] + torch.where(is_off, car["runoff_drag_mps2"], 0.0)
    dt_s = float(TICK_S)

    def moved(by: Body, seconds: float) -> Body:
        return tuple(value + seconds * rate for value, rate in zip(body, by, strict=True))

    middle = moved(body_rates(tuple(body), command, grip, resistance_mps2, car), 0.5 * dt_s)
    after = moved(body_rates(middle, command, grip, resistance_mps2, car), dt_s)
    curvature = road[:, CURVATURE]
    stretch = (1.0 - lateral_m * curvature).clamp(min=0.1).reciprocal()
    before_mps = (body[0] * turn_rad.cos() - body[1] * turn_rad.sin()) * stretch
    middle_rad = turn_rad + 0.5 * dt_s * (body[2] - curvature * before_mps)
    cosine, sine = middle_rad.cos(), middle_rad.sin()
    gained_m = dt_s * (middle[0] * cosine - middle[1] * sine) * stretch
    lateral_m = lateral_m + dt_s * (middle[0] * sine + middle[1] * cosine)
    turn_rad = turn_rad + dt_s * middle[2] - curvature * gained_m
    return torch.stack([arc_m + gained_m, lateral_m, turn_rad, *after], 1), gained_m


def view_road(state: Tensor, roads: Roads, num_points: int, car: Car) -> tuple[list[Tensor], Tensor]:
    """Speed, yaw rate and steering as observed, and the columns of `road_view`."""
    arc_m, lateral_m, turn_rad, vx, vy, yaw_rate, steer, throttle, brake, _ = state.unbind(1)
    road = roads.at(arc_m)
    tangent_x, tangent_y = road[:, TANGENT_X], road[:, TANGENT_Y]
    size = (tangent_x.square() + tangent_y.square()).rsqrt()
    cosine, sine = turn_rad.cos(), turn_rad.sin()
    cos_yaw = ((tangent_x * cosine - tangent_y * sine) * size)[:, None]
    sin_yaw = ((tangent_y * cosine + tangent_x * sine) * size)[:, None]
    x_m, y_m = (road[:, X] - tangent_y * lateral_m)[:, None], (road[:, Y] + tangent_x * lateral_m)[:, None]
    speed = (vx.square() + vy.square() + TINY).sqrt()
    width_m = float(road_view.WIDTH_SCALE_M)
    place = [
        lateral_m / width_m,
        (road[:, LEFT] - lateral_m) / width_m,
        (road[:, RIGHT] + lateral_m) / width_m,
        tangent_x * sin_yaw[:, 0] - tangent_y * cos_yaw[:, 0],
        tangent_x * cos_yaw[:, 0] + tangent_y * sin_yaw[:, 0],
        vy / float(road_view.SLIP_SCALE_MPS),
        throttle,
        brake,
    ]
    has_guide = num_points == road_view.NUM_POINTS_2
    fraction = torch.arange(1, num_points + 1, device=state.device) / num_points
    fraction = fraction * (fraction.sqrt() if has_guide else fraction)
    reach_s = float(road_view.REACH_2_S if has_guide else road_view.REACH_S)
    distance_m = fraction * (float(road_view.MIN_REACH_M) + reach_s * speed)[:, None]
    points = roads.at(arc_m[:, None] + distance_m)
    to_x, to_y = points[..., TANGENT_X], points[..., TANGENT_Y]
    from_x, from_y = (
        torch.cat([first[:, None], to[:, :-1]], 1) for first, to in ((tangent_x, to_x), (tangent_y, to_y))
    )
    apart_m = torch.diff(distance_m, dim=1, prepend=torch.zeros_like(distance_m[:, :1]))
    turned = torch.atan2(from_x * to_y - from_y * to_x, from_x * to_x + from_y * to_y)

    def bearing(left_m: Tensor) -> Tensor:
        dx, dy = points[..., X] - to_y * left_m - x_m, points[..., Y] + to_x * left_m - y_m
        return (dy * cos_yaw - dx * sin_yaw) / (dx.square() + dy.square()).sqrt().clamp(
            min=float(road_view.MIN_BEARING_M)
        )

    edges = [
        float(road_view.RADIUS_SCALE_M) * turned / apart_m,
        bearing(points[..., LEFT]),
        bearing(-points[..., RIGHT]),
    ]
    columns = [torch.stack(place, 1), torch.stack(edges, 2).flatten(1)]
    if has_guide:
        scale_mps = float(road_view.GUIDE_SCALE_MPS)
        columns.append(torch.stack([(lateral_m - road[:, GUIDE_LEFT]) / width_m, road[:, GUIDE_MPS] / scale_mps], 1))
        columns.append(
            torch.stack([bearing(points[..., GUIDE_LEFT]), points[..., GUIDE_MPS] / scale_mps], 2).flatten(1)
        )
    motion = [speed / car["top_speed_mps"], yaw_rate / float(YAW_RATE_SCALE_RADPS), steer]
    return [value.clamp(-1.0, 1.0) for value in motion], torch.cat(columns, 1).clamp(-1.0, 1.0)

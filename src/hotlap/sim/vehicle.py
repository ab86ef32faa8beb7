"""The car: its parameters, and how its body moves under the driver's commands.

A dynamic single-track (bicycle) model in SI units, body frame x forward, y left. Longitudinal load transfer follows the
acceleration with the suspension's delay, so the equations are an explicit ODE with no algebraic loop. Every term is
smooth above walking speed, so that the same equations can be handed to an optimiser.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import kernel
from hotlap.sim.maths import clamp, sin_cos
from hotlap.sim.tyres import available_grip, tyre_force

F = np.float32
ZERO, HALF, ONE, TWO, THREE = F(0.0), F(0.5), F(1.0), F(2.0), F(3.0)

TICKS_PER_SECOND = 60
TICK_S = F(1.0 / TICKS_PER_SECOND)
GRAVITY_MPS2 = 9.81
AIR_DENSITY_KGPM3 = 1.225


class CarParameters(NamedTuple):
    """A mid-engined club racer, 1.2 t and 230 kW, on slick tyres; each group names where its values come from."""

    # Mass, inertia, geometry: mid-range of published sports-car data (Milliken & Milliken, Race Car Vehicle Dynamics;
    # Heydinger et al., SAE 1999-01-1336: yaw inertia close to mass * front * rear for compact cars).
    mass_kg: float = 1200.0
    yaw_inertia_kgm2: float = 1750.0
    front_m: float = 1.40  # centre of mass to front axle
    rear_m: float = 1.20
    height_m: float = 0.38  # centre of mass above ground
    radius_m: float = 1.0  # the disc that meets walls
    length_m: float = 4.4  # drawn, not simulated
    width_m: float = 1.9

    # Tyres: slip stiffness B of 8 to 15 and friction of 1.3 to 1.5 are usual for racing slicks (Pacejka, Tire and
    # Vehicle Dynamics, ch. 4); the stiffer rear gives mild understeer until the throttle takes the rear's grip away.
    friction: float = 1.42  # at nominal load
    load_sensitivity: float = 0.08  # relative friction lost when the load doubles
    stiffness_front: float = 9.0
    stiffness_rear: float = 14.0

    # Drive and brakes: 230 kW at the rear wheels; the force limit is first gear's. Brakes can lock every wheel;
    # 74 % front is more than its fraction of the load at full braking, so that the front gives up first.
    power_w: float = 230e3
    drive_force_n: float = 10.0e3
    brake_force_n: float = 24.0e3
    brake_front_share: float = 0.74

    # Air and rolling: drag area of a touring car with a wing (Katz, Race Car Aerodynamics); rolling 1.3 % of weight.
    drag_area_m2: float = 1.10
    rolling_mps2: float = 0.13

    # Actuators: a quick human turns the wheel lock to lock in half a second; pedals follow in a tenth.
    steering_rate_per_s: float = 4.0
    steering_lag_s: float = 0.05
    throttle_lag_s: float = 0.08
    brake_lag_s: float = 0.05
    pitch_lag_s: float = 0.08  # load transfer behind acceleration

    # Steering authority: full lock when parking, little at speed; scale is where half of the difference is gone.
    steering_slow_rad: float = 0.50
    steering_fast_rad: float = 0.06
    steering_scale_mps: float = 15.0

    # Surfaces: grass and gravel beside the road hold less than half as well and drag the car down.
    runoff_grip: float = 0.45
    runoff_drag_mps2: float = 1.0

    # Walking speed, where slip angles lose their meaning and the kinematic model takes over.
    kinematic_below_mps: float = 1.0
    dynamic_above_mps: float = 3.0
    kinematic_rate_per_s: float = 20.0
    slip_floor_mps: float = 3.0

    # Walls: friction along the wall per speed into it, fraction of the impact's torque that turns the car.
    wall_friction: float = 0.45
    wall_yaw_share: float = 0.25

    @property
    def wheelbase_m(self) -> float:
        """Distance between the axles."""
        return self.front_m + self.rear_m

    def full_lock_rad(self, speed2: Any) -> Any:
        """Road-wheel angle at full lock for a squared speed; numbers, arrays and a solver's symbols alike.

        The kernels' own is `steering_limit`.
        """
        fraction = 1.0 / (1.0 + speed2 / self.steering_scale_mps**2)
        return self.steering_fast_rad + (self.steering_slow_rad - self.steering_fast_rad) * fraction

    @property
    def top_speed_mps(self) -> float:
        """Flat-out speed on the road, where drive balances drag and rolling; by bisection."""
        low, high = 1.0, 200.0
        for _ in range(60):
            speed = 0.5 * (low + high)
            limit_mps = self.power_w / self.drive_force_n
            ratio = speed / limit_mps
            drive_n = self.drive_force_n / sqrt(1.0 + ratio * ratio)
            resistance_n = (
                0.5 * AIR_DENSITY_KGPM3 * self.drag_area_m2 * speed * speed + self.rolling_mps2 * self.mass_kg
            )
            low, high = (speed, high) if drive_n > resistance_n else (low, speed)
        return low


# What the kernels read: the parameters in float32, and what can be derived from them once (division is slow).
_DERIVED = (
    "top_speed_mps",
    "static_front_n",
    "static_rear_n",
    "shift_per_mps2",
    "per_mass",
    "per_yaw_inertia",
    "per_wheelbase",
    "per_drive_scale",
    "per_steering_scale2",
    "per_steering_lag",
    "per_throttle_lag",
    "per_brake_lag",
    "per_pitch_lag",
    "grip_slope",
    "grip_curve_per_n",
    "brake_front_n",
    "brake_rear_n",
    "drag_per_m",
)
CAR_DTYPE = np.dtype(
    [(name, np.float32) for name in (*CarParameters._fields, *_DERIVED)] + [("num_substeps", np.int32)], align=True
)

# Halving the substep changes a scripted lap by under 0.1 % (tests/sim/test_vehicle.py).
SUBSTEPS = 1


def car_record(parameters: CarParameters | None = None, num_substeps: int = SUBSTEPS) -> NDArray[np.void]:
    """The parameters as the one-element record array that kernels take."""
    car = parameters or CarParameters()
    weight_n = car.mass_kg * GRAVITY_MPS2
    brake_front_n = car.brake_force_n * car.brake_front_share
    drive_scale_mps = car.power_w / car.drive_force_n
    derived = {
        "top_speed_mps": car.top_speed_mps,
        "static_front_n": weight_n * car.rear_m / car.wheelbase_m,
        "static_rear_n": weight_n * car.front_m / car.wheelbase_m,
        "shift_per_mps2": car.mass_kg * car.height_m / car.wheelbase_m,
        "per_mass": 1.0 / car.mass_kg,
        "per_yaw_inertia": 1.0 / car.yaw_inertia_kgm2,
        "per_wheelbase": 1.0 / car.wheelbase_m,
        "per_drive_scale": 1.0 / drive_scale_mps,
        "per_steering_scale2": 1.0 / (car.steering_scale_mps * car.steering_scale_mps),
        "per_steering_lag": 1.0 / car.steering_lag_s,
        "per_throttle_lag": 1.0 / car.throttle_lag_s,
        "per_brake_lag": 1.0 / car.brake_lag_s,
        "per_pitch_lag": 1.0 / car.pitch_lag_s,
        "grip_slope": car.friction * (1.0 + car.load_sensitivity),
        "grip_curve_per_n": car.friction * car.load_sensitivity / (0.5 * weight_n),
        "brake_front_n": brake_front_n,
        "brake_rear_n": car.brake_force_n - brake_front_n,
        "drag_per_m": 0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2 / car.mass_kg,
    }
    record = np.zeros(1, CAR_DTYPE)
    for name, value in (car._asdict() | derived).items():
        record[name] = value
    record["num_substeps"] = num_substeps
    return record


class Body(NamedTuple):
    """The part of the car's state that the equations of motion integrate, without its pose."""

    forward_mps: float
    left_mps: float
    yaw_radps: float
    steer: float  # applied, -1 (left) to 1 (right)
    throttle: float  # applied, 0 to 1
    brake: float  # applied, 0 to 1
    shift_n: float  # load moved from the front axle to the rear


@kernel
def steering_limit(speed2, car):
    """Road-wheel angle (rad) at full lock, for a squared speed: generous when parking, small when fast."""
    fraction = ONE / (ONE + speed2 * car.per_steering_scale2)
    return car.steering_fast_rad + (car.steering_slow_rad - car.steering_fast_rad) * fraction


@kernel
def rolling_sign(speed):
    """Sign of the rolling speed, linear within half a metre per second of zero, so that brakes hold a car still."""
    return clamp(speed * TWO, -ONE, ONE)


@kernel
def body_rates(body, command, grip, resistance_mps2, car):
    """Time derivative of `body` under a command (steer, throttle, brake).

    `grip` scales the tyres' friction (1 on the road); `resistance_mps2` is rolling resistance and the surface's drag.
    """
    vx, vy, yaw_rate, steer, throttle, brake, shift_n = body
    speed2 = vx * vx + vy * vy
    speed = sqrt(speed2)

    # The extra newton keeps divisions by grip defined where there is none.
    grip_front_n = grip * available_grip(car.static_front_n - shift_n, car.grip_slope, car.grip_curve_per_n) + ONE
    grip_rear_n = grip * available_grip(car.static_rear_n + shift_n, car.grip_slope, car.grip_curve_per_n) + ONE

    # Velocity of the axles in the wheels' frames; positive steer is to the right, angles count to the left.
    sin_d, cos_d = sin_cos(-steer * steering_limit(speed2, car))
    front_vy = vy + car.front_m * yaw_rate
    roll_front = vx * cos_d + front_vy * sin_d
    side_front = front_vy * cos_d - vx * sin_d
    side_rear = vy - car.rear_m * yaw_rate
    slip_front = side_front / max(abs(roll_front), car.slip_floor_mps)
    slip_rear = side_rear / max(abs(vx), car.slip_floor_mps)

    ratio = vx * car.per_drive_scale
    # Braking cuts the throttle, as in modern cars; otherwise the throttle could be used to shift the brake balance.
    released = ONE - brake
    drive_n = throttle * released * released * car.drive_force_n / sqrt(ONE + ratio * ratio)
    demand_front_n = -brake * car.brake_front_n * rolling_sign(roll_front)
    demand_rear_n = drive_n - brake * car.brake_rear_n * rolling_sign(vx)
    along_front_n, across_front_n = tyre_force(demand_front_n, slip_front, grip_front_n, car.stiffness_front)
    force_rear_x, force_rear_y = tyre_force(demand_rear_n, slip_rear, grip_rear_n, car.stiffness_rear)
    force_front_x = along_front_n * cos_d - across_front_n * sin_d
    force_front_y = along_front_n * sin_d + across_front_n * cos_d

    # Drag and rolling act against the velocity, whichever way the car points.
    against = car.drag_per_m * speed + resistance_mps2 / max(speed, HALF)
    ax = (force_front_x + force_rear_x) * car.per_mass - against * vx
    ay = (force_front_y + force_rear_y) * car.per_mass - against * vy
    side_rate = ay - yaw_rate * vx
    yaw_acceleration = (car.front_m * force_front_y - car.rear_m * force_rear_y) * car.per_yaw_inertia

    # At walking speed the wheels roll where they point.
    if speed < car.dynamic_above_mps:
        t = clamp((speed - car.kinematic_below_mps) / (car.dynamic_above_mps - car.kinematic_below_mps), ZERO, ONE)
        dynamic = t * t * (THREE - TWO * t)
        rolling_yaw = vx * sin_d * car.per_wheelbase / cos_d
        kinematic = (ONE - dynamic) * car.kinematic_rate_per_s
        side_rate = dynamic * side_rate + kinematic * (rolling_yaw * car.rear_m - vy)
        yaw_acceleration = dynamic * yaw_acceleration + kinematic * (rolling_yaw - yaw_rate)

    steer_rate = (command[0] - steer) * car.per_steering_lag
    return (
        ax + yaw_rate * vy,
        side_rate,
        yaw_acceleration,
        clamp(steer_rate, -car.steering_rate_per_s, car.steering_rate_per_s),
        (command[1] - throttle) * car.per_throttle_lag,
        (command[2] - brake) * car.per_brake_lag,
        (car.shift_per_mps2 * ax - shift_n) * car.per_pitch_lag,
    )


@kernel
def along(body, rates, dt_s):
    """`body` moved by `dt_s` at the given rates."""
    return (
        body[0] + dt_s * rates[0],
        body[1] + dt_s * rates[1],
        body[2] + dt_s * rates[2],
        body[3] + dt_s * rates[3],
        body[4] + dt_s * rates[4],
        body[5] + dt_s * rates[5],
        body[6] + dt_s * rates[6],
    )


@kernel
def advance(pose, body, command, grip, resistance_mps2, car):
    """One tick: pose (x, y, yaw) and body after 1/60 s, by midpoint steps."""
    x, y, yaw = pose
    dt_s = TICK_S / F(car.num_substeps)
    half_s = HALF * dt_s
    for _ in range(car.num_substeps):
        middle = along(body, body_rates(body, command, grip, resistance_mps2, car), half_s)
        sin_yaw, cos_yaw = sin_cos(yaw + half_s * body[2])
        body = along(body, body_rates(middle, command, grip, resistance_mps2, car), dt_s)
        x += dt_s * (middle[0] * cos_yaw - middle[1] * sin_yaw)
        y += dt_s * (middle[0] * sin_yaw + middle[1] * cos_yaw)
        yaw += dt_s * middle[2]
    return (x, y, yaw), body

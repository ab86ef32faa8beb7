"""The simulator's equations of motion as CasADi expressions, in coordinates along the track.

`hotlap.sim.vehicle.body_rates` is the original; a test compares the two at random points. The kinematic model of
walking speed is left out: an optimal lap never goes slower.
"""

from dataclasses import dataclass
from enum import IntEnum

import casadi as ca

from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, GRAVITY_MPS2, CarParameters


class State(IntEnum):
    """Columns of the state vector."""

    LATERAL = 0  # m left of the centreline
    HEADING = 1  # rad from the centreline's direction
    FORWARD = 2  # m/s
    LEFT = 3  # m/s
    YAW = 4  # rad/s
    STEER = 5  # applied, -1 to 1, positive right
    THROTTLE = 6
    BRAKE = 7
    SHIFT = 8  # N moved from the front axle to the rear


class Control(IntEnum):
    """Columns of the control vector."""

    STEER_RATE = 0  # 1/s; its steering command is steer + lag * rate
    THROTTLE = 1  # commanded, 0 to 1
    BRAKE = 2


NUM_STATES, NUM_CONTROLS = len(State), len(Control)


@dataclass(frozen=True)
class Motion:
    """Derivatives by time at one point of the track."""

    rates: ca.SX  # (9,) of the states, per second
    progress_mps: ca.SX  # metres of centreline gained per second


def motion(state: ca.SX, control: ca.SX, curvature: ca.SX, car: CarParameters) -> Motion:
    """How the state changes with time."""
    lateral, heading = state[State.LATERAL], state[State.HEADING]
    vx, vy, yaw_rate = state[State.FORWARD], state[State.LEFT], state[State.YAW]
    progress = (vx * ca.cos(heading) - vy * ca.sin(heading)) / (1.0 - lateral * curvature)
    body = body_rates(state[State.FORWARD :], control, car)
    rates = ca.vertcat(
        vx * ca.sin(heading) + vy * ca.cos(heading),
        yaw_rate - curvature * progress,
        body,
    )
    return Motion(rates, progress)


def wheel_angle(body: ca.SX, car: CarParameters) -> ca.SX:
    """Road-wheel angle (rad), positive to the left."""
    angle: ca.SX = -body[3] * car.full_lock_rad(body[0] * body[0] + body[1] * body[1])
    return angle


def slips(body: ca.SX, car: CarParameters) -> tuple[ca.SX, ca.SX]:
    """Sideways over rolling speed of the front and of the rear axle."""
    vx, vy, yaw_rate = body[0], body[1], body[2]
    angle = wheel_angle(body, car)
    sin_d, cos_d = ca.sin(angle), ca.cos(angle)
    front_vy = vy + car.front_m * yaw_rate
    front = (front_vy * cos_d - vx * sin_d) / (vx * cos_d + front_vy * sin_d)
    return front, (vy - car.rear_m * yaw_rate) / vx


def body_rates(body: ca.SX, control: ca.SX, car: CarParameters) -> ca.SX:
    """Rates of the car's body: (forward, left, yaw, steer, throttle, brake, shift) per second."""
    vx, vy, yaw_rate, _, throttle, brake, shift = (body[k] for k in range(7))
    weight = car.mass_kg * GRAVITY_MPS2
    speed = ca.sqrt(vx * vx + vy * vy)
    grip_front = _grip(weight * car.rear_m / car.wheelbase_m - shift, car) + 1.0
    grip_rear = _grip(weight * car.front_m / car.wheelbase_m + shift, car) + 1.0
    angle = wheel_angle(body, car)
    sin_d, cos_d = ca.sin(angle), ca.cos(angle)
    slip_front, slip_rear = slips(body, car)

    ratio = vx * car.drive_force_n / car.power_w
    drive = throttle * (1.0 - brake) ** 2 * car.drive_force_n / ca.sqrt(1.0 + ratio * ratio)
    brake_front = car.brake_force_n * car.brake_front_share
    brake_rear = car.brake_force_n - brake_front
    along_front, across_front = _tyre(-brake * brake_front, slip_front, grip_front, car.stiffness_front)
    rear_x, rear_y = _tyre(drive - brake * brake_rear, slip_rear, grip_rear, car.stiffness_rear)
    front_x = along_front * cos_d - across_front * sin_d
    front_y = along_front * sin_d + across_front * cos_d

    drag_per_m = 0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2 / car.mass_kg
    against = drag_per_m * speed + car.rolling_mps2 / speed
    ax = (front_x + rear_x) / car.mass_kg - against * vx
    ay = (front_y + rear_y) / car.mass_kg - against * vy
    return ca.vertcat(
        ax + yaw_rate * vy,
        ay - yaw_rate * vx,
        (car.front_m * front_y - car.rear_m * rear_y) / car.yaw_inertia_kgm2,
        control[Control.STEER_RATE],
        (control[Control.THROTTLE] - throttle) / car.throttle_lag_s,
        (control[Control.BRAKE] - brake) / car.brake_lag_s,
        (car.mass_kg * ax * car.height_m / car.wheelbase_m - shift) / car.pitch_lag_s,
    )


def _grip(load: ca.SX, car: CarParameters) -> ca.SX:
    nominal = 0.5 * car.mass_kg * GRAVITY_MPS2
    return load * car.friction * (1.0 - car.load_sensitivity * (load / nominal - 1.0))


def _tyre(demand: ca.SX, slip: ca.SX, grip: ca.SX, stiffness: float) -> tuple[ca.SX, ca.SX]:
    """Longitudinal and lateral force, as in `hotlap.sim.tyres.tyre_force`."""
    q2 = (demand / grip) ** 2
    shoulder = ca.sqrt(1.0 + q2 * q2)
    y = stiffness * slip
    c = 1.0 / ca.sqrt(1.0 + y * y)
    across = -grip * y * c * (1.0 + 2.0 * c) / ca.sqrt(shoulder * (shoulder + q2) * (2.0 + 2.0 * c))
    return demand / ca.sqrt(shoulder), across

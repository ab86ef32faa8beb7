"""The car in figures a person can check: speeds, distances, radii, g, and slides."""

from math import atan, cos, degrees, sqrt, tan

import numpy as np
import pytest

from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, SUBSTEPS, TICKS_PER_SECOND, car_record
from sim.free_drives import (
    BRAKE,
    FORWARD,
    LEFT,
    ON_ROAD,
    ON_RUNOFF,
    SHIFT,
    STEER,
    YAW,
    YAW_RATE,
    X,
    Y,
    best_lateral_g,
    body_rates_at,
    corner,
    free_drive,
    hold,
    lateral_g,
    peak_braking_g,
    slip_deg,
    speed_of,
)
from sim.kernels import CAR, GRAVITY_MPS2
from sim.worlds import World, drive_laps, nodes_of

WEIGHT_N = CAR.mass_kg * GRAVITY_MPS2
LEFT_TURN = -1.0


def lock_rad(speed_mps: float) -> float:
    """Road-wheel angle at full lock."""
    fraction = 1.0 / (1.0 + (speed_mps / CAR.steering_scale_mps) ** 2)
    return CAR.steering_fast_rad + (CAR.steering_slow_rad - CAR.steering_fast_rad) * fraction


def grip_n(load_n: float, grip: float) -> float:
    """An axle's largest force: nominal friction at half the weight, less with more load."""
    return grip * load_n * CAR.friction * (1.0 + CAR.load_sensitivity * (1.0 - load_n / (0.5 * WEIGHT_N)))


def soft_limit(demand_n: float, limit_n: float) -> float:
    return demand_n / (1.0 + (demand_n / limit_n) ** 4) ** 0.25


def drag_mps2(speed_mps: float) -> float:
    return 0.5 * AIR_DENSITY_KGPM3 * CAR.drag_area_m2 * speed_mps**2 / CAR.mass_kg


def path_radius(trace: np.ndarray) -> np.ndarray:
    """Radius of the path at every tick of a trace."""
    course = np.unwrap(trace[:, YAW].astype(np.float64) + np.radians(slip_deg(trace)))
    return speed_of(trace)[:-1] / np.maximum(np.abs(np.diff(course)) * TICKS_PER_SECOND, 1e-9)


# --- straight ahead ---


def test_flat_out_the_car_reaches_the_speed_where_power_balances_drag():
    def surplus_n(speed: float) -> float:
        drive_n = CAR.drive_force_n / sqrt(1.0 + (speed * CAR.drive_force_n / CAR.power_w) ** 2)
        return drive_n - CAR.mass_kg * (drag_mps2(speed) + CAR.rolling_mps2)

    speeds = np.linspace(40.0, 100.0, 60_001)
    balance = speeds[np.argmin(np.abs([surplus_n(speed) for speed in speeds]))]
    end = free_drive(hold(90.0, throttle=1.0))[-1, FORWARD]
    assert 60.0 < end < 75.0
    assert CAR.top_speed_mps == pytest.approx(balance, abs=0.01)
    # The tyres' soft shoulder takes a few newtons of the drive.
    assert end == pytest.approx(balance, rel=0.005)
    assert end < balance


def test_far_below_the_tyres_limit_all_of_the_power_goes_into_the_car():
    # Fast enough that power, not grip, is the limit.
    trace = free_drive(hold(20.0, throttle=1.0), forward_mps=40.0, throttle=1.0)
    speed = trace[:, FORWARD].astype(np.float64)
    energy_gain_w = np.gradient(0.5 * CAR.mass_kg * speed**2) * TICKS_PER_SECOND
    lost_w = CAR.mass_kg * (drag_mps2(speed) + CAR.rolling_mps2) * speed
    power_w = (energy_gain_w + lost_w)[10:-10]
    ideal_w = CAR.power_w / np.sqrt(1.0 + (CAR.power_w / CAR.drive_force_n / speed[10:-10]) ** 2)
    assert power_w == pytest.approx(ideal_w, rel=0.02)


def brake_in_small_steps(speed_mps: float, grip: float, resistance_mps2: float) -> float:
    """Stopping distance by a float64 integration of our own: speed, brake pressure and load transfer, RK4 at 1 kHz."""
    static_front_n = WEIGHT_N * CAR.rear_m / CAR.wheelbase_m
    front_brake_n = CAR.brake_force_n * CAR.brake_front_share

    def rates(state: np.ndarray) -> np.ndarray:
        speed, brake, shift_n, _ = state
        sign = min(max(2.0 * speed, -1.0), 1.0)
        front_n = soft_limit(-brake * front_brake_n * sign, grip_n(static_front_n - shift_n, grip))
        rear_n = soft_limit(
            -brake * (CAR.brake_force_n - front_brake_n) * sign, grip_n(WEIGHT_N - static_front_n + shift_n, grip)
        )
        resisted = drag_mps2(speed) + resistance_mps2 * min(speed / 0.5, 1.0)
        gain = (front_n + rear_n) / CAR.mass_kg - resisted
        shift_goal_n = CAR.mass_kg * CAR.height_m / CAR.wheelbase_m * gain
        return np.array([gain, (1.0 - brake) / CAR.brake_lag_s, (shift_goal_n - shift_n) / CAR.pitch_lag_s, speed])

    state, dt = np.array([speed_mps, 0.0, 0.0, 0.0]), 1e-3
    while state[0] > 1e-3:
        k1 = rates(state)
        k2 = rates(state + 0.5 * dt * k1)
        k3 = rates(state + 0.5 * dt * k2)
        k4 = rates(state + dt * k3)
        state = state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return float(state[3])


@pytest.mark.parametrize("surface", [ON_ROAD, ON_RUNOFF], ids=["road", "runoff"])
@pytest.mark.parametrize("speed_mps", [15.0, 30.0, 60.0])
def test_the_stopping_distance_is_what_a_finer_integration_gives(speed_mps, surface):
    trace = free_drive(hold(14.0, brake=1.0), forward_mps=speed_mps, **surface)
    assert trace[-1, FORWARD] == pytest.approx(0.0, abs=1e-3)
    assert trace[-1, X] == pytest.approx(brake_in_small_steps(speed_mps, **surface), rel=0.003)


def test_the_car_brakes_with_well_over_one_g_and_about_half_of_that_beside_the_road():
    on_road_g, on_runoff_g = peak_braking_g(20.0, **ON_ROAD), peak_braking_g(20.0, **ON_RUNOFF)
    assert 1.1 < on_road_g < 1.6
    assert 0.4 < on_runoff_g / on_road_g < 0.65
    # What each axle is asked for, over what it can hold at full braking.
    front_n = WEIGHT_N * (CAR.rear_m + on_road_g * CAR.height_m) / CAR.wheelbase_m
    front_demand = CAR.brake_force_n * CAR.brake_front_share / grip_n(front_n, 1.0)
    rear_demand = CAR.brake_force_n * (1.0 - CAR.brake_front_share) / grip_n(WEIGHT_N - front_n, 1.0)
    assert front_demand > rear_demand


@pytest.mark.parametrize(("pedals", "sign"), [({"brake": 1.0}, -1.0), ({"throttle": 1.0}, 1.0)])
def test_braking_loads_the_front_and_driving_the_rear(pedals, sign):
    trace = free_drive(hold(0.6, **pedals), forward_mps=25.0)
    gain_mps2 = float(np.diff(trace[:, FORWARD])[-1]) * TICKS_PER_SECOND
    assert sign * gain_mps2 > 2.0
    # Moments about the contact patches: weight shifts by mass * acceleration * height / wheelbase.
    assert trace[-1, SHIFT] == pytest.approx(CAR.mass_kg * gain_mps2 * CAR.height_m / CAR.wheelbase_m, rel=0.05)


def test_a_braked_car_stops_and_stays_and_one_left_alone_coasts_to_a_stop():
    standing = free_drive(hold(10.0, steer=1.0, brake=1.0))
    assert np.abs(standing[:, [X, Y, YAW, FORWARD, LEFT, YAW_RATE]]).max() == 0.0
    braked = free_drive(hold(10.0, steer=0.5, brake=1.0), forward_mps=15.0)
    assert braked[:, FORWARD].min() > -1e-3
    assert np.ptp(braked[-300:, X]) < 1e-4
    assert speed_of(braked[-1]) < 1e-4
    coasting = free_drive(hold(100.0), forward_mps=3.0)
    assert np.diff(coasting[:, FORWARD]).max() <= 0.0
    assert 0.0 <= coasting[-1, FORWARD] < 0.01


# --- steering ---


def test_a_car_that_slides_left_is_pushed_right_and_its_nose_turns_into_the_slide():
    assert body_rates_at(forward_mps=20.0, left_mps=1.0).left_mps < -1.0
    assert body_rates_at(forward_mps=20.0, left_mps=-1.0).left_mps > 1.0
    # The stiffer rear's larger force to the right swings the tail right and the nose left: weathervaning.
    assert body_rates_at(forward_mps=20.0, left_mps=0.2).yaw_radps > 0.0


@pytest.mark.parametrize(("speed_mps", "steer"), [(2.0, 0.2), (10.0, 0.2), (40.0, 0.2), (15.0, 0.7)])
def test_a_positive_steer_input_turns_right_and_left_is_its_mirror_image(speed_mps, steer):
    right, left = (free_drive(hold(3.0, steer=s, throttle=0.4), forward_mps=speed_mps) for s in (steer, -steer))
    mirrored = [Y, YAW, LEFT, YAW_RATE, STEER]
    assert left[:, mirrored] == pytest.approx(-right[:, mirrored], abs=1e-4)
    assert left[:, FORWARD] == pytest.approx(right[:, FORWARD], abs=1e-4)
    after_half_a_second = right[TICKS_PER_SECOND // 2]
    assert after_half_a_second[YAW_RATE] < -0.005
    assert (after_half_a_second[[Y, YAW]] < 0.0).all()


@pytest.mark.parametrize("steer", [0.2, -0.6, 1.0])
def test_at_walking_speed_the_wheels_roll_where_they_point(steer):
    row = corner(steer, 0.8, seconds=4.0)
    angle_rad = -float(row[STEER]) * lock_rad(float(speed_of(row)))
    assert float(row[YAW_RATE]) == pytest.approx(float(row[FORWARD]) * tan(angle_rad) / CAR.wheelbase_m, rel=0.02)
    assert float(row[LEFT]) == pytest.approx(float(row[YAW_RATE]) * CAR.rear_m, rel=0.02)


@pytest.mark.parametrize("speed_mps", [5.0, 8.0, 15.0])
def test_in_a_gentle_corner_the_radius_is_the_geometric_one_plus_a_little_understeer(speed_mps):
    row = corner(0.15, speed_mps)
    angle_rad = float(row[STEER]) * lock_rad(float(speed_of(row)))
    radius_m = float(speed_of(row)) / abs(float(row[YAW_RATE]))
    # Small slips: each axle carries its fraction of the side force at 1.5 * B * grip newtons per unit of slip.
    per_lateral = {
        axle: CAR.mass_kg * arm / CAR.wheelbase_m / (1.5 * stiffness * grip_n(WEIGHT_N * arm / CAR.wheelbase_m, 1.0))
        for axle, arm, stiffness in (
            ("front", CAR.rear_m, CAR.stiffness_front),
            ("rear", CAR.front_m, CAR.stiffness_rear),
        )
    }
    understeer = per_lateral["front"] - per_lateral["rear"]
    expected_m = (CAR.wheelbase_m + understeer * float(speed_of(row)) ** 2) / tan(angle_rad)
    assert understeer > 0.0
    assert radius_m == pytest.approx(expected_m, rel=0.02)
    if speed_mps <= 8.0:
        assert radius_m == pytest.approx(CAR.wheelbase_m / tan(angle_rad), rel=0.06)


def test_the_car_corners_with_well_over_one_g_on_the_road_and_about_half_of_that_beside_it():
    on_road_g, on_runoff_g = best_lateral_g(13.0, **ON_ROAD), best_lateral_g(13.0, **ON_RUNOFF)
    assert 1.1 < on_road_g < 1.6
    assert 0.35 < on_runoff_g / on_road_g < 0.65


def test_more_steering_than_the_front_can_use_takes_speed_not_radius():
    # Past the peak of the tyres the force falls: no wheel angle gives more than friction allows.
    trace = free_drive(hold(1.5, steer=1.0, throttle=0.2), forward_mps=35.0)
    across_g = np.abs(np.diff(trace[:, LEFT]) * 60.0 + trace[:-1, FORWARD] * trace[:-1, YAW_RATE]) / GRAVITY_MPS2
    assert across_g.max() < CAR.friction * (1.0 + CAR.load_sensitivity)


# --- on the limit ---


def test_flooring_the_throttle_in_a_corner_spins_a_car_that_is_not_caught():
    steady = corner(LEFT_TURN * 0.6, 15.0)
    assert abs(slip_deg(steady)) < 5.0
    assert lateral_g(steady) > 0.7 * CAR.friction
    spun = free_drive(hold(4.0, steer=LEFT_TURN * 0.6, throttle=1.0), start=steady)
    row = spun[np.argmax(np.abs(slip_deg(spun)) > 8.0)]
    # In a left-hander the tail goes right: the car moves to the right of its nose.
    assert slip_deg(row) < -8.0
    assert np.abs(slip_deg(spun)).max() > 30.0
    slips_deg = []
    for _ in range(3 * TICKS_PER_SECOND):
        # Front wheels along the way the front of the car goes, a little ahead of it as a driver would be.
        way_rad = atan((float(row[LEFT]) + 0.5 * CAR.front_m * float(row[YAW_RATE])) / float(row[FORWARD]))
        steer = float(np.clip(-way_rad / lock_rad(float(speed_of(row))), -1.0, 1.0))
        row = free_drive(np.array([[steer, 0.0, 0.0]]), start=row)[1]
        slips_deg.append(abs(float(slip_deg(row))))
    assert slips_deg[0] > 8.0
    assert max(slips_deg) < 30.0
    assert slips_deg[-1] < 3.0
    assert float(row[FORWARD]) > 8.0


@pytest.mark.parametrize(("speed_mps", "steer"), [(12.0, 0.6), (20.0, 0.5)])
def test_light_braking_tightens_a_corner_and_full_braking_opens_it(speed_mps, steer):
    steady = corner(steer, speed_mps)
    radius_m = float(speed_of(steady)) / abs(float(steady[YAW_RATE]))
    lightly_m = path_radius(free_drive(hold(0.5, steer=steer, brake=0.1), start=steady))
    fully_m = path_radius(free_drive(hold(0.5, steer=steer, brake=1.0), start=steady))
    assert lightly_m[-1] < 0.95 * radius_m
    assert fully_m[-1] > 1.5 * radius_m


# --- conservation and accuracy ---


def test_with_no_force_energy_momentum_and_spin_are_kept():
    # So heavy that the newton of grip left on ice does nothing; no air, no rolling, no kinematic wheels.
    body = car_record(CAR._replace(mass_kg=1e9, yaw_inertia_kgm2=1e9, drag_area_m2=1e-12))
    still = {"grip": 0.0, "resistance_mps2": 0.0, "cars": body}
    trace = free_drive(hold(10.0, steer=0.3), forward_mps=20.0, left_mps=5.0, yaw_radps=0.5, **still).astype(np.float64)
    sine, cosine = np.sin(trace[:, YAW]), np.cos(trace[:, YAW])
    east = trace[:, FORWARD] * cosine - trace[:, LEFT] * sine
    north = trace[:, FORWARD] * sine + trace[:, LEFT] * cosine
    assert speed_of(trace) ** 2 == pytest.approx(425.0, rel=1e-4)
    assert east == pytest.approx(20.0, abs=20.0 * 1e-4)
    assert north == pytest.approx(5.0, abs=20.0 * 1e-4)
    assert trace[:, YAW_RATE] == pytest.approx(0.5, rel=1e-4)
    assert [trace[-1, X], trace[-1, Y]] == pytest.approx([200.0, 50.0], rel=1e-3)
    assert trace[-1, YAW] == pytest.approx(5.0, rel=1e-4)


def test_on_ice_the_car_loses_at_most_the_newton_per_axle_and_pedals_and_wheel_do_nothing():
    ice = {"grip": 0.0, "resistance_mps2": 0.0, "cars": car_record(CAR._replace(drag_area_m2=1e-12))}
    trace = free_drive(hold(10.0, steer=0.3), forward_mps=20.0, left_mps=5.0, yaw_radps=1.0, **ice).astype(np.float64)
    most_mps = 2.0 * 10.0 / CAR.mass_kg
    assert -most_mps < speed_of(trace[-1]) - speed_of(trace[0]) < 1e-3
    wild = free_drive(hold(2.0, steer=1.0, throttle=1.0, brake=1.0), forward_mps=20.0, **ice)
    assert speed_of(wild[-1]) == pytest.approx(20.0, abs=2.0 * 2.0 / CAR.mass_kg + 1e-4)


def test_the_wheel_follows_with_its_rate_and_pedals_with_their_lag():
    trace = free_drive(hold(1.0, steer=1.0, brake=1.0), forward_mps=10.0)
    turned = np.diff(trace[:, STEER]) * TICKS_PER_SECOND
    assert turned.max() == pytest.approx(CAR.steering_rate_per_s, rel=1e-3)
    assert trace[-1, STEER] == pytest.approx(1.0, abs=1e-3)
    after_a_lag = trace[round(CAR.brake_lag_s * TICKS_PER_SECOND), BRAKE]
    assert after_a_lag == pytest.approx(1.0 - np.exp(-1.0), abs=0.02)


def test_steering_authority_falls_with_speed():
    assert lock_rad(0.0) == pytest.approx(CAR.steering_slow_rad)
    # Full lock held by a car so heavy that it goes straight on: the slip of its front wheels is the wheel angle.
    for speed_mps in (10.0, 30.0, 60.0):
        rates = body_rates_at(forward_mps=speed_mps, steer=1.0)
        slip = CAR.stiffness_front * tan(lock_rad(speed_mps))
        front_n = grip_n(WEIGHT_N * CAR.rear_m / CAR.wheelbase_m, 1.0) * np.sin(1.5 * atan(slip))
        expected = -front_n * cos(lock_rad(speed_mps)) * CAR.front_m / CAR.yaw_inertia_kgm2
        assert rates.yaw_radps == pytest.approx(expected, rel=1e-3)


def drive_two_laps(num_substeps: int, grip_share: float) -> list[float]:
    """Lap times of a steady driver on track-01: one standing, one flying."""
    world = World([nodes_of("track-01")], car=car_record(num_substeps=num_substeps))
    return [time_s for time_s, _ in drive_laps(world, 2, grip_share=grip_share)]


@pytest.mark.parametrize("grip_share", [0.7, 0.9])
def test_halving_the_substep_changes_a_lap_by_under_a_thousandth(grip_share):
    coarse, fine = (drive_two_laps(count, grip_share) for count in (SUBSTEPS, 2 * SUBSTEPS))
    assert coarse == pytest.approx(fine, rel=1e-3)
    assert coarse != fine


@pytest.mark.parametrize("commands", [hold(3.0, steer=0.35, throttle=0.5), hold(3.0, steer=-0.2, brake=0.3)])
def test_a_hundred_times_finer_steps_end_in_almost_the_same_place(commands):
    coarse = free_drive(commands, forward_mps=20.0)[-1]
    fine = free_drive(commands, forward_mps=20.0, cars=car_record(num_substeps=100 * SUBSTEPS))[-1]
    assert np.hypot(*(coarse[:2] - fine[:2])) < 0.1
    assert degrees(abs(float(coarse[YAW] - fine[YAW]))) < 0.5

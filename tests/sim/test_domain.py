"""Cars that differ: factors by seed and episode, late actions, noise; figures that can be computed by hand."""

from math import sqrt

import numpy as np
import pytest

from hotlap.envs.domain import DomainRules
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import observation_space
from hotlap.sim.compilation import entry_point
from hotlap.sim.domain import GRIP_DRAW, deviate, lowest
from hotlap.sim.rng import uniform
from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, TICKS_PER_SECOND, CarParameters, car_record
from sim.free_drives import FORWARD, LEFT, YAW, body_rates_at, free_drive, hold, speed_of
from sim.kernels import CAR, GRAVITY_MPS2, F
from sim.worlds import World, nodes_of

FULL_THROTTLE = (0.0, 1.0, 0.0)


def records(**factors):
    """The record of a car with these factors, each the same in all episodes."""
    rules = {f"{name}_{end}": value for name, value in factors.items() for end in ("low", "high")}
    return DomainRules(**rules).car_records(1)


def columns(states):
    """The bits of states without the padding of their records."""
    return [states[name].tobytes() for name in states.dtype.names]


def world_of(num_cars=1, num_obs=14, **domain):
    """Cars on track-01 that differ in this way."""
    rules = DomainRules(**domain)
    return World([nodes_of("track-01")], num_cars, car=rules.car_records(num_cars), num_obs=num_obs, **rules.rules())


# --- the car ---


def test_a_car_of_factors_one_is_the_standard_car():
    assert records(grip=1.0, mass=1.0, power=1.0).tobytes() == car_record().tobytes()
    assert DomainRules(grip_low=1.0, grip_high=1.0).car == CarParameters()


def greatest_lateral_mps2(cars) -> float:
    """The greatest acceleration across the path while the wheel is slowly turned to full lock."""
    commands = hold(8.0, throttle=0.1)
    commands[:, 0] = np.linspace(0.0, 1.0, len(commands))
    trace = free_drive(commands, forward_mps=22.0, cars=cars)
    course_rad = np.unwrap(trace[:, YAW] + np.arctan2(trace[:, LEFT], trace[:, FORWARD]))
    return float(np.abs(np.diff(course_rad) * TICKS_PER_SECOND * speed_of(trace)[1:]).max())


@pytest.mark.parametrize("grip", [0.8, 1.1])
def test_the_speed_on_a_skidpad_grows_with_the_root_of_the_grip(grip):
    standard_mps2 = greatest_lateral_mps2(car_record())
    assert standard_mps2 == pytest.approx(CAR.friction * GRAVITY_MPS2, rel=0.05)
    # On a circle the speed is the root of acceleration times radius.
    assert sqrt(greatest_lateral_mps2(records(grip=grip)) / standard_mps2) == pytest.approx(sqrt(grip), rel=0.01)


def test_the_acceleration_falls_with_the_mass():
    """At 40 m/s the engine's power and the rear tyres' shoulder give the drive, against drag and rolling."""
    for mass in (0.9, 1.2):
        ratio = 40.0 * CAR.drive_force_n / CAR.power_w
        wanted_n = CAR.drive_force_n / sqrt(1.0 + ratio * ratio)
        weight_n = mass * CAR.mass_kg * GRAVITY_MPS2
        rear_n = weight_n * CAR.front_m / CAR.wheelbase_m
        sensitivity = 1.0 + CAR.load_sensitivity * (1.0 - rear_n / (0.5 * weight_n))
        drive_n = wanted_n / (1.0 + (wanted_n / (CAR.friction * sensitivity * rear_n)) ** 4) ** 0.25
        drag_n = 0.5 * AIR_DENSITY_KGPM3 * CAR.drag_area_m2 * 40.0**2
        expected = (drive_n - drag_n) / (mass * CAR.mass_kg) - CAR.rolling_mps2
        rates = body_rates_at(
            FULL_THROTTLE, resistance_mps2=CAR.rolling_mps2, cars=records(mass=mass), forward_mps=40.0, throttle=1.0
        )
        assert rates.forward_mps == pytest.approx(expected, rel=1e-3)


def test_the_top_speed_grows_with_the_power():
    """Where drag dominates it grows with the cube root; exactly, where drive equals drag and rolling."""
    for power in (0.8, 1.2):
        top_mps = CAR._replace(power_w=power * CAR.power_w).top_speed_mps
        assert top_mps / CAR.top_speed_mps == pytest.approx(power ** (1 / 3), rel=0.01)
        rates = body_rates_at(
            FULL_THROTTLE,
            resistance_mps2=CAR.rolling_mps2,
            cars=records(power=power),
            forward_mps=top_mps,
            throttle=1.0,
        )
        assert rates.forward_mps == pytest.approx(0.0, abs=0.03)  # the tyres' shoulder


def test_speeds_are_fractions_of_the_standard_cars_top_speed():
    assert records(power=1.3)["top_speed_mps"][0] == car_record()["top_speed_mps"][0]
    assert car_record(DomainRules(power_low=1.3, power_high=1.3).car)["top_speed_mps"][0] > 70.0


# --- what is drawn ---


def test_factors_are_drawn_by_seed_and_episode_and_give_the_car_of_these_parameters():
    drawn = {"grip": (0.8, 1.1), "mass": (0.9, 1.2), "power": (0.7, 1.0)}
    world = world_of(
        50,
        **{
            f"{name}_{end}": value
            for name, pair in drawn.items()
            for end, value in zip(("low", "high"), pair, strict=True)
        },
    )
    cars = world.cars[1:]
    for column, (low, high), standard in zip(
        ("friction", "mass_kg", "power_w"), drawn.values(), (CAR.friction, CAR.mass_kg, CAR.power_w), strict=True
    ):
        factors = cars[column] / standard
        assert low <= factors.min() < factors.max() <= high
        assert factors.std() == pytest.approx((high - low) / sqrt(12), rel=0.2)
    # The record that the kernel derives is that of the car with the parameters it drew.
    for car in cars[:5]:
        parameters = CAR._replace(
            friction=float(car["friction"]),
            mass_kg=float(car["mass_kg"]),
            yaw_inertia_kgm2=float(car["yaw_inertia_kgm2"]),
            power_w=float(car["power_w"]),
        )
        expected = car_record(parameters)[0]
        for name in expected.dtype.names:
            if name != "top_speed_mps":
                assert car[name] == pytest.approx(expected[name], rel=1e-6), name
    before = cars.copy()
    world.states["episode"] += 1
    world.reset()
    assert (cars["friction"] != before["friction"]).all()
    world.states["episode"] -= 1
    world.reset()
    assert cars.tobytes() == before.tobytes()


@entry_point()
def draw_all(values):
    for i in range(values.shape[0]):
        values[i, 0] = deviate(np.uint64(i % 7), i // 700, i)
        values[i, 1] = uniform(np.uint64(i % 7), i // 700, GRIP_DRAW + i)


def test_noise_has_mean_zero_standard_deviation_one_and_is_bell_shaped():
    values = np.zeros((100_000, 2), F)
    draw_all(values)
    noise = values[:, 0].astype(np.float64)
    assert noise.mean() == pytest.approx(0.0, abs=0.015)
    assert noise.std() == pytest.approx(1.0, rel=0.01)
    assert np.mean(np.abs(noise) < 1.0) == pytest.approx(0.67, abs=0.02)  # a Gaussian: 0.683
    assert np.abs(noise).max() <= sqrt(12.0)


@entry_point()
def fill_lowest(columns):
    for column in range(columns.shape[0]):
        columns[column] = lowest(column, columns.shape[0])


@pytest.mark.parametrize("observation", ["rays", "road", "road-2"])
def test_noise_stays_in_the_range_of_each_column(observation):
    space = observation_space(observation)
    low = np.zeros(space.shape, F)
    fill_lowest(low)
    np.testing.assert_array_equal(low, space.low)
    world = world_of(8, space.shape[0], observation_noise=0.5)
    world.step(FULL_THROTTLE)
    assert all(space.contains(row) for row in world.batch.obs)


def test_observations_deviate_by_the_stated_amount_and_the_cars_do_not():
    world, quiet = world_of(400, observation_noise=0.02), world_of(400)
    for one in (world, quiet):
        one.step(FULL_THROTTLE, repeat=20)
    assert columns(world.states) == columns(quiet.states)
    noise = world.batch.obs - quiet.batch.obs
    inside = (quiet.batch.obs > 0.1) & (quiet.batch.obs < 0.9)  # not clipped
    inside[:, 10] |= np.abs(quiet.batch.obs[:, 10]) < 0.5
    assert noise[inside].std() == pytest.approx(0.02, rel=0.03)
    assert noise[inside].mean() == pytest.approx(0.0, abs=0.001)


# --- late actions ---


def commands(num_ticks, seed=5):
    """Actions that change on every tick."""
    return np.random.default_rng(seed).uniform([-1, 0, 0], [1, 1, 0.3], (num_ticks, 3)).astype(F)


def drive_rows(world, sent, delay_ticks, repeat=1):
    """Step one car through commands, with room for those under way."""
    row = np.zeros((1, 3 * (1 + delay_ticks)), F)
    found = []
    for command in sent:
        row[:, :3] = command
        assert world.engine.step(row, world.scenario, world.batch, autoreset=False, repeat=repeat) < 0
        found.append(world.states[0].copy())
    return np.array(found)


@pytest.fixture
def engine_world():
    from hotlap.sim.batch_cpu import CpuEngine

    def make(**domain):
        world = world_of(**domain)
        world.engine = CpuEngine()
        return world

    return make


@pytest.mark.parametrize("delay", [1, 3, 7])
def test_actions_that_arrive_late_are_those_of_some_ticks_before(engine_world, delay):
    sent = commands(40)
    late = drive_rows(engine_world(delay_low_ticks=delay, delay_high_ticks=delay), sent, delay)
    shifted = np.concatenate([np.zeros((delay, 3), F), sent[:-delay]])
    at_once = drive_rows(engine_world(), shifted, 0)
    assert columns(late) == columns(at_once)


def test_a_held_action_arrives_in_the_middle_of_a_step(engine_world):
    sent = commands(12)
    late = drive_rows(engine_world(delay_low_ticks=2, delay_high_ticks=2), sent, 2, repeat=4)
    shifted = np.concatenate([np.zeros((2, 3), F), np.repeat(sent, 4, axis=0)])[:48]
    at_once = drive_rows(engine_world(), shifted, 0)
    assert columns(late) == columns(at_once[3::4])


def test_the_step_with_late_actions_reports_what_the_ticks_together_do(engine_world):
    late, plain = engine_world(delay_low_ticks=0, delay_high_ticks=5), engine_world()
    late.rules["delay_high_ticks"] = 0  # there is room for late actions, and none is late
    sent = commands(20)
    for command in sent:
        row = np.zeros((1, 18), F)
        row[:, :3] = command
        late.engine.step(row, late.scenario, late.batch, autoreset=False, repeat=3)
        plain.engine.step(row[:, :3].copy(), plain.scenario, plain.batch, autoreset=False, repeat=3)
        for mine, other in zip(late.batch, plain.batch, strict=True):
            for column in mine.dtype.names or (None,):
                pair = (mine, other) if column is None else (mine[column], other[column])
                np.testing.assert_array_equal(*pair)


def test_the_delay_is_drawn_from_the_whole_range(engine_world):
    """A full lock on the first tick turns the wheel as late as the car's delay is."""
    seen = set()
    for seed in range(60):
        world = engine_world(delay_low_ticks=1, delay_high_ticks=4)
        world.states["seed"] = seed
        world.reset()
        steer = drive_rows(world, np.tile(np.array([1.0, 0.0, 0.0], F), (8, 1)), 4)["steer"]
        seen.add(int(np.argmax(steer > 0.0)))
    assert seen == {1, 2, 3, 4}


def test_the_defaults_change_nothing():
    rules = RacerSettings().rules()
    assert RacerSettings().domain.is_standard
    assert (rules["grip_low"][0], rules["grip_high"][0], rules["observation_noise"][0]) == (1.0, 1.0, 0.0)
    assert rules["delay_high_ticks"][0] == 0
    assert len(RacerSettings().domain.car_records(100)) == 1

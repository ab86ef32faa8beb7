"""Cars that differ from the standard car: factors of grip, mass and power, late actions, noise on observations.

What a car draws at the begin of an episode is a function of its seed and the episode, and so is never stored. Where
cars draw factors, `cars` holds the car that they are factors of, followed by one record for each car. Where actions
arrive late, a row of `actions` holds those under way after the car's action, as a ring of three numbers each.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import kernel, rare_kernel
from hotlap.sim.maths import clamp, mix
from hotlap.sim.rng import uniform, word
from hotlap.sim.road_view import (
    COLUMNS_PER_GUIDE,
    FIRST_GUIDE,
    NUM_POINTS_2,
    NUM_ROAD_VIEW_2,
    VIEW_BRAKE,
    VIEW_THROTTLE,
    count_points,
)
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS, OBS_STEER, OBS_YAW_RATE

F = np.float32
U = np.uint64
ZERO, ONE = F(0.0), F(1.0)

# Numbers of draws that no start of an episode or race uses.
GRIP_DRAW, MASS_DRAW, POWER_DRAW, DELAY_DRAW = range(1000, 1004)
FIRST_NOISE_DRAW, NOISE_DRAWS_PER_TICK = 1 << 20, 256

# Noise is the sum of four uniform numbers of 16 bits, scaled to a standard deviation of one: bell-shaped, at most 3.5.
_PART, _SHIFT_16, _SHIFT_32, _SHIFT_48 = U(0xFFFF), U(16), U(32), U(48)
_MIDDLE = F(2 * 0xFFFF)
_PER_DEVIATION = F(1.0 / sqrt(4 * (65536.0**2 - 1.0) / 12.0))


def own_records(car: NDArray[np.void], num_cars: int) -> NDArray[np.void]:
    """The records of `num_cars` cars that draw factors of `car` (1,)."""
    return np.repeat(car, 1 + num_cars)


def make_actions(num_cars: int, delay_ticks: int) -> NDArray[np.float32]:
    """Room for the actions of cars, and for those under way where they may arrive so late."""
    return np.zeros((num_cars, NUM_ACTIONS * (1 + delay_ticks)), F)


@kernel
def own_place(i, cars):
    """Where the record of car i is in `cars`: that of all cars, or its own."""
    return i + 1 if cars.shape[0] > 1 else 0


@rare_kernel
def equip(i, cars, rules, batch):
    """Draw the factors of car i for its episode, and write its record; the inertia grows with the mass."""
    me = batch.states[i]
    grip = mix(rules.grip_low, rules.grip_high, uniform(me.seed, me.episode, GRIP_DRAW))
    mass = mix(rules.mass_low, rules.mass_high, uniform(me.seed, me.episode, MASS_DRAW))
    power = mix(rules.power_low, rules.power_high, uniform(me.seed, me.episode, POWER_DRAW))
    cars[i + 1] = cars[0]
    car = cars[i + 1]
    car.friction *= grip
    car.grip_slope *= grip
    car.grip_curve_per_n *= grip / mass
    car.mass_kg *= mass
    car.yaw_inertia_kgm2 *= mass
    car.static_front_n *= mass
    car.static_rear_n *= mass
    car.shift_per_mps2 *= mass
    car.per_mass /= mass
    car.per_yaw_inertia /= mass
    car.drag_per_m /= mass
    car.power_w *= power
    car.per_drive_scale /= power


@kernel
def equip_if_drawn(i, cars, rules, batch):
    """Write the record of car i where cars have their own."""
    if cars.shape[0] > 1:
        equip(i, cars, rules[0], batch)


@kernel
def delay_of(me, rules):
    """How many ticks late the actions of this episode arrive."""
    num = rules.delay_high_ticks - rules.delay_low_ticks + 1
    return rules.delay_low_ticks + min(int(uniform(me.seed, me.episode, DELAY_DRAW) * F(num)), num - 1)


@kernel
def ring_place(tick, row):
    """Where the action of a tick begins in a row of actions; the ring is as long as the longest delay."""
    return NUM_ACTIONS * (1 + tick % (row.shape[0] // NUM_ACTIONS - 1))


@kernel
def arriving(me, rules, row):
    """Where in a row the action begins that arrives on this tick: that of some ticks before, zeros at first."""
    delay = delay_of(me, rules)
    if me.tick == 0:
        for column in range(NUM_ACTIONS, row.shape[0]):
            row[column] = ZERO
    ring_ticks = row.shape[0] // NUM_ACTIONS - 1
    return ring_place(me.tick + ring_ticks - delay, row) if delay > 0 else 0


@kernel
def send(tick, row):
    """Put the action of this tick under way, in the place of one that has arrived."""
    first = ring_place(tick, row)
    for axis in range(NUM_ACTIONS):
        row[first + axis] = row[axis]


@kernel
def deviate(seed, episode, draw):
    """Number `draw` of an episode with mean zero and standard deviation one."""
    z = word(seed, episode, draw)
    total = (z & _PART) + ((z >> _SHIFT_16) & _PART) + ((z >> _SHIFT_32) & _PART) + (z >> _SHIFT_48)
    return (F(total) - _MIDDLE) * _PER_DEVIATION


@kernel
def lowest(column, num_columns):
    """The least value of a column of the observation."""
    if column < NUM_OBSERVATIONS:
        return -ONE if column in (OBS_YAW_RATE, OBS_STEER) else ZERO
    view = column - NUM_OBSERVATIONS
    is_pedal = view in (VIEW_THROTTLE, VIEW_BRAKE)
    has_guide = count_points(num_columns - NUM_OBSERVATIONS) == NUM_POINTS_2
    is_guide = has_guide and FIRST_GUIDE <= view < NUM_ROAD_VIEW_2
    is_speed = is_guide and (view - FIRST_GUIDE) % COLUMNS_PER_GUIDE == 1
    return ZERO if is_pedal or is_speed else -ONE


@rare_kernel
def disturb(me, deviation, obs):
    """Add noise to every column, within its range; it is the same where a state is observed again."""
    num_columns = obs.shape[0]
    first = FIRST_NOISE_DRAW + NOISE_DRAWS_PER_TICK * me.tick
    for column in range(num_columns):
        noise = deviation * deviate(me.seed, me.episode, first + column)
        obs[column] = clamp(obs[column] + noise, lowest(column, num_columns), ONE)


@kernel
def disturb_if_noisy(me, rules, obs):
    """Add noise to an observation where the rules say so."""
    if rules[0].observation_noise > ZERO:
        disturb(me, rules[0].observation_noise, obs)

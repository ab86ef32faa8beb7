"""Sine, cosine, arc tangent, tanh and exp against float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.sim import maths
from hotlap.sim.maths import PI
from sim.kernels import F, arc_tangent_of, exp_minus_one_of, sin_cos_of, tanh_of, wrap_mix_clamp

SIN_COS_BOUND = 2e-7
ARC_TANGENT_BOUND_RAD = 4e-7
TANH_BOUND, EXP_BOUND = 4e-7, 8e-7
MAX_ANGLE_RAD = 404.0  # 64 turns: the finest Fourier feature of a lap
QUARTER_TURNS = np.arange(-256, 257) * (np.pi / 2)


def sines_and_cosines(x) -> tuple[np.ndarray, np.ndarray]:
    x = np.atleast_1d(np.asarray(x, F))
    sines, cosines = np.zeros_like(x), np.zeros_like(x)
    sin_cos_of(x, sines, cosines)
    return sines, cosines


def angles_of(y, x) -> np.ndarray:
    y, x = np.broadcast_arrays(np.atleast_1d(np.asarray(y, F)), np.asarray(x, F))
    angles = np.zeros(y.shape, F)
    arc_tangent_of(np.ascontiguousarray(y), np.ascontiguousarray(x), angles)
    return angles


def turns_apart(a, b) -> np.ndarray:
    """Angle between two directions: pi and -pi are the same one."""
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


def test_sine_and_cosine_keep_their_bound_over_dense_ranges_and_around_every_quarter_turn():
    near = (QUARTER_TURNS[:, None] + np.linspace(-1e-3, 1e-3, 101)).ravel().astype(F)
    near = np.concatenate([near, np.nextafter(near, F(1e9)), np.nextafter(near, F(-1e9))])
    dense = [
        np.linspace(-reach_rad, reach_rad, 400_001).astype(F) for reach_rad in (1e-3, 1.0, 7.0, 100.0, MAX_ANGLE_RAD)
    ]
    for x in (near[np.abs(near) <= MAX_ANGLE_RAD], *dense):
        sines, cosines = sines_and_cosines(x)
        assert np.abs(sines - np.sin(x.astype(np.float64))).max() < SIN_COS_BOUND
        assert np.abs(cosines - np.cos(x.astype(np.float64))).max() < SIN_COS_BOUND
    assert sines_and_cosines([0.0, -0.0]) == (pytest.approx([0.0, 0.0], abs=0.0), pytest.approx([1.0, 1.0], abs=0.0))


@given(st.floats(-100.0, 100.0, width=32))
def test_sine_is_odd_and_cosine_even_to_the_last_bit(x):
    sines, cosines = sines_and_cosines([x, -x])
    assert sines[0] == -sines[1]
    assert cosines[0] == cosines[1]


def values_of(wrapper, x) -> np.ndarray:
    x = np.atleast_1d(np.asarray(x, F))
    found = np.zeros_like(x)
    wrapper(x, found)
    return found


@pytest.mark.parametrize("reach", [1e-20, 1e-3, 1.0, 12.0, 1e30])
def test_tanh_and_exp_keep_their_relative_bounds(reach):
    x = np.linspace(-reach, reach, 200_002).astype(F)
    exact = np.tanh(x.astype(np.float64))
    assert (np.abs(values_of(tanh_of, x) - exact) <= TANH_BOUND * np.abs(exact)).all()
    x = x[x <= 0.0]
    exact = np.expm1(x.astype(np.float64))
    assert (np.abs(values_of(exp_minus_one_of, x) - exact) <= EXP_BOUND * np.abs(exact)).all()


def test_tanh_and_exp_have_the_bits_of_their_operations_in_numpy():
    """Fails if a compiler fuses a multiplication with an addition."""

    def tanh(x):
        u = x * x
        top = x + x * u * (maths._T0 + u * (maths._T1 + u * (maths._T2 + u * maths._T3)))
        return np.clip(top / (F(1.0) + u * (maths._U0 + u * (maths._U1 + u * (maths._U2 + u * maths._U3)))), -1, 1)

    x = np.linspace(-8.9, 8.9, 100_001).astype(F)
    np.testing.assert_array_equal(values_of(tanh_of, x), tanh(x))
    half = tanh(F(0.5) * x)
    np.testing.assert_array_equal(values_of(exp_minus_one_of, x), F(2.0) * half / (F(1.0) - half))


def test_tanh_is_odd_and_ends_at_one_and_nan_stays_nan():
    x = np.linspace(0.0, 20.0, 10_001).astype(F)
    np.testing.assert_array_equal(values_of(tanh_of, -x), -values_of(tanh_of, x))
    assert values_of(tanh_of, [np.inf, -np.inf, 1e38, 12.0]).tolist() == [1.0, -1.0, 1.0, 1.0]
    assert values_of(exp_minus_one_of, [-np.inf, -30.0, 0.0]).tolist() == [-1.0, -1.0, 0.0]
    assert np.isnan([values_of(tanh_of, np.nan), values_of(exp_minus_one_of, np.nan)]).all()


@pytest.mark.parametrize("length", [1e-30, 1e-3, 1.0, 1e4, 1e30])
def test_arc_tangent_keeps_its_bound_in_every_direction(length):
    direction = np.linspace(-np.pi, np.pi, 200_001)
    y, x = (length * np.sin(direction)).astype(F), (length * np.cos(direction)).astype(F)
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert turns_apart(angles_of(y, x).astype(np.float64), exact).max() < ARC_TANGENT_BOUND_RAD


def test_arc_tangent_of_the_main_directions():
    y, x = [0.0, 0.0, 1.0, 1.0, -1.0, 0.0, 1.0, -1.0], [0.0, 1.0, 1.0, 0.0, 0.0, -1.0, -1.0, -1.0]
    assert angles_of(y, x) == pytest.approx(np.array([0, 0, 1, 2, -2, 4, 3, -3]) * np.pi / 4, abs=1.2e-7 * 3)


@given(st.floats(-9.375, 9.375, width=32))
def test_a_wrapped_angle_points_the_same_way_from_within_half_a_turn(angle):
    wrapped, mixed, clamped = np.zeros(1, F), np.zeros(1, F), np.zeros(1, F)
    wrap_mix_clamp(np.array([angle], F), wrapped, mixed, clamped)
    assert abs(wrapped[0]) <= PI
    assert turns_apart(float(wrapped[0]), angle) < 1e-6


def test_angles_within_half_a_turn_are_left_alone():
    angles = np.linspace(-np.pi, np.pi, 1001).astype(F)
    wrapped, mixed, clamped = np.zeros_like(angles), np.zeros_like(angles), np.zeros_like(angles)
    wrap_mix_clamp(angles, wrapped, mixed, clamped)
    assert np.array_equal(wrapped, angles)
    assert np.array_equal(clamped, np.clip(angles, -1.0, 1.0))
    assert mixed == pytest.approx(2.0 + 0.25 * (angles - 2.0), abs=1e-6)

"""Two cars touch: known answers, and a reference in float64 that knows rigid bodies and nothing of the kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.sim.compilation import entry_point
from hotlap.sim.contact import (
    DISC_OFFSET_M,
    DISC_RADIUS_M,
    FRICTION,
    POSE_DTYPE,
    RESTITUTION,
    find_impulse,
    find_touch,
    gap_along,
    may_touch,
)
from hotlap.sim.vehicle import car_record
from sim.kernels import CAR, F

LENGTH_M = 900.0


@entry_point()
def meet(poses, cars, touch, impulse):
    """Fill what happens between the first two poses."""
    touch[0], touch[1], touch[2], touch[3], touch[4] = found = find_touch(poses[0], poses[1])
    impulse[0], impulse[1], impulse[2] = find_impulse(poses[0], poses[1], found, cars[0])


@entry_point()
def near(poses, length_m):
    """Whether the first two poses may touch."""
    return may_touch(poses[0], poses[1], length_m)


@entry_point()
def gap(from_m, to_m, length_m):
    """The gap along a road."""
    return gap_along(from_m, to_m, length_m)


def car_at(x=0.0, y=0.0, yaw=0.0, vx=0.0, vy=0.0, spin=0.0, touching=1) -> np.ndarray:
    """One pose."""
    pose = np.zeros(1, POSE_DTYPE)
    values = {"x_m": x, "y_m": y, "yaw_rad": yaw, "sin_yaw": np.sin(yaw), "cos_yaw": np.cos(yaw), "vx_mps": vx}
    for name, value in (values | {"vy_mps": vy, "yaw_radps": spin, "on_road": 1, "num_touching": touching}).items():
        pose[name] = value
    return pose


def find(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(depth, normal, point) and (impulse on b, closing speed), as float64."""
    touch, impulse = np.zeros(5, F), np.zeros(3, F)
    meet(np.concatenate([a, b]), car_record(), touch, impulse)
    return touch.astype(np.float64), impulse.astype(np.float64)


def cross(a: np.ndarray, b: np.ndarray) -> float:
    """The product of two vectors that is their area."""
    return float(a[0] * b[1] - a[1] * b[0])


class Body:
    """A rigid body in float64."""

    def __init__(self, pose: np.ndarray) -> None:
        self.at = np.array([pose["x_m"][0], pose["y_m"][0]], np.float64)
        self.velocity = np.array([pose["vx_mps"][0], pose["vy_mps"][0]], np.float64)
        self.spin = float(pose["yaw_radps"][0])

    def push(self, impulse: np.ndarray, point: np.ndarray) -> None:
        self.velocity = self.velocity + impulse / CAR.mass_kg
        self.spin += cross(point - self.at, impulse) / CAR.yaw_inertia_kgm2

    def velocity_at(self, point: np.ndarray) -> np.ndarray:
        arm = point - self.at
        return self.velocity + self.spin * np.array([-arm[1], arm[0]])

    @property
    def energy(self) -> float:
        return 0.5 * CAR.mass_kg * float(self.velocity @ self.velocity) + 0.5 * CAR.yaw_inertia_kgm2 * self.spin**2

    @property
    def turning(self) -> float:
        """Angular momentum about the origin."""
        return CAR.mass_kg * cross(self.at, self.velocity) + CAR.yaw_inertia_kgm2 * self.spin


def after(a: np.ndarray, b: np.ndarray) -> tuple[Body, Body, np.ndarray, np.ndarray]:
    """Both bodies after the impulse, with the touch and the impulse."""
    touch, impulse = find(a, b)
    first, second = Body(a), Body(b)
    first.push(-impulse[:2], touch[3:])
    second.push(impulse[:2], touch[3:])
    return first, second, touch, impulse


# --- where ---


def deepest_overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Depth of the deepest pair of discs, by the geometry alone."""
    along = np.array([-1.3, 0.0, 1.3])
    first, second = (
        np.stack([p["x_m"] + along * p["cos_yaw"], p["y_m"] + along * p["sin_yaw"]], axis=1).astype(np.float64)
        for p in (a, b)
    )
    return 2 * 0.95 - float(np.linalg.norm(first[:, None] - second[None], axis=2).min())


def test_the_car_is_as_long_and_wide_as_it_is_drawn():
    assert pytest.approx(CAR.length_m, abs=0.11) == 2 * (DISC_OFFSET_M + DISC_RADIUS_M)
    assert pytest.approx(CAR.width_m) == 2 * DISC_RADIUS_M


def test_nose_to_tail_touches_at_the_bumpers():
    touch, _ = find(car_at(0.0), car_at(4.4))
    assert touch[0] == pytest.approx(0.1, abs=1e-6)
    assert touch[1:] == pytest.approx([1.0, 0.0, 2.2, 0.0], abs=1e-6)
    assert find(car_at(0.0), car_at(4.51))[0][0] == 0.0


def test_side_by_side_touches_along_the_whole_side():
    touch, _ = find(car_at(0.0, 0.0), car_at(0.0, 1.8))
    assert touch == pytest.approx([0.1, 0.0, 1.0, 0.0, 0.9], abs=1e-6)


def test_a_car_exactly_on_another_is_pushed_along_the_first_ones_heading():
    touch, _ = find(car_at(1.0, 2.0, 0.5), car_at(1.0, 2.0, 0.5))
    assert touch[0] == pytest.approx(1.9)
    assert touch[1:3] == pytest.approx([np.cos(0.5), np.sin(0.5)])


poses = st.builds(
    car_at,
    x=st.floats(-2.0, 2.0),
    y=st.floats(-2.0, 2.0),
    yaw=st.floats(-3.1, 3.1),
    vx=st.floats(-40.0, 40.0),
    vy=st.floats(-40.0, 40.0),
    spin=st.floats(-4.0, 4.0),
    touching=st.integers(1, 5),
)


@settings(max_examples=300, deadline=None)
@given(poses, poses)
def test_cars_touch_where_their_discs_do(a, b):
    depth_m = deepest_overlap(a, b)
    touch, _ = find(a, b)
    assert touch[0] == pytest.approx(max(depth_m, 0.0), abs=2e-6)
    if depth_m > 0.0:
        assert np.hypot(touch[1], touch[2]) == pytest.approx(1.0, abs=1e-6)


def test_cars_on_two_levels_of_a_crossing_do_not_touch():
    pair = np.concatenate([car_at(), car_at(1.0)])
    pair["arc_m"] = 10.0, 300.0
    assert not near(pair, F(LENGTH_M))
    pair["arc_m"] = 2.0, LENGTH_M - 2.0  # either side of the line
    assert near(pair, F(LENGTH_M))
    pair["on_road"] = 1, 0
    assert not near(pair, F(LENGTH_M))


@pytest.mark.parametrize(("a", "b", "expected"), [(10, 30, 20), (30, 10, -20), (890, 10, 20), (10, 890, -20)])
def test_the_gap_is_the_shorter_way_round(a, b, expected):
    assert gap(F(a), F(b), F(LENGTH_M)) == expected


# --- how hard: answers known beforehand ---


def test_head_on_cars_bounce_back_with_a_tenth_of_their_speed():
    first, second, _, impulse = after(car_at(0.0, vx=10.0), car_at(4.4, yaw=np.pi, vx=-10.0))
    assert first.velocity == pytest.approx([-1.0, 0.0], abs=1e-5)
    assert second.velocity == pytest.approx([1.0, 0.0], abs=1e-5)
    assert impulse[2] == pytest.approx(20.0)


def test_a_rear_end_hit_shares_the_speed():
    first, second, _, _ = after(car_at(0.0, vx=20.0), car_at(4.4, vx=10.0))
    assert first.velocity[0] == pytest.approx(14.5, abs=1e-5)
    assert second.velocity[0] == pytest.approx(15.5, abs=1e-5)


def test_a_side_swipe_rubs_with_the_friction_of_the_push():
    first, second, _, impulse = after(car_at(0.0, 0.0, vx=30.0, vy=2.0), car_at(0.0, 1.8, vx=25.0))
    push = 1.1 * 2.0 * CAR.mass_kg / 2.0
    assert impulse[1] == pytest.approx(push, rel=1e-5)
    assert impulse[0] == pytest.approx(0.3 * push, rel=1e-5)  # the faster car drags the slower one along
    assert first.spin == pytest.approx(second.spin)  # both turn the same way: the friction acts between their sides
    assert first.velocity[0] < 30.0
    assert second.velocity[0] > 25.0


def test_a_hit_at_the_rear_corner_turns_the_car_in_front():
    """Hit on the right of its round tail, which is pushed to the left: the nose turns right."""
    _, second, _, _ = after(car_at(0.0, -1.2, vx=20.0), car_at(4.0, 0.0, vx=15.0))
    assert second.spin < -0.1
    assert second.velocity[1] > 0.1


def test_cars_that_part_do_not_feel_each_other():
    _, impulse = find(car_at(0.0, vx=5.0), car_at(4.4, vx=6.0))
    assert (impulse == 0.0).all()


# --- how hard: laws ---


@settings(max_examples=500, deadline=None)
@given(poses, poses)
def test_impulses_obey_the_laws_of_mechanics(a, b):
    """Momentum, angular momentum, energy, restitution and the friction cone, of cars that touch only each other."""
    a["num_touching"] = b["num_touching"] = 1
    before = Body(a), Body(b)
    first, second, touch, impulse = after(a, b)
    if touch[0] == 0.0 or impulse[2] == 0.0:
        assert (impulse[:2] == 0.0).all() or touch[0] == 0.0
        return
    momentum = sum(body.velocity for body in before)
    assert first.velocity + second.velocity == pytest.approx(momentum, abs=1e-9)
    turning = sum(body.turning for body in before)
    assert first.turning + second.turning == pytest.approx(turning, rel=1e-9, abs=1e-6)
    energy = sum(body.energy for body in before)
    assert first.energy + second.energy <= energy * (1.0 + 1e-6)
    normal, across = touch[1:3], np.array([-touch[2], touch[1]])
    push, rub = impulse[:2] @ normal, impulse[:2] @ across
    assert push > 0.0
    assert abs(rub) <= float(FRICTION) * push * (1.0 + 1e-4) + 1e-2
    # The normal impulse alone gives the restitution; friction then stops the sliding unless the cone limits it.
    third, fourth = Body(a), Body(b)
    third.push(-push * normal, touch[3:])
    fourth.push(push * normal, touch[3:])
    parting = (fourth.velocity_at(touch[3:]) - third.velocity_at(touch[3:])) @ normal
    assert parting == pytest.approx(float(RESTITUTION) * impulse[2], abs=1e-3)
    sliding = (second.velocity_at(touch[3:]) - first.velocity_at(touch[3:])) @ across
    assert abs(sliding) < 1e-3 or abs(rub) == pytest.approx(float(FRICTION) * push, rel=1e-3)


@settings(max_examples=200, deadline=None)
@given(poses, st.lists(poses, min_size=2, max_size=4))
def test_a_car_among_several_never_gains_energy(middle, others):
    """Every car of the crowd touches the middle one; the sum of impulses from one snapshot loses energy."""
    touching = [other for other in others if find(middle, other)[0][0] > 0.0]
    middle["num_touching"] = len(touching)
    for other in touching:
        other["num_touching"] = 1
    centre, around = Body(middle), [Body(other) for other in touching]
    energy = centre.energy + sum(body.energy for body in around)
    for other, body in zip(touching, around, strict=True):
        touch, impulse = find(middle, other)
        body.push(impulse[:2], touch[3:])
        centre.push(-impulse[:2], touch[3:])
    assert centre.energy + sum(body.energy for body in around) <= energy * (1.0 + 1e-6) + 1e-6


@settings(max_examples=200, deadline=None)
@given(poses, poses)
def test_a_mirrored_pair_has_the_mirrored_impulse_to_the_bit(a, b):
    touch, impulse = find(a, b)
    for pose in (a, b):
        for name in ("y_m", "yaw_rad", "sin_yaw", "vy_mps", "yaw_radps"):
            pose[name] = -pose[name]
    mirrored_touch, mirrored_impulse = find(a, b)
    assert (mirrored_touch == touch * [1, 1, -1, 1, -1]).all()
    assert (mirrored_impulse == impulse * [1, -1, 1]).all()

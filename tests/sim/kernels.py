"""Shared by the simulator's tests: kernels wrapped so that Python can call them over arrays.

The wrappers are entry points like the package's own, so they are compiled once and cached on disk.
"""

import numpy as np

from hotlap.sim.compilation import entry_point
from hotlap.sim.laps import crossing_fraction
from hotlap.sim.maths import arc_tangent, clamp, exp_minus_one, hyperbolic_tangent, mix, sin_cos, wrap_angle
from hotlap.sim.rays import cast
from hotlap.sim.rewards import RULES_DTYPE, reward_terms
from hotlap.sim.ribbon import Ribbons, arc_length, locate, place
from hotlap.sim.rng import uniform
from hotlap.sim.tyres import tyre_force
from hotlap.sim.vehicle import CarParameters

F = np.float32
CAR = CarParameters()
GRAVITY_MPS2 = 9.81


@entry_point()
def sin_cos_of(x, sines, cosines):
    """Fill `sines` and `cosines` for every angle of `x`."""
    for i in range(x.shape[0]):
        sines[i], cosines[i] = sin_cos(x[i])


@entry_point()
def tanh_of(x, found):
    """Fill `found` with the hyperbolic tangent of every `x`."""
    for i in range(x.shape[0]):
        found[i] = hyperbolic_tangent(x[i])


@entry_point()
def exp_minus_one_of(x, found):
    """Fill `found` with exp(x) - 1 of every `x`."""
    for i in range(x.shape[0]):
        found[i] = exp_minus_one(x[i])


@entry_point()
def arc_tangent_of(y, x, angles):
    """Fill `angles` for every vector."""
    for i in range(x.shape[0]):
        angles[i] = arc_tangent(y[i], x[i])


@entry_point()
def wrap_mix_clamp(angles, wrapped, mixed, clamped):
    """Fill the three outputs from `angles`; mixed goes from 2 to the angle by a quarter, clamped is in [-1, 1]."""
    for i in range(angles.shape[0]):
        wrapped[i] = wrap_angle(angles[i])
        mixed[i] = mix(np.float32(2.0), angles[i], np.float32(0.25))
        clamped[i] = clamp(angles[i], np.float32(-1.0), np.float32(1.0))


@entry_point()
def tyre_forces(demand_n, slip, grip_n, stiffness, along_n, across_n):
    """Fill both forces for every row."""
    for i in range(slip.shape[0]):
        along_n[i], across_n[i] = tyre_force(demand_n[i], slip[i], grip_n[i], stiffness[i])


@entry_point()
def locate_points(ribbons, track, from_node, x, y, node, fraction, left_m, arc_m):
    """Fill where every point is, each searched from its own node."""
    tracks, nodes, _ = ribbons
    for i in range(x.shape[0]):
        node[i], fraction[i], left_m[i] = locate(tracks[track], nodes, from_node[i], x[i], y[i])
        arc_m[i] = arc_length(tracks[track], node[i], fraction[i])


@entry_point()
def place_points(ribbons, track, node, fraction, left_m, x, y):
    """Fill the world positions of points on the ribbon."""
    tracks, nodes, _ = ribbons
    for i in range(node.shape[0]):
        x[i], y[i] = place(tracks[track], nodes, node[i], fraction[i], left_m[i])


@entry_point()
def cast_rays(ribbons, track, node, x, y, dx, dy, distance_m):
    """Fill the distance to the wall of every ray."""
    tracks, _, portals = ribbons
    for i in range(node.shape[0]):
        distance_m[i] = cast(tracks[track], portals, node[i], x[i], y[i], dx[i], dy[i])


@entry_point()
def crossing_fractions(gate_m, from_m, to_m, moved_m, length_m, fractions):
    """Fill the crossing fraction of every row."""
    for i in range(gate_m.shape[0]):
        fractions[i] = crossing_fraction(gate_m[i], from_m[i], to_m[i], moved_m[i], length_m)


@entry_point()
def terms_of(rules, moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge, terms):
    """Fill the six reward terms of one tick."""
    out = reward_terms(rules[0], moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge)
    terms[0], terms[1], terms[2], terms[3], terms[4], terms[5] = out


@entry_point()
def uniforms(seeds, episodes, draws, values):
    """Fill the draw of every row."""
    for i in range(seeds.shape[0]):
        values[i] = uniform(seeds[i], episodes[i], draws[i])


def place_on(ribbons: Ribbons, track: int, node: int, fraction: float, left_m: float) -> tuple[np.float32, np.float32]:
    """World position of one point on a ribbon."""
    x, y = np.zeros(1, F), np.zeros(1, F)
    place_points(ribbons, track, np.array([node]), np.array([fraction], F), np.array([left_m], F), x, y)
    return x[0], y[0]


def locate_on(
    ribbons: Ribbons, track: int, from_node: np.ndarray, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Node, fraction, metres left and arc length of every point."""
    size = len(from_node)
    node, fraction, left_m, arc_m = np.zeros(size, np.int64), np.zeros(size, F), np.zeros(size, F), np.zeros(size, F)
    locate_points(ribbons, track, from_node.astype(np.int64), x.astype(F), y.astype(F), node, fraction, left_m, arc_m)
    return node, fraction, left_m, arc_m


def rays_on(
    ribbons: Ribbons, track: int, node: np.ndarray, x: np.ndarray, y: np.ndarray, dx: np.ndarray, dy: np.ndarray
) -> np.ndarray:
    """Distance to the wall of every ray."""
    distance_m = np.zeros(len(node), F)
    cast_rays(ribbons, track, node.astype(np.int64), x.astype(F), y.astype(F), dx.astype(F), dy.astype(F), distance_m)
    return distance_m


def warm_up(ribbons: Ribbons) -> None:
    """Compile every wrapper with the types that the tests use, before tests are timed."""
    floats, ints = np.zeros(1, F), np.zeros(1, np.int64)
    sin_cos_of(floats, floats.copy(), floats.copy())
    arc_tangent_of(floats, floats, floats.copy())
    tanh_of(floats, floats.copy())
    exp_minus_one_of(floats, floats.copy())
    wrap_mix_clamp(floats, floats.copy(), floats.copy(), floats.copy())
    tyre_forces(floats, floats, np.ones(1, F), floats, floats.copy(), floats.copy())
    crossing_fractions(floats, floats, floats, floats, F(1.0), floats.copy())
    uniforms(np.zeros(1, np.uint64), ints, ints, floats.copy())
    terms_of(np.zeros(1, RULES_DTYPE), F(0.0), F(0.0), False, False, False, np.zeros(6, F))
    place_on(ribbons, 0, 0, 0.0, 0.0)
    locate_on(ribbons, 0, ints, floats, floats)
    rays_on(ribbons, 0, ints, floats, floats, np.ones(1), np.zeros(1))

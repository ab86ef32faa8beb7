"""Meshes: cut a track into intervals, sample the road on them, and make the solver's initial guesses."""

import numpy as np

from hotlap.optimal.collocation import Floats, Guess, RoadProfile, radau_points
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import AIR_DENSITY_KGPM3, CarParameters

# Fraction of the grip that the first guess uses on the centreline: feasible, but close to the optimum's speed.
GUESS_GRIP_FRACTION = 0.75
UNDERSTEER_S2PM = 1.2e-3  # extra steering per squared speed, about right for this car


def along_track(values: Floats, nodes: RibbonNodes, arc_m: Floats) -> Floats:
    """Node values at arc lengths, linear between nodes and periodic over the lap."""
    place = np.asarray(arc_m) / nodes.step_m
    node = np.floor(place).astype(np.int64)
    fraction = place - node
    return values[node % nodes.num_nodes] * (1.0 - fraction) + values[(node + 1) % nodes.num_nodes] * fraction


def estimate_speed(nodes: RibbonNodes, car: CarParameters) -> Floats:
    """Estimated speed (m/s) at every node, from a point-mass speed profile."""
    return speed_profile(nodes.curvature_radpm, nodes.step_m, car, GUESS_GRIP_FRACTION)


def cut_lap(nodes: RibbonNodes, speed_mps: Floats, interval_s: float, from_m: float = 0.0) -> Floats:
    """Interval edges (m) from `from_m` to the end of the lap, each about `interval_s` of driving time apart."""
    edges_m: Floats = np.arange(nodes.num_nodes + 1, dtype=np.float64) * nodes.step_m
    clock_s = np.concatenate([[0.0], np.cumsum(nodes.step_m / speed_mps)])
    return cut_evenly(edges_m, clock_s, interval_s, float(np.interp(from_m, edges_m, clock_s)))


def cut_evenly(arc_m: Floats, clock_s: Floats, interval_s: float, from_s: float) -> Floats:
    """Edges (m) of at least eight intervals of about `interval_s` each, from time `from_s` to the end of `clock_s`."""
    count = max(8, int(np.ceil((clock_s[-1] - from_s) / interval_s)))
    cuts: Floats = np.interp(np.linspace(from_s, clock_s[-1], count + 1), clock_s, arc_m)
    return cuts


def collocation_points_m(edges_m: Floats) -> Floats:
    """Arc lengths of the collocation points, (num_intervals, 3)."""
    tau, _, _ = radau_points()
    points: Floats = edges_m[:-1, None] + np.diff(edges_m)[:, None] * tau
    return points


def make_road_profile(nodes: RibbonNodes, edges_m: Floats, car: CarParameters, margin_m: float = 0.0) -> RoadProfile:
    """Curvature and room for the car's centre at the collocation points, less `margin_m` on both sides.

    A clean lap stays on the road and, where a wall stands closer to the edge than the car's radius, off the wall.
    """
    at_m = collocation_points_m(edges_m)
    sides = ((nodes.road_left_m, nodes.wall_left_m), (nodes.road_right_m, nodes.wall_right_m))
    left, right = (np.minimum(edge_m, wall_m - car.radius_m) for edge_m, wall_m in sides)
    return RoadProfile(
        edges_m[:-1],
        np.diff(edges_m),
        along_track(nodes.curvature_radpm, nodes, at_m),
        np.maximum(along_track(left, nodes, at_m) - margin_m, 0.1),
        np.maximum(along_track(right, nodes, at_m) - margin_m, 0.1),
    )


def first_guess(nodes: RibbonNodes, edges_m: Floats, car: CarParameters, speed_mps: Floats) -> Guess:
    """The centreline at the estimated speed, with steering and pedals of steady driving."""
    at_m = collocation_points_m(edges_m)
    v = along_track(speed_mps, nodes, at_m)
    curvature = along_track(nodes.curvature_radpm, nodes, at_m)
    gain = np.gradient(0.5 * speed_mps * speed_mps, nodes.step_m)
    acceleration = along_track(gain, nodes, at_m)
    drag = 0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2 * v * v / car.mass_kg + car.rolling_mps2
    force_n = car.drive_force_n / np.sqrt(1.0 + (v * car.drive_force_n / car.power_w) ** 2)
    limit = car.full_lock_rad(v * v)

    states = np.zeros((*at_m.shape, NUM_STATES))
    states[..., State.FORWARD] = v
    states[..., State.YAW] = v * curvature
    states[..., State.STEER] = np.clip(-curvature * (car.wheelbase_m + UNDERSTEER_S2PM * v * v) / limit, -0.9, 0.9)
    states[..., State.THROTTLE] = np.clip((acceleration + drag) * car.mass_kg / force_n, 0.02, 0.95)
    states[..., State.BRAKE] = np.clip(-(acceleration + drag) * car.mass_kg / car.brake_force_n, 0.02, 0.9)
    states[..., State.SHIFT] = car.mass_kg * acceleration * car.height_m / car.wheelbase_m
    controls = np.zeros((len(at_m), NUM_CONTROLS))
    controls[:, Control.THROTTLE] = states[:, 1, State.THROTTLE]
    controls[:, Control.BRAKE] = states[:, 1, State.BRAKE]
    return Guess(states, controls)


def resample_guess(arc_m: Floats, states: Floats, controls: Floats, edges_m: Floats) -> Guess:
    """The guess on another mesh of the same lap from states (num_points, 9) and controls (num_points, 3)."""
    at_m = collocation_points_m(edges_m)
    moved = np.stack([np.interp(at_m, arc_m, states[:, k]) for k in range(NUM_STATES)], axis=-1)
    middle_m = 0.5 * (edges_m[:-1] + edges_m[1:])
    point = np.minimum(np.searchsorted(arc_m, middle_m), len(arc_m) - 1)
    return Guess(moved, controls[point])

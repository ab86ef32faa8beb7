"""Centrelines of known shapes."""

import math

import numpy as np

from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.centreline import Centreline


def line(x, y, right=5.0, left=5.0) -> Centreline:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return Centreline(x, y, np.full_like(x, right), np.full_like(x, left))


def circle(radius_m=100.0, num_points=120, **widths) -> Centreline:
    angle = np.arange(num_points) * 2.0 * math.pi / num_points
    return line(radius_m * np.cos(angle), radius_m * np.sin(angle), **widths)


def stadium(radius_m: float, straight_m=300.0, spacing_m=2.0, **widths) -> Centreline:
    """Two straights joined by half circles, anticlockwise, starting in the middle of the lower straight."""
    along = np.arange(-straight_m / 2, straight_m / 2, spacing_m)
    turn = np.arange(0.0, math.pi, spacing_m / radius_m)
    x = [along, straight_m / 2 + radius_m * np.sin(turn), -along, -straight_m / 2 - radius_m * np.sin(turn)]
    y = [0 * along, radius_m - radius_m * np.cos(turn), 2 * radius_m + 0 * along, radius_m + radius_m * np.cos(turn)]
    middle = along.size // 2
    return line(np.roll(np.concatenate(x), -middle), np.roll(np.concatenate(y), -middle), **widths)


def eight(size_m=400.0, num_points=300) -> Centreline:
    angle = np.arange(num_points) * 2.0 * math.pi / num_points
    return line(size_m * np.sin(angle), size_m * np.sin(angle) * np.cos(angle))


def wavy(radius_m: float, waves: int, depth: float, num_points=200) -> Centreline:
    angle = np.arange(num_points) * 2.0 * math.pi / num_points
    radius = radius_m * (1.0 + depth * np.sin(waves * angle))
    return line(radius * np.cos(angle), radius * np.sin(angle))


def peanut(size_m: float, half_waist_m: float, **widths) -> Centreline:
    """Two lobes joined by a waist 2 * half_waist_m across, where the two legs come near and bend away again."""
    angle = np.arange(300) * 2.0 * math.pi / 300
    level = (1.0 + (half_waist_m / size_m) ** 2) ** 2
    radius = size_m * np.sqrt(np.cos(2 * angle) + np.sqrt(level - np.sin(2 * angle) ** 2))
    return line(radius * np.cos(angle), radius * np.sin(angle), **widths)


def hairpins(tip_radius_m=5.7, half_length_m=200.0, spacing_m=5.0, **widths) -> Centreline:
    """A slim ellipse: two hairpins that are tightest at their tips, between legs that move apart; driven to the left.

    With the defaults it has the tightest bend of Spa's La Source as surveyed: 5.7 m.
    """
    angle = np.linspace(0.0, 2.0 * math.pi, 20_001) + 0.5 * math.pi
    loop = half_length_m * np.cos(angle) + 1j * math.sqrt(tip_radius_m * half_length_m) * np.sin(angle)
    along = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(loop)))))
    at = np.linspace(0.0, along[-1], round(along[-1] / spacing_m), endpoint=False)
    return line(np.interp(at, along, loop.real), np.interp(at, along, loop.imag), **widths)


def rounded_square(side_m=160.0, radius_m=30.0) -> Centreline:
    """Four straights and four left-hand quarter circles, starting at the middle of the lower straight."""
    turn = np.arange(0.0, math.pi / 2, 3.0 / radius_m)
    along = np.arange(-side_m / 2, side_m / 2, 4.0)
    x = np.concatenate((along, side_m / 2 + radius_m * np.sin(turn)))
    y = np.concatenate((0 * along, radius_m * (1 - np.cos(turn)))) - side_m / 2 - radius_m
    points = np.concatenate([(x + 1j * y) * 1j**quarter for quarter in range(4)])
    points = np.roll(points, -(along.size // 2))
    width = np.full(points.size, 5.0)
    return Centreline(points.real.copy(), points.imag.copy(), width, width.copy())


def advance(nodes: RibbonNodes, points: np.ndarray) -> np.ndarray:
    """How far a point of a line beside the road is from the one before, along the road."""
    hop = np.roll(points, -1, axis=0) - points
    return hop[:, 0] * nodes.tangent_x + hop[:, 1] * nodes.tangent_y

"""A periodic cubic spline through points, with positions by arc length.

Hand-written instead of SciPy's: its nodes are part of the physics version, so they must be bit-identical everywhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import TrackError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_SMALLEST_CHORD_M = 1e-3  # the resolution of a file

# Five-point Gauss-Legendre quadrature on [0, 1], exact to degree nine.
_GAUSS = (
    (0.04691007703066800, 0.11846344252809454),
    (0.23076534494715845, 0.23931433524968324),
    (0.5, 0.28444444444444444),
    (0.76923465505284155, 0.23931433524968324),
    (0.95308992296933200, 0.11846344252809454),
)


@dataclass(frozen=True)
class Spline:
    """A closed curve of cubic pieces; piece i runs from point i over u in [0, chord[i]]."""

    chord: FloatArray  # (num_points,)
    x: FloatArray  # (4, num_points), coefficients of 1, u, u², u³
    y: FloatArray
    start_m: FloatArray  # (num_points + 1,), arc length where each piece starts, then the lap's

    @classmethod
    def through(cls, x: FloatArray, y: FloatArray) -> "Spline":
        """The periodic spline parametrised by chord length; TrackError where points coincide."""
        dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
        chord = np.sqrt(dx * dx + dy * dy)
        if not chord.min() >= _SMALLEST_CHORD_M:
            point = int(np.argmin(chord))
            raise TrackError(
                f"points {point + 1} and {(point + 1) % x.size + 1} of {x.size} coincide; each may appear once. "
                "Delete one of them."
            )
        bend_x, bend_y = _second_derivatives(chord, dx / chord, dy / chord)
        pieces_x, pieces_y = _pieces(x, dx, chord, bend_x), _pieces(y, dy, chord, bend_y)
        curve = cls(chord, pieces_x, pieces_y, np.zeros(x.size + 1))
        lengths = curve.arc(np.arange(x.size), chord)
        return cls(chord, pieces_x, pieces_y, np.concatenate((np.zeros(1), np.cumsum(lengths))))

    @property
    def length(self) -> float:
        """Arc length (m) of the whole curve."""
        return float(self.start_m[-1])

    def position(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """X and y at u of piece i."""

        def at(c: FloatArray) -> FloatArray:
            return np.asarray(c[0, i] + u * (c[1, i] + u * (c[2, i] + u * c[3, i])))

        return at(self.x), at(self.y)

    def velocity(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First derivatives of x and y by u."""

        def at(c: FloatArray) -> FloatArray:
            return np.asarray(c[1, i] + u * (2.0 * c[2, i] + u * (3.0 * c[3, i])))

        return at(self.x), at(self.y)

    def acceleration(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Second derivatives of x and y by u."""

        def at(c: FloatArray) -> FloatArray:
            return np.asarray(2.0 * c[2, i] + u * (6.0 * c[3, i]))

        return at(self.x), at(self.y)

    def speed(self, i: IntArray, u: FloatArray) -> FloatArray:
        """Derivative of arc length by u, nearly 1."""
        vx, vy = self.velocity(i, u)
        return np.asarray(np.sqrt(vx * vx + vy * vy))

    def arc(self, i: IntArray, u: FloatArray) -> FloatArray:
        """Arc length from the start of piece i to u."""
        total = np.zeros_like(u)
        for node, weight in _GAUSS:
            total = total + weight * self.speed(i, node * u)
        return total * u

    def locate(self, s: FloatArray) -> tuple[IntArray, FloatArray]:
        """Piece and parameter at arc lengths s in [0, length)."""
        last = self.chord.size - 1
        i = np.minimum(np.searchsorted(self.start_m, s, side="right") - 1, last)
        rest = s - self.start_m[i]
        u = rest / (self.start_m[i + 1] - self.start_m[i]) * self.chord[i]
        for _ in range(4):
            u = u - (self.arc(i, u) - rest) / np.maximum(self.speed(i, u), 1e-6)
            u = np.minimum(np.maximum(u, 0.0), self.chord[i])
        return i, u

    def uniform(self, spacing_m: float, min_nodes: int) -> tuple[float, IntArray, FloatArray]:
        """Step, pieces and parameters of nodes a uniform step apart, the first on point 0."""
        num_nodes = max(round(self.length / spacing_m), min_nodes)
        step = self.length / num_nodes
        i, u = self.locate(np.arange(num_nodes, dtype=np.float64) * step)
        return step, i, u

    def between(self, values: FloatArray, i: IntArray, u: FloatArray) -> FloatArray:
        """The points' `values` interpolated to u of piece i, linearly in arc length."""
        fraction = self.arc(i, u) / (self.start_m[i + 1] - self.start_m[i])
        return np.asarray(values[i] + fraction * (np.roll(values, -1)[i] - values[i]))


def _pieces(value: FloatArray, rise: FloatArray, chord: FloatArray, bend: FloatArray) -> FloatArray:
    """Cubic coefficients (4, num_points) from values, differences and second derivatives at the points."""
    bend_next = np.roll(bend, -1)
    slope = rise / chord - chord * (2.0 * bend + bend_next) / 6.0
    return np.stack((value, slope, 0.5 * bend, (bend_next - bend) / (6.0 * chord)))


def _second_derivatives(chord: FloatArray, slope_x: FloatArray, slope_y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Second derivatives at the points: a cyclic tridiagonal system, solved with the Sherman-Morrison formula."""
    before = np.roll(chord, 1)
    corner = float(before[0])
    diagonal = 2.0 * (before + chord)
    gamma = -float(diagonal[0])
    diagonal[0] = diagonal[0] - gamma
    diagonal[-1] = diagonal[-1] - corner * corner / gamma
    unit = np.zeros_like(chord)
    unit[0], unit[-1] = gamma, corner
    sides = [6.0 * (slope_x - np.roll(slope_x, 1)), 6.0 * (slope_y - np.roll(slope_y, 1)), unit]
    x, y, z = _solve_tridiagonal(before.tolist(), diagonal.tolist(), chord.tolist(), sides)
    scale = 1.0 + z[0] + corner * z[-1] / gamma
    return (
        x - (x[0] + corner * x[-1] / gamma) / scale * z,
        y - (y[0] + corner * y[-1] / gamma) / scale * z,
    )


def _solve_tridiagonal(
    lower: list[float], diagonal: list[float], upper: list[float], sides: list[FloatArray]
) -> list[FloatArray]:
    """Thomas algorithm for several right-hand sides; lower[0] and upper[-1] are not used."""
    size = len(diagonal)
    ratios, pivots = [0.0] * size, [diagonal[0]] * size
    for k in range(1, size):
        ratios[k] = lower[k] / pivots[k - 1]
        pivots[k] = diagonal[k] - ratios[k] * upper[k - 1]
    solutions = []
    for side in sides:
        value = side.tolist()
        for k in range(1, size):
            value[k] = value[k] - ratios[k] * value[k - 1]
        value[-1] = value[-1] / pivots[-1]
        for k in range(size - 2, -1, -1):
            value[k] = (value[k] - upper[k] * value[k + 1]) / pivots[k]
        solutions.append(np.array(value))
    return solutions

"""Rounds a polygon's corners into straights, clothoids and arcs, bit-identical on every machine.

A corner's curvature rises linearly, is constant, and falls linearly, as on a real road, so curvature is continuous
along the lap. Hand-written, because only add, multiply, divide and square root in a fixed order give the same bits
everywhere; the platform's math library does not.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import TrackError

FloatArray = NDArray[np.float64]

PI = 3.141592653589793
_RAMP = 0.25  # fraction of a corner's length over which curvature rises, and again falls
_NUM_STEPS = 24  # Simpson steps per corner: under a micrometre of error
_MIN_STRAIGHT_M = 1.0
_TAYLOR_TERMS = 14  # at pi the first term left out is 1e-17
_ATAN_TERMS = 14


class PolygonCorner(NamedTuple):
    """A polygon vertex and its wanted radius, which is reduced where the neighbours leave too little room."""

    x_m: float
    y_m: float
    radius_m: float


@dataclass(frozen=True)
class ClothoidPath:
    """A closed curve as knots with tangents: exact on straights, cubic Hermite between a corner's knots."""

    s_m: FloatArray  # (num_knots,), increasing; the last knot repeats the first
    x_m: FloatArray
    y_m: FloatArray
    tangent_x: FloatArray
    tangent_y: FloatArray
    radii_m: FloatArray  # (num_corners,), tightest radius of each corner
    straight_start_m: FloatArray  # (num_corners,), where the straight after each corner begins
    straight_length_m: FloatArray

    @property
    def length_m(self) -> float:
        """Length of one lap."""
        return float(self.s_m[-1])

    def point_on_longest_straight(self, fraction: float) -> float:
        """Arc length (m) of the point at this fraction of the longest straight."""
        longest = int(np.argmax(self.straight_length_m))
        return float(self.straight_start_m[longest] + fraction * self.straight_length_m[longest])

    def sample(self, start_m: float, spacing_m: float) -> tuple[FloatArray, FloatArray]:
        """Evenly spaced points from `start_m`, about `spacing_m` apart, the first not repeated."""
        num_points = int(self.length_m / spacing_m + 0.5)
        s = start_m + np.arange(num_points) * (self.length_m / num_points)
        s = np.where(s >= self.length_m, s - self.length_m, s)
        knot = np.clip(np.searchsorted(self.s_m, s, side="right") - 1, 0, len(self.s_m) - 2)
        step = self.s_m[knot + 1] - self.s_m[knot]
        t = (s - self.s_m[knot]) / step
        x = _hermite(t, step, self.x_m[knot], self.x_m[knot + 1], self.tangent_x[knot], self.tangent_x[knot + 1])
        y = _hermite(t, step, self.y_m[knot], self.y_m[knot + 1], self.tangent_y[knot], self.tangent_y[knot + 1])
        return x, y


def sin_cos(angle_rad: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sine and cosine for angles within [-pi, pi]."""
    square = angle_rad * angle_rad
    sine = np.ones_like(angle_rad)
    cosine = np.ones_like(angle_rad)
    for k in range(_TAYLOR_TERMS, 0, -1):
        sine = 1.0 - square / (2 * k * (2 * k + 1)) * sine
        cosine = 1.0 - square / (2 * k * (2 * k - 1)) * cosine
    return angle_rad * sine, cosine


def angle_of(cosine: FloatArray, sine: FloatArray) -> FloatArray:
    """The angle in (-pi, pi) with this cosine and sine."""
    # Four halvings by square roots bring the angle to where the series converges fast.
    for _ in range(4):
        half = np.sqrt((1.0 + cosine) * 0.5)
        cosine, sine = half, sine / (2.0 * half)
    tangent = sine / cosine
    square = tangent * tangent
    series = np.zeros_like(tangent)
    for k in range(_ATAN_TERMS, -1, -1):
        series = 1.0 / (2 * k + 1) - square * series
    return 16.0 * tangent * series


def to_millimetres(values: FloatArray) -> FloatArray:
    """Values rounded to three decimals, which writing and reading a file does not change."""
    # Adding zero turns -0.0, which would be written with its sign, into 0.0.
    return np.rint(values * 1000.0) / 1000.0 + 0.0


def round_corners(corners: list[PolygonCorner]) -> ClothoidPath:
    """The smooth closed path along the polygon."""
    if len(corners) < 3:
        raise TrackError(f"a closed path needs at least 3 corners; got {len(corners)}. Add corners.")
    x, y, wanted = np.array(corners, dtype=np.float64).T.copy()
    edge_x, edge_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    edge = np.sqrt(edge_x * edge_x + edge_y * edge_y)
    if not np.all(edge > 0.0):
        raise TrackError(f"corner {int(np.argmin(edge))} and the next are the same point. Move one of them.")
    out_x, out_y = edge_x / edge, edge_y / edge
    in_x, in_y = np.roll(out_x, 1), np.roll(out_y, 1)
    cosine = in_x * out_x + in_y * out_y
    if not np.all(cosine > -0.999):
        raise TrackError(
            f"the path turns back on itself at corner {int(np.argmin(cosine))}. Make a U-turn of two corners."
        )
    turn = angle_of(cosine, in_x * out_y - in_y * out_x)
    unit_s, unit_x, unit_y, tangent_cos, tangent_sin = _unit_corners(np.abs(turn))

    # A corner of length 1 ends this far from the vertex; its radius is (1 - ramp) / |turn|.
    end = np.sqrt(unit_x[:, -1] * unit_x[:, -1] + unit_y[:, -1] * unit_y[:, -1])
    unit_cut = end / (2.0 * np.sqrt((1.0 + cosine) * 0.5))
    unit_radius = (1.0 - _RAMP) / np.maximum(np.abs(turn), 1e-9)
    cut = _fit_cuts(wanted / unit_radius * unit_cut, edge)
    length = cut / unit_cut
    straight = edge - cut - np.roll(cut, -1)
    lap = np.cumsum(length + straight)
    begin = np.concatenate((np.zeros(1), lap[:-1]))

    side = np.where(turn < 0.0, -1.0, 1.0)
    left_x, left_y = -in_y * side, in_x * side
    knots_s = begin[:, None] + unit_s * length[:, None]
    along, across = unit_x * length[:, None] - cut[:, None], unit_y * length[:, None]
    return ClothoidPath(
        s_m=np.append(knots_s.ravel(), lap[-1]),
        x_m=_closed(x[:, None] + along * in_x[:, None] + across * left_x[:, None]),
        y_m=_closed(y[:, None] + along * in_y[:, None] + across * left_y[:, None]),
        tangent_x=_closed(tangent_cos * in_x[:, None] + tangent_sin * left_x[:, None]),
        tangent_y=_closed(tangent_cos * in_y[:, None] + tangent_sin * left_y[:, None]),
        radii_m=unit_radius * length,
        straight_start_m=begin + length,
        straight_length_m=straight,
    )


def _unit_corners(turn_rad: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Left-hand corners of length 1 from the origin along +x: knots' s, x, y, tangent; (num_corners, num_knots)."""
    u = np.arange(2 * _NUM_STEPS + 1) / (2.0 * _NUM_STEPS)
    rise = u * u / (2.0 * _RAMP * (1.0 - _RAMP))
    fall = 1.0 - (1.0 - u) * (1.0 - u) / (2.0 * _RAMP * (1.0 - _RAMP))
    fraction = np.where(u < _RAMP, rise, np.where(u > 1.0 - _RAMP, fall, (u - 0.5 * _RAMP) / (1.0 - _RAMP)))
    sine, cosine = sin_cos(turn_rad[:, None] * fraction[None, :])
    return u[::2], _integrate(cosine), _integrate(sine), cosine[:, ::2], sine[:, ::2]


def _integrate(values: FloatArray) -> FloatArray:
    """Simpson's running integral over [0, 1] along the last axis, at every second value."""
    steps = (values[:, :-2:2] + 4.0 * values[:, 1::2] + values[:, 2::2]) / (6.0 * _NUM_STEPS)
    return np.concatenate((np.zeros((len(values), 1)), np.cumsum(steps, axis=1)), axis=1)


def _fit_cuts(wanted: FloatArray, edge: FloatArray) -> FloatArray:
    """How much of its edges each corner takes: what it wants, or what its neighbours leave."""
    room = np.maximum(edge - _MIN_STRAIGHT_M, 0.5 * edge)
    half = 0.5 * room
    cut: list[float] = np.minimum(wanted, np.minimum(half, np.roll(half, 1))).tolist()
    for i in range(len(cut)):
        after = (i + 1) % len(cut)
        cut[i] = max(cut[i], min(float(wanted[i]), float(room[i - 1]) - cut[i - 1], float(room[i]) - cut[after]))
    return np.array(cut)


def _closed(knots: FloatArray) -> FloatArray:
    flat = knots.ravel()
    return np.append(flat, flat[0])


def _hermite(
    t: FloatArray, step: FloatArray, from_: FloatArray, to: FloatArray, slope_from: FloatArray, slope_to: FloatArray
) -> FloatArray:
    change = to - from_
    first, second = slope_from * step, slope_to * step
    return from_ + t * (first + t * ((3.0 * change - 2.0 * first - second) + t * (first + second - 2.0 * change)))

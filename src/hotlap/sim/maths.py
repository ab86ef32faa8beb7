"""Float32 sine, cosine, arc tangent, tanh and exp, hand-written so that they are bit-identical on every device.

They only add, multiply and divide; the polynomials are minimax fits, rounded to float32. Error bounds, tested against
float64: `sin_cos` 2e-7 absolute for |x| <= 400 rad; `arc_tangent` 4e-7 rad for every direction;
`hyperbolic_tangent` 4e-7 and `exp_minus_one` 8e-7 relative.
"""

import numpy as np

from hotlap.sim.compilation import kernel

F = np.float32

PI = F(3.14159265)
TWO_PI = F(6.2831853)
HALF_PI = F(1.57079633)
QUARTER_PI = F(0.785398163)

_TWO_OVER_PI = F(0.63661975)
# pi/2 in three pieces, the first two short enough that multiples of them up to a few hundred are exact.
_HALF_PI_HIGH = F(1.5703125)
_HALF_PI_MID = F(0.00048446655)
_HALF_PI_LOW = F(-6.3975784e-07)
_S1, _S2, _S3 = F(-0.16666664), F(0.008332744), F(-0.00019587108)
_C1, _C2, _C3 = F(0.041666664), F(-0.00138883), F(2.4547355e-05)
_A1, _A2, _A3, _A4 = F(-0.33333287), F(0.19991302), F(-0.14025047), F(0.0852362)
_TAN_EIGHTH_TURN = F(0.41421356)
# tanh(x) = x P(x^2) / Q(x^2); beyond the limit it is 1 in float32.
_T0, _T1, _T2, _T3 = F(0.13381137), F(0.0034957177), F(2.061111e-05), F(1.3357249e-08)
_U0, _U1, _U2, _U3 = F(0.46714452), F(0.025877481), F(0.00032858422), F(7.777665e-07)
_TANH_LIMIT = F(9.0)
_ZERO, _HALF, _ONE, _TWO = F(0.0), F(0.5), F(1.0), F(2.0)


@kernel
def sin_cos(x):
    """Sine and cosine of `x` radians."""
    scaled = x * _TWO_OVER_PI
    quadrant = int(scaled + _HALF) if scaled >= _ZERO else int(scaled - _HALF)
    turns = F(quadrant)
    rest = ((x - turns * _HALF_PI_HIGH) - turns * _HALF_PI_MID) - turns * _HALF_PI_LOW
    u = rest * rest
    sine = rest + rest * u * (_S1 + u * (_S2 + u * _S3))
    cosine = (_ONE - _HALF * u) + u * u * (_C1 + u * (_C2 + u * _C3))
    if quadrant & 1:
        sine, cosine = cosine, -sine
    if quadrant & 2:
        sine, cosine = -sine, -cosine
    return sine, cosine


@kernel
def arc_tangent(y, x):
    """Angle of the vector (x, y) in (-pi, pi]; 0 for the zero vector."""
    steep, flat = abs(y), abs(x)
    is_steep = steep > flat
    if is_steep:
        steep, flat = flat, steep
    if flat == _ZERO:
        return _ZERO
    t = steep / flat
    offset = _ZERO
    if t > _TAN_EIGHTH_TURN:
        t = (t - _ONE) / (t + _ONE)
        offset = QUARTER_PI
    u = t * t
    angle = offset + (t + t * u * (_A1 + u * (_A2 + u * (_A3 + u * _A4))))
    if is_steep:
        angle = HALF_PI - angle
    if x < _ZERO:
        angle = PI - angle
    return -angle if y < _ZERO else angle


@kernel
def limit(value, low, high):
    """`value` limited to [low, high]; NaN stays NaN on every device, which `clamp` does not promise."""
    value = high if value > high else value
    return low if value < low else value


@kernel
def hyperbolic_tangent(x):
    """The hyperbolic tangent; NaN stays NaN."""
    x = limit(x, -_TANH_LIMIT, _TANH_LIMIT)
    u = x * x
    top = x + x * u * (_T0 + u * (_T1 + u * (_T2 + u * _T3)))
    bottom = _ONE + u * (_U0 + u * (_U1 + u * (_U2 + u * _U3)))
    return limit(top / bottom, -_ONE, _ONE)


@kernel
def exp_minus_one(x):
    """The exponential of `x` less one, for `x` at most zero; accurate near zero too; NaN stays NaN."""
    t = hyperbolic_tangent(_HALF * x)
    return _TWO * t / (_ONE - t)


@kernel
def wrap_angle(angle):
    """The same direction in [-pi, pi], for angles at most one turn off."""
    if angle > PI:
        return angle - TWO_PI
    if angle < -PI:
        return angle + TWO_PI
    return angle


@kernel
def clamp(value, low, high):
    """`value` limited to [low, high]."""
    return min(max(value, low), high)


@kernel
def mix(start, end, fraction):
    """The point `fraction` of the way from `start` to `end`."""
    return start + (end - start) * fraction

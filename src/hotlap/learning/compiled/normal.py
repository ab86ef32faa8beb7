"""Random numbers, and the exponential, of the compiled PPO: exact operations only, so the same bits everywhere."""

import numpy as np

from hotlap.sim.compilation import kernel
from hotlap.sim.maths import exp_minus_one, limit
from hotlap.sim.rng import scramble

F = np.float32
U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
SHIFT, MASK = U(16), U(0xFFFF)
WORDS = 3
MEAN = 4 * WORDS * 65535 // 2
TO_ONE = F(2.0**-16)
ZERO, ONE = F(0.0), F(1.0)
MAX_EXPONENT = F(10.0)


@kernel
def draw_word(seed, stream, number):
    """64 random bits: number `number` of a stream."""
    z = scramble(U(seed) + GOLDEN)
    z = scramble(z + U(stream) * GOLDEN)
    return scramble(z + (U(number) + U(1)) * GOLDEN)


@kernel
def normal(seed, stream, number):
    """Number `number` of a stream: the sum of twelve uniform numbers, normal but for the tails beyond 3 deviations."""
    total = np.int64(0)
    for k in range(WORDS):
        word = draw_word(seed, stream, U(WORDS) * U(number) + U(k))
        for _ in range(4):
            total += np.int64(word & MASK)
            word = word >> SHIFT
    return F(total - MEAN) * TO_ONE


@kernel
def exponential(x):
    """The exponential of `x`, which is limited to 10 and -10 first."""
    x = limit(x, -MAX_EXPONENT, MAX_EXPONENT)
    if x > ZERO:
        return ONE / (ONE + exp_minus_one(-x))
    return ONE + exp_minus_one(x)

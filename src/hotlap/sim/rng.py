"""A counter-based random generator: a draw depends only on the car's seed, its episode and the draw's number.

So results do not depend on batch size, thread count or order. The mixing is the SplitMix64 finaliser (Steele, Lea and
Flood, OOPSLA 2014).
"""

import numpy as np

from hotlap.sim.compilation import kernel

F = np.float32
U = np.uint64
_GOLDEN = U(0x9E3779B97F4A7C15)
_MIX_1 = U(0xBF58476D1CE4E5B9)
_MIX_2 = U(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31, _SHIFT_40 = U(30), U(27), U(31), U(40)
_TO_UNIT = F(2.0**-24)


@kernel
def scramble(z):
    """Hash a 64-bit word to another."""
    z = (z ^ (z >> _SHIFT_30)) * _MIX_1
    z = (z ^ (z >> _SHIFT_27)) * _MIX_2
    return z ^ (z >> _SHIFT_31)


@kernel
def word(seed, episode, draw):
    """Number `draw` of an episode, 64 random bits."""
    z = scramble(seed + _GOLDEN)
    z = scramble(z + U(episode) * _GOLDEN)
    return scramble(z + U(draw + 1) * _GOLDEN)


@kernel
def uniform(seed, episode, draw):
    """Number `draw` of an episode, uniform in [0, 1), 24 bits."""
    return F(word(seed, episode, draw) >> _SHIFT_40) * _TO_UNIT

"""Forward and backward passes of the two networks over blocks of 64 rows."""

from hotlap.learning.compiled.layout import (
    BIAS_1,
    BIAS_2,
    BLOCK,
    FIRST_VALUE,
    LOG_STD,
    NUM_AXES,
    SIZE,
    WEIGHT_2,
    WEIGHT_3,
    U,
)
from hotlap.learning.compiled.normal import normal
from hotlap.learning.compiled.products import (
    F,
    add_biases,
    add_head,
    add_head_biases,
    add_layer,
    apply_head,
    apply_layer,
    return_head,
    return_layer,
    return_squash,
    squash,
    transpose,
)
from hotlap.models.model_file import ACTION_GAIN, PEDAL_AXIS
from hotlap.sim.compilation import kernel, rare_kernel

POLICY, VALUE = U(0), U(FIRST_VALUE)
POLICY_OUTPUTS, VALUE_OUTPUTS = U(NUM_AXES), U(1)
B1, W2, B2, W3, N = U(BIAS_1), U(WEIGHT_2), U(BIAS_2), U(WEIGHT_3), U(SIZE)
AXIS_GAIN = F(PEDAL_AXIS[0][0])  # of the squashed outputs of the policy
INVERSE_ROOT = F(SIZE**-0.5)
HEAD_GAIN = F(ACTION_GAIN)
ONE = F(1.0)
INITIAL_STREAM = 1 << 40  # no car has this number


@rare_kernel  # not inlined: it is called in several places, and takes long to compile
def forward(weights, first, num_outputs, inputs, hidden_1, hidden_2, outputs):
    """A network's outputs for a block of inputs, and the activations on the way."""
    apply_layer(weights, first, first + B1, inputs, hidden_1)
    squash(hidden_1, N)
    apply_layer(weights, first + W2, first + B2, hidden_1, hidden_2)
    squash(hidden_2, N)
    apply_head(weights, first + W3, first + W3 + num_outputs * N, num_outputs, hidden_2, outputs)


@rare_kernel
def backward(weights, gradients, first, num_outputs, rows, hidden_1, hidden_2, by_outputs, turned, by_2, by_1):
    """Add the gradients of a network for a block; `rows` are the inputs by row, the last three are room to work in."""
    transpose(hidden_2, turned)
    add_head(gradients, first + W3, num_outputs, by_outputs, turned)
    add_head_biases(gradients, first + W3 + num_outputs * N, num_outputs, by_outputs)
    return_head(weights, first + W3, num_outputs, by_outputs, by_2)
    return_squash(hidden_2, by_2)
    transpose(hidden_1, turned)
    add_layer(gradients, first + W2, by_2, turned)
    add_biases(gradients, first + B2, by_2)
    return_layer(weights, first + W2, by_2, by_1)
    return_squash(hidden_1, by_1)
    add_layer(gradients, first, by_1, rows)
    add_biases(gradients, first + B1, by_1)


@kernel
def draw_weights(seed, weights, log_std):
    """Random weights whose outputs vary as much as their inputs, but hardly any actions; no bias."""
    for at in range(weights.shape[0]):
        weights[at] = F(0.0)
    for first, num_outputs, gain in ((POLICY, POLICY_OUTPUTS, HEAD_GAIN), (VALUE, VALUE_OUTPUTS, ONE)):
        for at in range(U(BLOCK)):
            weights[first + at] = INVERSE_ROOT * normal(seed, INITIAL_STREAM, first + at)
            weights[first + W2 + at] = INVERSE_ROOT * normal(seed, INITIAL_STREAM, first + W2 + at)
        for at in range(num_outputs * N):
            weights[first + W3 + at] = gain * INVERSE_ROOT * normal(seed, INITIAL_STREAM, first + W3 + at)
    for axis in range(U(NUM_AXES)):
        weights[U(LOG_STD) + axis] = log_std

"""Products of 64 x 64 matrices. Every sum has a fixed order: one term after the other.

A block holds 64 rows of a batch by column: value `k * 64 + row` is column k of a row. Weights are (outputs, inputs).
The innermost loops go over values that do not depend on each other, so compilers may compute several at once.
"""

import numpy as np

from hotlap.learning.compiled.layout import SIZE, U
from hotlap.sim.compilation import kernel
from hotlap.sim.maths import hyperbolic_tangent

F = np.float32
ZERO, ONE = F(0.0), F(1.0)
NONE, N = U(0), U(SIZE)
U1, U2, U3, U4, U5, U6, U7, U8 = U(1), U(2), U(3), U(4), U(5), U(6), U(7), U(8)


@kernel
def apply_layer(weights, first, first_bias, inputs, outputs):
    """64 outputs of a block: the bias, then one input after the other. Two outputs and four inputs at a time."""
    for j in range(NONE, N, U2):
        here = j * N
        there = here + N
        bias, other_bias = weights[first_bias + j], weights[first_bias + j + U1]
        for row in range(N):
            outputs[here + row] = bias
            outputs[there + row] = other_bias
        for i in range(NONE, N, U4):
            at = first + j * N + i
            a0, a1, a2, a3 = weights[at], weights[at + U1], weights[at + U2], weights[at + U3]
            at = at + N
            b0, b1, b2, b3 = weights[at], weights[at + U1], weights[at + U2], weights[at + U3]
            k0 = i * N
            k1, k2, k3 = k0 + N, k0 + U2 * N, k0 + U3 * N
            for row in range(N):
                x0, x1, x2, x3 = inputs[k0 + row], inputs[k1 + row], inputs[k2 + row], inputs[k3 + row]
                outputs[here + row] = (((outputs[here + row] + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3
                outputs[there + row] = (((outputs[there + row] + b0 * x0) + b1 * x1) + b2 * x2) + b3 * x3


@kernel
def apply_head(weights, first, first_bias, num_outputs, inputs, outputs):
    """The few outputs of a network's last layer."""
    for j in range(num_outputs):
        here, bias = j * N, weights[first_bias + j]
        for row in range(N):
            outputs[here + row] = bias
        for i in range(NONE, N, U4):
            at = first + j * N + i
            a0, a1, a2, a3 = weights[at], weights[at + U1], weights[at + U2], weights[at + U3]
            k0 = i * N
            k1, k2, k3 = k0 + N, k0 + U2 * N, k0 + U3 * N
            for row in range(N):
                x0, x1, x2, x3 = inputs[k0 + row], inputs[k1 + row], inputs[k2 + row], inputs[k3 + row]
                outputs[here + row] = (((outputs[here + row] + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3


@kernel
def return_layer(weights, first, by_outputs, by_inputs):
    """The gradient by a layer's inputs: products with the transposed weights."""
    for i in range(NONE, N, U2):
        here = i * N
        there = here + N
        for row in range(N):
            by_inputs[here + row] = ZERO
            by_inputs[there + row] = ZERO
        for j in range(NONE, N, U4):
            at = first + j * N + i
            a0, b0 = weights[at], weights[at + U1]
            a1, b1 = weights[at + N], weights[at + N + U1]
            a2, b2 = weights[at + U2 * N], weights[at + U2 * N + U1]
            a3, b3 = weights[at + U3 * N], weights[at + U3 * N + U1]
            k0 = j * N
            k1, k2, k3 = k0 + N, k0 + U2 * N, k0 + U3 * N
            for row in range(N):
                d0, d1 = by_outputs[k0 + row], by_outputs[k1 + row]
                d2, d3 = by_outputs[k2 + row], by_outputs[k3 + row]
                by_inputs[here + row] = (((by_inputs[here + row] + a0 * d0) + a1 * d1) + a2 * d2) + a3 * d3
                by_inputs[there + row] = (((by_inputs[there + row] + b0 * d0) + b1 * d1) + b2 * d2) + b3 * d3


@kernel
def return_head(weights, first, num_outputs, by_outputs, by_inputs):
    """The same for the few outputs of a last layer."""
    for i in range(N):
        here = i * N
        for row in range(N):
            by_inputs[here + row] = ZERO
        for j in range(num_outputs):
            weight, k0 = weights[first + j * N + i], j * N
            for row in range(N):
                by_inputs[here + row] += weight * by_outputs[k0 + row]


@kernel
def add_layer(gradients, first, by_outputs, rows):
    """Add the gradient by a layer's weights; `rows` are its inputs by row."""
    for j in range(NONE, N, U2):
        here = first + j * N
        there = here + N
        for row in range(NONE, N, U4):
            at = j * N + row
            a0, a1, a2, a3 = by_outputs[at], by_outputs[at + U1], by_outputs[at + U2], by_outputs[at + U3]
            at = at + N
            b0, b1, b2, b3 = by_outputs[at], by_outputs[at + U1], by_outputs[at + U2], by_outputs[at + U3]
            k0 = row * N
            k1, k2, k3 = k0 + N, k0 + U2 * N, k0 + U3 * N
            for i in range(N):
                x0, x1, x2, x3 = rows[k0 + i], rows[k1 + i], rows[k2 + i], rows[k3 + i]
                gradients[here + i] = (((gradients[here + i] + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3
                gradients[there + i] = (((gradients[there + i] + b0 * x0) + b1 * x1) + b2 * x2) + b3 * x3


@kernel
def add_head(gradients, first, num_outputs, by_outputs, rows):
    """The same for the few outputs of a last layer."""
    for j in range(num_outputs):
        here = first + j * N
        for row in range(N):
            factor, k0 = by_outputs[j * N + row], row * N
            for i in range(N):
                gradients[here + i] += factor * rows[k0 + i]


@kernel
def add_biases(gradients, first, by_outputs):
    """Add the gradient by 64 biases: eight sums at a time, since each has to wait for its last addition."""
    for j in range(NONE, N, U8):
        k = j * N
        at = first + j
        s0, s1, s2, s3 = gradients[at], gradients[at + U1], gradients[at + U2], gradients[at + U3]
        s4, s5, s6, s7 = gradients[at + U4], gradients[at + U5], gradients[at + U6], gradients[at + U7]
        for row in range(N):
            here = k + row
            s0, s1 = s0 + by_outputs[here], s1 + by_outputs[here + N]
            s2, s3 = s2 + by_outputs[here + U2 * N], s3 + by_outputs[here + U3 * N]
            s4, s5 = s4 + by_outputs[here + U4 * N], s5 + by_outputs[here + U5 * N]
            s6, s7 = s6 + by_outputs[here + U6 * N], s7 + by_outputs[here + U7 * N]
        gradients[at], gradients[at + U1], gradients[at + U2], gradients[at + U3] = s0, s1, s2, s3
        gradients[at + U4], gradients[at + U5], gradients[at + U6], gradients[at + U7] = s4, s5, s6, s7


@kernel
def add_head_biases(gradients, first, num_outputs, by_outputs):
    """The same for the few outputs of a last layer."""
    for j in range(num_outputs):
        total = gradients[first + j]
        for row in range(N):
            total += by_outputs[j * N + row]
        gradients[first + j] = total


@kernel
def transpose(values, out):
    """A block's values by row, or back by column."""
    for k in range(N):
        for row in range(N):
            out[row * N + k] = values[k * N + row]


@kernel
def squash(values, num_columns):
    """The hyperbolic tangent of some columns of a block."""
    for at in range(num_columns * N):
        values[at] = hyperbolic_tangent(values[at])


@kernel
def return_squash(squashed, gradients):
    """The gradient by what was squashed."""
    for at in range(N * N):
        gradients[at] *= ONE - squashed[at] * squashed[at]

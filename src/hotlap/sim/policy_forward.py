"""A trained policy as kernels: from one car's observations to its action, with the same bits on every device.

A policy is flat float32 numbers and a small record of their layout. Every sum has a fixed order: bias first, then one
input after the other. Compilers may work on several outputs of a layer at once, which does not change any of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ModelError
from hotlap.sim.compilation import entry_point, kernel
from hotlap.sim.domain import make_actions
from hotlap.sim.maths import TWO_PI, exp_minus_one, hyperbolic_tangent, limit, sin_cos
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS, OBS_PROGRESS

F = np.float32
ZERO, HALF, ONE = F(0.0), F(0.5), F(1.0)

ACTIVATION_CODES = {"tanh": 0, "relu": 1, "elu": 2}
TANH, RELU = ACTIVATION_CODES["tanh"], ACTIVATION_CODES["relu"]
BLOCK = 8  # inputs that `add_block` adds at once

POLICY_DTYPE = np.dtype(
    [
        ("num_observations", np.int32),  # columns of an observation that it uses, from the first
        ("num_stack", np.int32),  # observations that the network sees at once
        ("num_fourier", np.int32),  # multiples of the lap progress of which it sees sine and cosine
        ("num_inputs", np.int32),
        ("activation", np.int32),  # of all layers but the last
        ("is_squashed", np.int32),  # tanh scales the output into the bounds, instead of clipping
        ("clip", np.float32),  # of normalized inputs
    ],
    align=True,
)
# Offsets are positions in the policy's numbers. Weights are (num_inputs, num_outputs), so that the weights of all
# outputs for one input are neighbours.
LAYER_DTYPE = np.dtype(
    [
        ("num_inputs", np.int32),
        ("num_outputs", np.int32),
        ("first_weight", np.int64),
        ("first_bias", np.int64),
    ],
    align=True,
)


class PackedPolicy(NamedTuple):
    """A policy for kernels. Its numbers begin with the normalizer (see `normalize`) and the actions' bounds."""

    shape: NDArray[np.void]  # (1,) POLICY_DTYPE
    layers: NDArray[np.void]  # (num_layers,) LAYER_DTYPE
    numbers: NDArray[np.float32]


class PolicyMemory(NamedTuple):
    """What a policy keeps for N cars from one decision to the next, and room to compute in."""

    history: NDArray[np.float32]  # (N, num_stack * num_observations), oldest first, zeros before the start
    work: NDArray[np.float32]  # (num_workers, 2 * widest layer): workers may decide for cars at the same time
    actions: NDArray[np.float32]  # (N, 3), or wider where actions arrive late


Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # weights (num_outputs, num_inputs) as torch has them, biases


def pack_policy(
    layers: Sequence[Layer],
    *,
    activation: str,
    bounds: tuple[NDArray[np.float32], NDArray[np.float32]],  # lowest and highest action, (3,)
    mean: NDArray[np.float64] | None = None,  # (num_inputs,); None: inputs are not normalized
    scale: NDArray[np.float64] | None = None,
    clip: float = np.inf,
    num_observations: int = NUM_OBSERVATIONS,
    num_stack: int = 1,
    num_fourier: int = 0,
    is_squashed: bool = False,
) -> PackedPolicy:
    """A perceptron as one flat array and its layout."""
    num_inputs = num_stack * num_observations + 2 * num_fourier
    shape, records = np.zeros(1, POLICY_DTYPE), np.zeros(len(layers), LAYER_DTYPE)
    shape["num_observations"], shape["num_stack"] = num_observations, num_stack
    shape["num_fourier"], shape["num_inputs"] = num_fourier, num_inputs
    shape["activation"], shape["is_squashed"], shape["clip"] = ACTIVATION_CODES[activation], is_squashed, clip
    mean = np.zeros(num_inputs) if mean is None else mean
    scale = np.ones(num_inputs) if scale is None else scale
    # The mean in two parts: an input that hardly varied has a tiny scale, which magnifies the rounding of its mean.
    mean_high = mean.astype(F)
    parts = [mean_high, (mean - mean_high).astype(F), (1.0 / scale).astype(F), *bounds]
    width, position = num_inputs, sum(part.size for part in parts)
    for record, (weight, bias) in zip(records, layers, strict=True):
        if weight.shape != (len(bias), width):
            raise ModelError(
                f"policy: a layer's weights must be {(len(bias), width)}, got {weight.shape}. Use another model."
            )
        record["num_inputs"], record["num_outputs"] = width, len(bias)
        record["first_weight"], record["first_bias"] = position, position + weight.size
        parts += [weight.T, bias]
        width, position = len(bias), position + weight.size + bias.size
    if width != NUM_ACTIONS:
        raise ModelError(f"policy: its last layer must give {NUM_ACTIONS} actions, got {width}. Use another model.")
    return PackedPolicy(shape, records, np.concatenate([np.ravel(part).astype(F) for part in parts]))


def make_memory(policy: PackedPolicy, num_cars: int, num_workers: int = 1, delay_ticks: int = 0) -> PolicyMemory:
    """The memory of a policy at the start of `num_cars` episodes, in which actions arrive up to so many ticks late."""
    widest = int(max(policy.layers["num_inputs"].max(), policy.layers["num_outputs"].max()))
    num_seen = int(policy.shape["num_stack"][0]) * int(policy.shape["num_observations"][0])
    history = np.zeros((num_cars, num_seen), F)
    return PolicyMemory(history, np.zeros((num_workers, 2 * widest), F), make_actions(num_cars, delay_ticks))


@kernel
def remember(shape, obs, history):
    """Add a car's next observation to its history and drop the oldest."""
    size = shape.num_observations
    kept = history.shape[0] - size
    for k in range(kept):
        history[k] = history[k + size]
    for k in range(size):
        history[kept + k] = obs[k]


@kernel
def fill_inputs(shape, history, inputs):
    """The history, then sines and cosines of the multiples of the lap progress."""
    num_seen = history.shape[0]
    for k in range(num_seen):
        inputs[k] = history[k]
    progress = history[num_seen - shape.num_observations + OBS_PROGRESS]
    for k in range(shape.num_fourier):
        sine, cosine = sin_cos(progress * (TWO_PI * F(k + 1)))
        inputs[num_seen + k] = sine
        inputs[num_seen + shape.num_fourier + k] = cosine


@kernel
def normalize(shape, numbers, inputs):
    """Subtract the mean (two parts), multiply by the inverse of the scale, and clip."""
    size = shape.num_inputs
    mean_high, mean_low, inverse = numbers[:size], numbers[size : 2 * size], numbers[2 * size : 3 * size]
    for k in range(size):
        value = ((inputs[k] - mean_high[k]) - mean_low[k]) * inverse[k]
        inputs[k] = limit(value, -shape.clip, shape.clip)


@kernel
def add_block(inputs, weights, size, outputs):
    """Add eight inputs to all outputs, one after the other; each output is read and written once only."""
    a, b, c, d = inputs[0], inputs[1], inputs[2], inputs[3]
    e, f, g, h = inputs[4], inputs[5], inputs[6], inputs[7]
    for j in range(size):
        total = outputs[j] + a * weights[j] + b * weights[j + size]
        total = total + c * weights[j + 2 * size] + d * weights[j + 3 * size]
        total = total + e * weights[j + 4 * size] + f * weights[j + 5 * size]
        outputs[j] = total + g * weights[j + 6 * size] + h * weights[j + 7 * size]


@kernel
def apply_layer(layer, numbers, inputs, outputs):
    """One dense layer."""
    size = layer.num_outputs
    biases = numbers[layer.first_bias : layer.first_bias + size]
    for j in range(size):
        outputs[j] = biases[j]
    whole = layer.num_inputs - layer.num_inputs % BLOCK
    for i in range(0, whole, BLOCK):
        first = layer.first_weight + i * size
        add_block(inputs[i : i + BLOCK], numbers[first : first + BLOCK * size], size, outputs)
    for i in range(whole, layer.num_inputs):
        first = layer.first_weight + i * size
        value, weights = inputs[i], numbers[first : first + size]
        for j in range(size):
            outputs[j] += value * weights[j]


@kernel
def activate(code, values, size):
    """The activation function of a hidden layer, in place."""
    if code == TANH:
        for j in range(size):
            values[j] = hyperbolic_tangent(values[j])
    elif code == RELU:
        for j in range(size):
            values[j] = ZERO if values[j] < ZERO else values[j]
    else:
        for j in range(size):
            values[j] = exp_minus_one(values[j]) if values[j] < ZERO else values[j]


@kernel
def bound(shape, numbers, outputs, action):
    """Bring the network's outputs into the actions' bounds; NaN stays NaN."""
    first = 3 * shape.num_inputs
    for k in range(NUM_ACTIONS):
        low, high = numbers[first + k], numbers[first + NUM_ACTIONS + k]
        if shape.is_squashed:
            action[k] = low + HALF * (hyperbolic_tangent(outputs[k]) + ONE) * (high - low)
        else:
            action[k] = limit(outputs[k], low, high)


@kernel
def decide(policy, obs, history, work, action):
    """The next action of one car: `obs` joins its `history`, and `action` (3,) is filled."""
    shape, numbers = policy.shape[0], policy.numbers
    half = work.shape[0] // 2
    here, there = work[:half], work[half:]
    remember(shape, obs, history)
    fill_inputs(shape, history, here)
    normalize(shape, numbers, here)
    num_layers = policy.layers.shape[0]
    for k in range(num_layers):
        layer = policy.layers[k]
        apply_layer(layer, numbers, here, there)
        if k < num_layers - 1:
            activate(shape.activation, there, layer.num_outputs)
        here, there = there, here
    bound(shape, numbers, here, action)


@entry_point()
def decide_cars(policy, obs, memory):
    """The next actions of every car, in `memory.actions`, for observations (N, 14 or more)."""
    for i in range(obs.shape[0]):
        decide(policy, obs[i], memory.history[i], memory.work[0], memory.actions[i])

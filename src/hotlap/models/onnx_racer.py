"""The racer's policy as ONNX operators that give the bits of the compiled driver.

It is `sim/policy_forward.py` once more: the same float32 operations in the same order. Every operator but `Scan` works
on elements, where IEEE arithmetic leaves a runtime no choice; `Scan` adds up a layer one input after the other, which
`MatMul` and `Gemm` do not promise.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from hotlap.models.onnx_graph import BATCH, GraphBuilder, Value, value_info
from hotlap.sim.maths import (  # the coefficients of the kernels themselves
    _C1,
    _C2,
    _C3,
    _HALF_PI_HIGH,
    _HALF_PI_LOW,
    _HALF_PI_MID,
    _S1,
    _S2,
    _S3,
    _T0,
    _T1,
    _T2,
    _T3,
    _TANH_LIMIT,
    _TWO_OVER_PI,
    _U0,
    _U1,
    _U2,
    _U3,
    TWO_PI,
)
from hotlap.sim.policy_forward import RELU, TANH, PackedPolicy
from hotlap.sim.world import NUM_ACTIONS, OBS_PROGRESS

F = np.float32
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
FLOAT = TensorProto.FLOAT

Array = NDArray[np.float32]


def add_policy(graph: GraphBuilder, observation: str, policy: PackedPolicy, output: str) -> None:
    """From the stacked observations (N, num_stack * num_observations) to actions (N, 3)."""
    shape, numbers = policy.shape[0], policy.numbers
    value = _add_fourier(graph, observation, int(shape["num_observations"]), int(shape["num_fourier"]))
    size = int(shape["num_inputs"])
    mean_high, mean_low, inverse = (numbers[k * size : (k + 1) * size] for k in range(3))
    value = graph.add("Sub", graph.add("Sub", value, mean_high), mean_low)
    value = graph.add("Mul", value, inverse)
    value = _limit(graph, value, -shape["clip"], shape["clip"])
    for k, layer in enumerate(policy.layers):
        num_inputs, num_outputs = int(layer["num_inputs"]), int(layer["num_outputs"])
        weights = numbers[layer["first_weight"] :][: num_inputs * num_outputs].reshape(num_inputs, num_outputs)
        value = _add_layer(graph, value, weights, numbers[layer["first_bias"] :][:num_outputs])
        if k < len(policy.layers) - 1:
            value = _activate(graph, int(shape["activation"]), value)
    low, high = numbers[3 * size :][:NUM_ACTIONS], numbers[3 * size + NUM_ACTIONS :][:NUM_ACTIONS]
    if shape["is_squashed"]:
        part = graph.add("Mul", HALF, graph.add("Add", _tanh(graph, value), ONE))
        graph.add("Add", low, graph.add("Mul", part, high - low), output=output)
    else:
        _limit(graph, value, low, high, output=output)


def _add_fourier(graph: GraphBuilder, value: str, num_observations: int, num_fourier: int) -> str:
    """Append sines and cosines of the multiples of the last observation's lap progress."""
    if not num_fourier:
        return value
    column = np.array([OBS_PROGRESS - num_observations], np.int64)  # counted from the end of the stack
    progress = graph.add("Gather", value, column, axis=1)
    sine, cosine = _sin_cos(graph, graph.add("Mul", progress, TWO_PI * np.arange(1, num_fourier + 1, dtype=F)))
    return graph.add("Concat", value, sine, cosine, axis=1)


def _add_layer(graph: GraphBuilder, value: str, weights: Array, bias: Array) -> str:
    """A dense layer, `weights` (num_inputs, num_outputs): the bias, plus one product after the other."""
    width = len(bias)
    rows = graph.add("Shape", value, start=0, end=1)
    start = graph.add("Expand", bias, graph.add("Concat", rows, np.array([width], np.int64), axis=0))
    columns = graph.add("Unsqueeze", graph.add("Transpose", value), np.array([2], np.int64))  # (num_inputs, N, 1)
    body = helper.make_graph(
        [helper.make_node("Mul", ["input", "row"], ["product"]), helper.make_node("Add", ["sum", "product"], ["next"])],
        "add_one_input",
        [
            value_info("sum", FLOAT, [BATCH, width]),
            value_info("input", FLOAT, [BATCH, 1]),
            value_info("row", FLOAT, [width]),
        ],
        [value_info("next", FLOAT, [BATCH, width])],
    )
    return graph.add("Scan", start, columns, weights, body=body, num_scan_inputs=2)


def _activate(graph: GraphBuilder, code: int, value: str) -> str:
    if code == TANH:
        return _tanh(graph, value)
    is_negative = graph.add("Less", value, ZERO)
    if code == RELU:
        return graph.add("Where", is_negative, ZERO, value)
    return graph.add("Where", is_negative, _exp_minus_one(graph, value), value)


# --- the functions of sim/maths.py ---


def _limit(graph: GraphBuilder, value: str, low: Value, high: Value, output: str | None = None) -> str:
    # Not Clip, Min or Max: they may change the sign of a zero, and what they do with NaN differs between runtimes.
    value = graph.add("Where", graph.add("Greater", value, high), high, value)
    return graph.add("Where", graph.add("Less", value, low), low, value, output=output)


def _polynomial(graph: GraphBuilder, u: str, *coefficients: np.float32) -> Value:
    """The sum of coefficient k times u to the k, innermost bracket first."""
    *others, last = coefficients
    found: Value = last
    for coefficient in reversed(others):
        found = graph.add("Add", coefficient, graph.add("Mul", u, found))
    return found


def _tanh(graph: GraphBuilder, x: str) -> str:
    x = _limit(graph, x, -_TANH_LIMIT, _TANH_LIMIT)
    u = graph.add("Mul", x, x)
    part = graph.add("Mul", graph.add("Mul", x, u), _polynomial(graph, u, _T0, _T1, _T2, _T3))
    top = graph.add("Add", x, part)
    bottom = graph.add("Add", ONE, graph.add("Mul", u, _polynomial(graph, u, _U0, _U1, _U2, _U3)))
    return _limit(graph, graph.add("Div", top, bottom), -ONE, ONE)


def _exp_minus_one(graph: GraphBuilder, x: str) -> str:
    t = _tanh(graph, graph.add("Mul", HALF, x))
    return graph.add("Div", graph.add("Mul", TWO, t), graph.add("Sub", ONE, t))


def _sin_cos(graph: GraphBuilder, x: str) -> tuple[str, str]:
    scaled = graph.add("Mul", x, _TWO_OVER_PI)
    up, down = graph.add("Floor", graph.add("Add", scaled, HALF)), graph.add("Ceil", graph.add("Sub", scaled, HALF))
    turns = graph.add("Where", graph.add("Less", scaled, ZERO), down, up)
    rest = x
    for piece in (_HALF_PI_HIGH, _HALF_PI_MID, _HALF_PI_LOW):
        rest = graph.add("Sub", rest, graph.add("Mul", turns, piece))
    u = graph.add("Mul", rest, rest)
    part = graph.add("Mul", graph.add("Mul", rest, u), _polynomial(graph, u, _S1, _S2, _S3))
    sine = graph.add("Add", rest, part)
    part = graph.add("Mul", graph.add("Mul", u, u), _polynomial(graph, u, _C1, _C2, _C3))
    cosine = graph.add("Add", graph.add("Sub", ONE, graph.add("Mul", HALF, u)), part)
    is_odd, halves = _is_odd(graph, turns)
    is_turned, _ = _is_odd(graph, halves)
    first = graph.add("Where", is_odd, cosine, sine)
    second = graph.add("Where", is_odd, graph.add("Neg", sine), cosine)
    return (
        graph.add("Where", is_turned, graph.add("Neg", first), first),
        graph.add("Where", is_turned, graph.add("Neg", second), second),
    )


def _is_odd(graph: GraphBuilder, value: str) -> tuple[str, str]:
    """Whether whole numbers are odd, and their halves rounded down."""
    half = graph.add("Mul", value, HALF)
    floor = graph.add("Floor", half)
    return graph.add("Less", floor, half), floor

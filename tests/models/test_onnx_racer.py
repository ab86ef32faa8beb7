"""The functions that the compiled drivers use, as ONNX operators: the same bits."""

import numpy as np
import onnxruntime
from onnx import TensorProto

from hotlap.models.onnx_graph import BATCH, GraphBuilder, value_info
from hotlap.models.onnx_racer import _add_layer, _sin_cos, _tanh
from sim.kernels import sin_cos_of, tanh_of

X = np.concatenate([np.linspace(-12.0, 12.0, 101), [0.0, -0.0, 1e-6, 7.9, 8.1]]).astype(np.float32)


def computed(add, columns):
    """What a graph makes of inputs (N, columns)."""
    graph = GraphBuilder()
    graph.add("Identity", add(graph), output="y")
    ends = (value_info(name, TensorProto.FLOAT, (BATCH, size)) for name, size in zip("xy", columns, strict=True))
    session = onnxruntime.InferenceSession(graph.build(*ends, {}).SerializeToString())
    return lambda x: session.run(["y"], {"x": x})[0]


def test_functions_have_the_bits_of_the_kernels():
    tanh, sines, cosines = np.zeros((3, len(X)), np.float32)
    tanh_of(X, tanh)
    sin_cos_of(X, sines, cosines)
    found = computed(lambda graph: graph.add("Concat", _tanh(graph, "x"), *_sin_cos(graph, "x"), axis=1), (1, 3))
    expected = np.stack([tanh, sines, cosines], axis=1)
    np.testing.assert_array_equal(found(X[:, None]).view(np.int32), expected.view(np.int32))


def test_a_layer_adds_one_input_after_the_other():
    """In this order the 1 is lost; a sum in another order would be 1."""
    weights, bias = np.float32([[1.0], [1.0], [1.0]]), np.float32([0.0])
    layer = computed(lambda graph: _add_layer(graph, "x", weights, bias), (3, 1))
    assert layer(np.float32([[1.0, 1e8, -1e8], [1e8, -1e8, 1.0]])).tolist() == [[0.0], [1.0]]

"""A graph made node by node computes what it says."""

import numpy as np
import onnxruntime
from onnx import TensorProto, checker

from hotlap.models.onnx_graph import BATCH, GraphBuilder, value_info


def test_a_graph_computes_and_holds_equal_constants_once():
    graph, two = GraphBuilder(), np.float32([2.0, 2.0])
    doubled = graph.add("Mul", "x", two)
    graph.add("Add", graph.add("Mul", doubled, two.copy()), np.float32([1.0, -1.0]), output="y")
    assert len(graph.constants) == 2
    entry, output = (value_info(name, TensorProto.FLOAT, (BATCH, 2)) for name in ("x", "y"))
    model = graph.build(entry, output, {"track": "track-01"})
    checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    [found] = session.run(["y"], {"x": np.float32([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])})
    assert found.tolist() == [[5.0, 7.0], [13.0, 15.0], [1.0, -1.0]]
    assert session.get_modelmeta().custom_metadata_map == {"track": "track-01"}


def test_constants_of_another_type_or_shape_are_others():
    graph = GraphBuilder()
    for constant in (np.float32([0.0]), np.float32(0.0), np.int32([0])):
        graph.add("Identity", constant)
    assert len(graph.constants) == 3
    assert [node.output[0] for node in graph.nodes] == ["identity_0", "identity_1", "identity_2"]

"""`GraphBuilder`: an ONNX graph made node by node, and the file around it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from hotlap._version import __version__

OPSET = 17
IR_VERSION = 8  # the oldest with this opset, so that older runtimes can read the file
BATCH = "N"  # the free size of the first axis

Value = str | NDArray[Any] | np.generic  # a node's output by its name, or a constant


class GraphBuilder:
    """Nodes in order; arrays among their inputs become constants of the file, equal ones only once."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._names: dict[tuple[Any, ...], str] = {}

    def add(self, kind: str, *inputs: Value, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self._keep(value) for value in inputs]
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def build(self, entry: ValueInfoProto, output: ValueInfoProto, metadata: Mapping[str, str]) -> ModelProto:
        """The whole model: one input, one output."""
        found = helper.make_model(
            helper.make_graph(self.nodes, "policy", [entry], [output], initializer=self.constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="hotlap",
            producer_version=__version__,
        )
        helper.set_model_props(found, dict(metadata))
        return found

    def _keep(self, array: NDArray[Any] | np.generic) -> str:
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = f"constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(np.array(array, order="C"), self._names[key]))
        return self._names[key]


def value_info(name: str, kind: int, shape: Sequence[int | str]) -> ValueInfoProto:
    """An input or output: its name, element type and shape."""
    return helper.make_tensor_value_info(name, kind, list(shape))

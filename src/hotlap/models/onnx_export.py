"""A policy as one ONNX graph, from raw observations to actions, with normalizer, network and action bounds.

The graph is built by hand: a perceptron has only a few nodes, so neither tracing nor an exporter is needed.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from stable_baselines3.common.preprocessing import is_image_space

from hotlap._version import __version__
from hotlap.atomic_files import write_atomically
from hotlap.errors import ModelError
from hotlap.models.actor import ACTORS, VARIANCE_FLOOR, actor_layers
from hotlap.models.model_file import Arrays, ModelCard, ModelFile
from hotlap.models.policy import LearnedPolicy, activation_name, describe_space

OPSET = 17
IR_VERSION = 8  # the oldest with this opset, so that older runtimes can read the file
INPUT, OUTPUT, BATCH = "observation", "action", "N"

_OPERATORS = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu"}


def export_onnx(model: ModelFile, path: Path) -> None:
    """Write a model's policy as ONNX; the same model gives the same bytes.

    Input `observation`: float32 (N, …), stacked and with Fourier features where the model uses them, not normalized.
    Output `action`: float32 (N, …) within the bounds, or int64 (N,) for Discrete actions. The metadata is the card.
    """
    write_atomically(path, policy_graph(model).SerializeToString(deterministic=True))


def policy_graph(model: ModelFile) -> ModelProto:
    """The policy of a model as an ONNX model."""
    card = model.card
    observations, actions = _check_spaces(model)
    LearnedPolicy.from_file(model)  # refuses weights that do not fit the card
    graph = _Graph()
    value = INPUT
    if card.clip_obs is not None:
        value = _normalize(graph, value, model.normalizer, card.clip_obs)
    if len(observations.shape) != 1:
        value = graph.add("Flatten", value, axis=1)
    value = _network(graph, value, model)
    if isinstance(actions, spaces.Box):
        _bound(graph, value, actions, ACTORS[card.algorithm].is_squashed)
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [BATCH, *actions.shape])
    else:
        graph.add("ArgMax", value, axis=1, keepdims=0, output=OUTPUT)
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.INT64, [BATCH])
    entry = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [BATCH, *observations.shape])
    found = helper.make_model(
        helper.make_graph(graph.nodes, "policy", [entry], [output], initializer=graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="hotlap",
        producer_version=__version__,
    )
    helper.set_model_props(found, metadata(card))
    return found


def metadata(card: ModelCard) -> dict[str, str]:
    """The card as ONNX metadata, by the same names: text unchanged, other values as JSON, None left out."""
    plain = {name: value for name, value in card.as_plain().items() if value is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in plain.items()}


def _check_spaces(model: ModelFile) -> tuple[spaces.Box, spaces.Box | spaces.Discrete]:
    """The model's spaces, if they are of a kind that can be exported."""
    observations, actions = model.card.spaces
    if not isinstance(observations, spaces.Box) or is_image_space(observations):
        raise ModelError(
            f"{model.path}: its observations are {describe_space(observations)}; ONNX export supports Box without "
            "pictures. Use --format sb3."
        )
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        raise ModelError(
            f"{model.path}: its actions are {describe_space(actions)}; ONNX export supports Box and Discrete. "
            "Use --format sb3."
        )
    return observations, actions


class _Graph:
    """Nodes in order; arrays among their inputs become constants of the file."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, kind: str, *inputs: str | NDArray[Any], output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [value if isinstance(value, str) else self._keep(value) for value in inputs]
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def _keep(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def _normalize(graph: _Graph, value: str, statistics: Arrays, clip_obs: float) -> str:
    """The policy's own normalizer, in float64: a feature that hardly varied is divided by almost zero."""
    limit = np.array(clip_obs, np.float64)
    value = graph.add("Cast", value, to=TensorProto.DOUBLE)
    value = graph.add("Sub", value, statistics["obs_mean"].astype(np.float64))
    value = graph.add("Div", value, np.sqrt(statistics["obs_var"].astype(np.float64) + VARIANCE_FLOOR))
    value = graph.add("Clip", value, -limit, limit)
    return graph.add("Cast", value, to=TensorProto.FLOAT)


def _network(graph: _Graph, value: str, model: ModelFile) -> str:
    operator = _OPERATORS[activation_name(model.card)]
    *hidden, (last_weight, last_bias) = actor_layers(model.weights, model.card.algorithm)
    for weight, bias in hidden:
        value = graph.add(operator, graph.add("Gemm", value, weight, bias, transB=1))
    return graph.add("Gemm", value, last_weight, last_bias, transB=1)


def _bound(graph: _Graph, value: str, actions: spaces.Box, is_squashed: bool) -> None:
    """Bring the network's output into the shape and bounds of the action space."""
    low, high = actions.low.astype(np.float32), actions.high.astype(np.float32)
    if len(actions.shape) != 1:
        value = graph.add("Reshape", value, np.array([-1, *actions.shape], np.int64))
    if is_squashed:
        value = graph.add("Add", graph.add("Tanh", value), np.array(1.0, np.float32))
        value = graph.add("Mul", value, np.float32(0.5) * (high - low))
        graph.add("Add", value, low, output=OUTPUT)
    else:
        # Clip takes scalar bounds only, and each action has its own.
        graph.add("Min", graph.add("Max", value, low), high, output=OUTPUT)

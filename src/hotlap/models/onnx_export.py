"""A policy as one ONNX graph, from raw observations to actions: normalizer, network and bounds inside.

The graph is put together by hand, since a perceptron is a handful of nodes: no tracing, and no exporter to install.
"""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from stable_baselines3.common.preprocessing import is_image_space
from torch import nn

from hotlap._version import __version__
from hotlap.atomic_files import write_atomically
from hotlap.errors import ModelError
from hotlap.models.exchange import spaces_of
from hotlap.models.model_file import Arrays, ModelCard, ModelFile
from hotlap.models.policy import ACTIVATIONS, POLICIES, VARIANCE_FLOOR, LearnedPolicy

OPSET = 17
IR_VERSION = 8  # the first that has this opset, so that older runtimes read the file too
INPUT, OUTPUT, BATCH = "observation", "action", "N"

_OPERATORS: dict[type[nn.Module], str] = {nn.Tanh: "Tanh", nn.ReLU: "Relu", nn.ELU: "Elu"}
# Where the hidden layers and the last one lie among a policy's weights.
_ACTOR_CRITIC = ("mlp_extractor.policy_net", "action_net")
_PLACES = {"ppo": _ACTOR_CRITIC, "a2c": _ACTOR_CRITIC, "sac": ("actor.latent_pi", "actor.mu")}


def export_onnx(model: ModelFile, path: Path) -> None:
    """Write a model's policy as ONNX; the same model gives the same bytes.

    Input `observation`: float32 (N, …) as the policy sees it, stacked and with waves, not normalized. Output `action`:
    float32 (N, …) within the bounds, or int64 (N,) where actions are choices. The metadata are the model's card.
    """
    write_atomically(path, policy_graph(model).SerializeToString(deterministic=True))


def policy_graph(model: ModelFile) -> ModelProto:
    """The policy of a model as an ONNX model."""
    card = model.card
    observations, actions = spaces_of(card)
    seen, done = _check_suited(model, observations, actions)
    LearnedPolicy.from_file(model, observations, actions)  # refuses weights and spaces that do not go together
    graph = _Graph()
    value = INPUT
    if card.clip_obs is not None:
        value = _normalize(graph, value, model.normalizer, card.clip_obs)
    if len(seen.shape) != 1:
        value = graph.add("Flatten", value, axis=1)
    value = _network(graph, value, model)
    if isinstance(done, spaces.Box):
        _bound(graph, value, done, is_squashed=card.algorithm == "sac")
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [BATCH, *done.shape])
    else:
        graph.add("ArgMax", value, axis=1, keepdims=0, output=OUTPUT)
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.INT64, [BATCH])
    entry = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [BATCH, *seen.shape])
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
    """The card as ONNX holds it: by the same names, text as it is, all else as JSON; what a model has not is absent."""
    plain = {name: value for name, value in card.as_plain().items() if value is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in plain.items()}


def _check_suited(
    model: ModelFile, observations: spaces.Space[Any], actions: spaces.Space[Any]
) -> tuple[spaces.Box, spaces.Box | spaces.Discrete]:
    """The spaces, if they are of a kind that can be exported."""
    if not isinstance(observations, spaces.Box) or is_image_space(observations):
        raise ModelError(
            f"{model.path}: sees {observations!s:.80}; only a policy that sees rows of numbers (Box, no pictures) goes "
            "into ONNX. Use --format sb3."
        )
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        raise ModelError(
            f"{model.path}: its actions are {actions!s:.80}; only Box and Discrete go into ONNX. Use --format sb3."
        )
    return observations, actions


class _Graph:
    """Nodes one after another; arrays among their inputs become constants of the file."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, kind: str, *inputs: str | NDArray[Any], output: str | None = None, **attributes: Any) -> str:
        """Add a node; gives back the name of what comes out of it."""
        names = [value if isinstance(value, str) else self._keep(value) for value in inputs]
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def _keep(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def _normalize(graph: _Graph, value: str, statistics: Arrays, clip_obs: float) -> str:
    """As the policy's own normalizer: in float64, for a number that hardly varied is divided by almost nothing."""
    limit = np.array(clip_obs, np.float64)
    value = graph.add("Cast", value, to=TensorProto.DOUBLE)
    value = graph.add("Sub", value, statistics["obs_mean"].astype(np.float64))
    value = graph.add("Div", value, np.sqrt(statistics["obs_var"].astype(np.float64) + VARIANCE_FLOOR))
    value = graph.add("Clip", value, -limit, limit)
    return graph.add("Cast", value, to=TensorProto.FLOAT)


def _network(graph: _Graph, value: str, model: ModelFile) -> str:
    hidden, last = _PLACES[model.card.algorithm]
    operator = _OPERATORS[_activation(model.card)]
    for weight, bias in _layers(model.weights, hidden):
        value = graph.add(operator, graph.add("Gemm", value, weight, bias, transB=1))
    return graph.add("Gemm", value, model.weights[f"{last}.weight"], model.weights[f"{last}.bias"], transB=1)


def _activation(card: ModelCard) -> type[nn.Module]:
    """The one that the settings name, or else the library's own choice for this policy."""
    if card.policy.activation is not None:
        return ACTIVATIONS[card.policy.activation]
    policy = POLICIES[card.algorithm]["MlpPolicy"]
    chosen: type[nn.Module] = inspect.signature(policy).parameters["activation_fn"].default
    return chosen


def _layers(weights: Arrays, place: str) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Weights (out, in) and biases (out,) of the layers there, in order; the numbers between are the activations'."""
    pattern = re.compile(rf"{re.escape(place)}\.(\d+)\.weight")
    for number in sorted(int(match[1]) for match in map(pattern.fullmatch, weights) if match):
        yield weights[f"{place}.{number}.weight"], weights[f"{place}.{number}.bias"]


def _bound(graph: _Graph, value: str, actions: spaces.Box, is_squashed: bool) -> None:
    """Bring the network's answer into the actions' shape and bounds."""
    low, high = actions.low.astype(np.float32), actions.high.astype(np.float32)
    if len(actions.shape) != 1:
        value = graph.add("Reshape", value, np.array([-1, *actions.shape], np.int64))
    if is_squashed:
        value = graph.add("Add", graph.add("Tanh", value), np.array(1.0, np.float32))
        value = graph.add("Mul", value, np.float32(0.5) * (high - low))
        graph.add("Add", value, low, output=OUTPUT)
    else:
        # Clip takes one bound for all; each action has its own.
        graph.add("Min", graph.add("Max", value, low), high, output=OUTPUT)

"""A policy as one ONNX file, from what the environment gives to what it takes.

Graphs are built by hand: a perceptron has only a few nodes, so neither tracing nor an exporter is needed.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator
from stable_baselines3.common.preprocessing import is_image_space

from hotlap.atomic_files import write_atomically
from hotlap.errors import ModelError
from hotlap.models.action_check import refuse_bad_actions, sample_observations
from hotlap.models.actor import pack_model
from hotlap.models.actor_layers import ACTORS, VARIANCE_FLOOR, actor_layers
from hotlap.models.model_file import Arrays, ModelCard, ModelFile
from hotlap.models.onnx_graph import BATCH, GraphBuilder, value_info
from hotlap.models.onnx_racer import add_policy
from hotlap.models.policy import LearnedPolicy, activation_name
from hotlap.models.space_data import describe_space

INPUT, OUTPUT = "observation", "action"

_OPERATORS = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu"}


def export_onnx(model: ModelFile, path: Path) -> None:
    """Write a model's policy as ONNX; the same model gives the same bytes.

    Input `observation`: float32 (N, …), as the environment gives it; for the racer the last `stack` observations.
    Output `action`: float32 (N, …) within the bounds, or int64 (N,) for Discrete actions. The metadata is the card. A
    model whose actions are not finite or not within the bounds is refused.
    """
    found = policy_graph(model)
    obs = sample_observations(model).astype(np.float32)
    answer: Any = ReferenceEvaluator(found).run(None, {INPUT: obs})
    refuse_bad_actions(model, answer[0])
    write_atomically(path, found.SerializeToString(deterministic=True))


def policy_graph(model: ModelFile) -> ModelProto:
    """The policy of a model as an ONNX model."""
    observations, actions = _check_spaces(model)
    graph = GraphBuilder()
    if model.card.is_racer:
        add_policy(graph, INPUT, pack_model(model), OUTPUT)
    else:
        LearnedPolicy.from_file(model)  # refuses weights that do not fit the card
        _add_perceptron(graph, model, observations, actions)
    kind = TensorProto.FLOAT if isinstance(actions, spaces.Box) else TensorProto.INT64
    return graph.build(
        value_info(INPUT, TensorProto.FLOAT, [BATCH, *(model.card.raw_observations.shape or ())]),
        value_info(OUTPUT, kind, [BATCH, *(actions.shape or ())]),
        metadata(model.card),
    )


def metadata(card: ModelCard) -> dict[str, str]:
    """The card as ONNX metadata, by the same names: text unchanged, other values as JSON, None left out.

    For the racer also `observation`, the name by which environment and bridge know the layout.
    """
    plain = {name: value for name, value in card.as_plain().items() if value is not None}
    if card.is_racer:
        plain["observation"] = card.observation
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


# --- other environments than the racer ---


def _add_perceptron(
    graph: GraphBuilder, model: ModelFile, observations: spaces.Box, actions: spaces.Box | spaces.Discrete
) -> None:
    value = INPUT
    if model.card.clip_obs is not None:
        value = _normalize(graph, value, model.normalizer, model.card.clip_obs)
    if len(observations.shape) != 1:
        value = graph.add("Flatten", value, axis=1)
    value = _network(graph, value, model)
    if isinstance(actions, spaces.Box):
        _bound(graph, value, actions, ACTORS[model.card.algorithm].is_squashed)
    else:
        graph.add("ArgMax", value, axis=1, keepdims=0, output=OUTPUT)


def _normalize(graph: GraphBuilder, value: str, statistics: Arrays, clip_obs: float) -> str:
    """The policy's own normalizer, in float64: a feature that hardly varied is divided by almost zero."""
    limit = np.array(clip_obs, np.float64)
    value = graph.add("Cast", value, to=TensorProto.DOUBLE)
    value = graph.add("Sub", value, statistics["obs_mean"].astype(np.float64))
    value = graph.add("Div", value, np.sqrt(statistics["obs_var"].astype(np.float64) + VARIANCE_FLOOR))
    value = graph.add("Clip", value, -limit, limit)
    return graph.add("Cast", value, to=TensorProto.FLOAT)


def _network(graph: GraphBuilder, value: str, model: ModelFile) -> str:
    operator = _OPERATORS[activation_name(model.card)]
    *hidden, (last_weight, last_bias) = actor_layers(model.weights, model.card.algorithm)
    for weight, bias in hidden:
        value = graph.add(operator, graph.add("Gemm", value, weight, bias, transB=1))
    return graph.add("Gemm", value, last_weight, last_bias, transB=1)


def _bound(graph: GraphBuilder, value: str, actions: spaces.Box, is_squashed: bool) -> None:
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

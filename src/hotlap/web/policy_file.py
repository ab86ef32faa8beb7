"""Policy files: what the page's forward kernel needs of a model, as `docs/web-api.md` describes it."""

import json
import math
import struct
from typing import Any

import numpy as np

from hotlap.models.actor import pack_model
from hotlap.models.model_file import ModelFile
from hotlap.sim.policy_forward import LAYER_DTYPE, POLICY_DTYPE, PackedPolicy

MAGIC = b"HLP1"
_HEAD = struct.Struct("<4sI")
_COUNTS = ("num_observations", "num_stack", "num_fourier", "num_inputs", "activation")


def policy_bytes(model: ModelFile) -> bytes:
    """The policy of a racer's model; a ModelError if it cannot drive."""
    packed, card = pack_model(model), model.card
    shape = packed.shape[0]
    clip = float(shape["clip"])
    header: dict[str, Any] = {
        "physics": card.physics,
        "name": model.path.stem,
        "track": card.track,
        "step": card.step,
        "action_repeat": card.action_repeat,
        **{name: int(shape[name]) for name in _COUNTS},
        "is_squashed": bool(shape["is_squashed"]),
        "clip": clip if math.isfinite(clip) else None,
        "num_numbers": int(packed.numbers.size),
        "layers": [
            {name: int(layer[name]) for name in ("num_inputs", "num_outputs", "first_weight", "first_bias")}
            for layer in packed.layers
        ],
    }
    text = json.dumps(header, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return _HEAD.pack(MAGIC, len(text)) + text + packed.numbers.astype("<f4").tobytes()


def read_policy_bytes(content: bytes) -> tuple[PackedPolicy, dict[str, Any]]:
    """The policy and the header of a policy file that ships with the package; others are not read."""
    length = _HEAD.unpack_from(content)[1]
    header: dict[str, Any] = json.loads(content[_HEAD.size : _HEAD.size + length])
    shape, layers = np.zeros(1, POLICY_DTYPE), np.zeros(len(header["layers"]), LAYER_DTYPE)
    for name in POLICY_DTYPE.names or ():
        shape[name] = np.inf if header[name] is None else header[name]
    for record, layer in zip(layers, header["layers"], strict=True):
        for name in LAYER_DTYPE.names or ():
            record[name] = layer[name]
    numbers = np.frombuffer(content, "<f4", offset=_HEAD.size + length).astype(np.float32)
    return PackedPolicy(shape, layers, numbers), header

"""Reads a policy file by its documentation alone, without the code of the project."""

import json
import struct

import numpy as np

from hotlap.sim.policy_forward import LAYER_DTYPE, POLICY_DTYPE, PackedPolicy


def unpack(content: bytes) -> tuple[PackedPolicy, dict]:
    """A policy from its file, read by the documentation alone."""
    magic, length = struct.unpack_from("<4sI", content)
    assert magic == b"HLP1"
    assert length % 4 == 0
    header = json.loads(content[8 : 8 + length])
    shape, layers = np.zeros(1, POLICY_DTYPE), np.zeros(len(header["layers"]), LAYER_DTYPE)
    for name in POLICY_DTYPE.names:
        shape[name] = np.inf if header[name] is None else header[name]
    for record, layer in zip(layers, header["layers"], strict=True):
        for name in LAYER_DTYPE.names:
            record[name] = layer[name]
    numbers = np.frombuffer(content, "<f4", offset=8 + length)
    assert len(numbers) == header["num_numbers"]
    return PackedPolicy(shape, layers, numbers.astype(np.float32)), header

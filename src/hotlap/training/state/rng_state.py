"""The state of every random generator a run draws from."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from hotlap.errors import StateError, one_line
from hotlap.training.state.state_tree import Tree


def capture_rng(model: BaseAlgorithm) -> Tree:
    """The state of the process's generators and of the one that samples actions."""
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 (stable-baselines3 uses it)
    version, numbers, gauss = random.getstate()
    found = {
        "numpy": [kind, np.asarray(keys), position, has_gauss, cached],
        "python": [version, np.array(numbers, np.uint64), gauss],
        "torch": torch.get_rng_state(),
        "actions": encode_generator(model.action_space.np_random),
    }
    if model.device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(model.device)
    return found


def restore_rng(model: BaseAlgorithm, saved: Tree) -> None:
    """Restore what `capture_rng` returned."""
    kind, keys, position, has_gauss, cached = saved["numpy"]
    np.random.set_state((kind, keys, int(position), int(has_gauss), float(cached)))  # noqa: NPY002
    version, numbers, gauss = saved["python"]
    random.setstate((version, tuple(int(number) for number in numbers), gauss))
    torch.set_rng_state(torch.as_tensor(saved["torch"]))
    decode_generator(saved["actions"], model.action_space.np_random)
    if "cuda" in saved and model.device.type == "cuda":  # a run may resume on another device
        torch.cuda.set_rng_state(torch.as_tensor(saved["cuda"]), model.device)


def encode_generator(generator: Any) -> dict[str, Any] | None:
    """The state of a NumPy generator as plain JSON; integers become decimal text, since PCG64's have 128 bits."""
    if not isinstance(generator, np.random.Generator):
        return None
    encoded: dict[str, Any] = _to_text(generator.bit_generator.state)
    return encoded


def decode_generator(encoded: Any, generator: Any) -> None:
    """Restore a generator to what `encode_generator` returned."""
    try:
        generator.bit_generator.state = _from_text(encoded)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise StateError(f"state: does not fit this kind of random generator ({one_line(error)}).") from None


def _to_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _to_text(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return [str(item) for item in value.tolist()]
    return value if isinstance(value, str) else str(int(value))


def _from_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _from_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return np.array([int(item) for item in value], np.uint64)
    return int(value) if value.isdecimal() else value

"""The random generators that a learner owns: for the order of minibatches, for noise, and for uniform actions.

They draw what stable-baselines3 would draw from the global generators after seeding them with the same number.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from hotlap.errors import StateError, one_line


class Generators:
    """Generators with one seed; torch's is on the learner's device."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.numpy = np.random.RandomState(seed)
        self.torch = torch.Generator(device)
        self.torch.manual_seed(seed)
        self.actions = np.random.default_rng(seed)
        self._seed = seed

    @contextmanager
    def initializing(self) -> Iterator[None]:
        """Let torch's initializers, which know only the global generator in main memory, draw from this seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._seed)
            yield
            if self.torch.device.type == "cpu":
                self.torch.set_state(torch.default_generator.get_state())

    def state_dict(self) -> dict[str, Any]:
        """The state of all; that of torch's under the name of its device."""
        kind, keys, position, has_gauss, cached = self.numpy.get_state()
        return {
            "numpy": [kind, np.asarray(keys), position, has_gauss, cached],
            "actions": encode_generator(self.actions),
            self.torch.device.type: self.torch.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; torch's only where it was on the same kind of device."""
        kind, keys, position, has_gauss, cached = state["numpy"]
        self.numpy.set_state((kind, keys, int(position), int(has_gauss), float(cached)))
        decode_generator(state["actions"], self.actions)
        if (saved := state.get(self.torch.device.type)) is not None:
            self.torch.set_state(torch.as_tensor(saved))


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

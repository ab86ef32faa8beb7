"""Where a run trains: what `--device` means, and what is missing where there is no usable GPU."""

import logging

import torch

from hotlap.errors import ConfigError
from hotlap.sim.engine import DeviceName

_log = logging.getLogger(__name__)


def find_cuda_problem() -> str | None:
    """Why nothing can train on a GPU here, and what to install; None where it can."""
    if not torch.cuda.is_available():
        return (
            "torch finds no NVIDIA GPU that it can use. Install hotlap[gpu] and a CUDA build of torch "
            "(`hotlap doctor` says how), or use --device cpu."
        )
    from hotlap.sim.batch_cuda import find_problem

    return find_problem()


def choose_device(asked: str | None) -> DeviceName | None:
    """The device that a user's `--device` means: `auto` is a GPU where there is one. None leaves it to the recipe."""
    if asked is None:
        return None
    if asked == "cpu":
        return "cpu"
    if asked not in ("cuda", "auto"):
        raise ConfigError(f"--device must be cpu, cuda or auto, got {asked!r:.40}.")
    problem = find_cuda_problem()
    if problem is None:
        return "cuda"
    if asked == "cuda":
        raise ConfigError(f"--device cuda: {problem}")
    _log.info("Trains on the CPU: %s", problem)
    return "cpu"

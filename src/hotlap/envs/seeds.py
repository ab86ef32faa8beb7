"""The seeds of a batch of cars, as `reset` takes them."""

import numpy as np

from hotlap.errors import ConfigError

NUM_SEEDS = 2**64  # what a car's counter-based generator can tell apart


def resolve_seed(seed: int | list[int | None] | None, num_envs: int, rng: np.random.Generator) -> int | list[int]:
    """The seed of the first car, or one for each; what is None is drawn. Raises ConfigError for anything else."""
    if isinstance(seed, list | tuple):
        if len(seed) != num_envs:
            raise ConfigError(f"seed: a list needs one seed for each of the {num_envs} cars, got {len(seed)}.")
        if not all(one is None or isinstance(one, int) for one in seed):
            raise ConfigError(f"seed: a list must hold whole numbers or None, got {seed!r:.60}.")
        return [(int(rng.integers(2**63)) if one is None else one) % NUM_SEEDS for one in seed]
    if seed is not None and not isinstance(seed, int):
        raise ConfigError(f"seed must be a whole number or a list of them, got {seed!r:.40}.")
    return int(rng.integers(2**62)) if seed is None else seed % NUM_SEEDS

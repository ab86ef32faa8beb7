"""Speed of a running bridge with one client: steps per second and round-trip times."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.client import BridgeClient, read_reset, read_step
from hotlap.bridge.protocol import Reset, Step
from hotlap.envs.spaces import action_space
from hotlap.errors import ConfigError

_SEED = 0


def run_benchmark(
    steps: int = 5000, target: float = 2000, warmup: int = 200, *, url: str | None = None
) -> dict[str, Any]:
    """Drive one car with random actions for `steps` steps, after `warmup` steps that are not measured.

    Resets count towards the time but not as steps. Connects to `url`, else to this machine's bridge on BRIDGE_PORT or
    9876. `passed` is whether at least `target` steps per second were reached.
    """
    _check_whole("steps", steps, at_least=1)
    _check_whole("warmup", warmup, at_least=0)
    if not target >= 0:
        raise ConfigError(f"target must be zero or more steps per second, got {target!r:.40}.")
    actions = _random_actions(warmup + steps)
    with BridgeClient(url) as client:
        client.ask(Reset(seed=_SEED), read_reset)
        _drive(client, actions[:warmup])
        began_s = time.perf_counter()
        round_trips_s = _drive(client, actions[warmup:])
        elapsed_s = time.perf_counter() - began_s
    p50_ms, p95_ms, p99_ms = np.percentile(round_trips_s, [50, 95, 99]) * 1000.0
    steps_per_sec = steps / elapsed_s
    return {
        "steps": steps,
        "warmup": warmup,
        "elapsed_sec": elapsed_s,
        "steps_per_sec": steps_per_sec,
        "mean_ms": float(np.mean(round_trips_s)) * 1000.0,
        "p50_ms": float(p50_ms),
        "p95_ms": float(p95_ms),
        "p99_ms": float(p99_ms),
        "target": target,
        "passed": bool(steps_per_sec >= target),
    }


def _check_whole(name: str, value: object, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{name} must be a whole number from {at_least}, got {value!r:.40}.")


def _random_actions(count: int) -> list[Step]:
    """The requests, made beforehand so that making them is not measured."""
    space = action_space()
    rows = np.random.default_rng(_SEED).uniform(space.low, space.high, (count, *space.shape))
    return [Step((steer, throttle, brake)) for steer, throttle, brake in rows.tolist()]


def _drive(client: BridgeClient, requests: list[Step]) -> NDArray[np.float64]:
    """Send the steps and reset where an episode ends; returns the round-trip time of each step in seconds."""
    round_trips_s = np.zeros(len(requests))
    clock = time.perf_counter
    for number, request in enumerate(requests):
        sent_s = clock()
        result = client.ask(request, read_step)
        round_trips_s[number] = clock() - sent_s
        if result.terminated or result.truncated:
            client.ask(Reset(), read_reset)
    return round_trips_s

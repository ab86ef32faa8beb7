"""Measures other simulators on the same machine in the same run; lists those not installed as absent."""

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium as gym

from hotlap.bench.simulator import measure_sim
from hotlap.tracks.registry import DEFAULT_TRACK

ENVPOOL_ENVS = 64


@dataclass(frozen=True)
class Peer:
    """Another simulator, and how to measure it."""

    name: str
    note: str
    run: Callable[[float], float]  # takes seconds, returns steps per second


def measure_peers(num_envs: int, seconds: float) -> dict[str, Any]:
    """Steps per second of Hotlap and of each installed peer, and how many times faster Hotlap is; None if absent."""
    one_thread = measure_sim(num_envs, 1, "cpu", DEFAULT_TRACK, seconds)
    all_threads = measure_sim(num_envs, None, "cpu", DEFAULT_TRACK, seconds)
    peers: list[dict[str, Any]] = []
    for peer in _PEERS:
        rate, reason = _try_peer(peer, seconds)
        peers.append(
            {
                "name": peer.name,
                "note": peer.note,
                "steps_per_sec": rate,
                "absent": reason,
                "hotlap_one_thread_times": one_thread.steps_per_sec / rate if rate else None,
                "hotlap_all_threads_times": all_threads.steps_per_sec / rate if rate else None,
            }
        )
    return {
        "num_envs": num_envs,
        "threads": all_threads.threads,
        "hotlap_one_thread_steps_per_sec": one_thread.steps_per_sec,
        "hotlap_all_threads_steps_per_sec": all_threads.steps_per_sec,
        "hotlap_single_env_steps_per_sec": one_thread.single_env_steps_per_sec,
        "peers": peers,
    }


def _try_peer(peer: Peer, seconds: float) -> tuple[float | None, str | None]:
    """The peer's steps per second, or None and the reason why it cannot run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.run(seconds), None
    except (ImportError, gym.error.Error, RuntimeError, OSError, AttributeError) as error:
        return None, " ".join(str(error).split())[:120] or type(error).__name__


def _measure_rate(step: Callable[[int], int], seconds: float) -> float:
    """Steps per second: calls `step` with the steps done so far; it returns how many steps it did."""
    num_steps, begin_s = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - begin_s) < seconds:
        num_steps += step(num_steps)
    return num_steps / elapsed_s


def _run_gymnasium(env_id: str, module: str | None = None) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        if module:
            import_module(module)
        env = gym.make(env_id)
        env.action_space.seed(0)
        env.reset(seed=0)
        actions = [env.action_space.sample() for _ in range(256)]

        def step(num_steps: int) -> int:
            _, _, terminated, truncated, _ = env.step(actions[num_steps % len(actions)])
            if terminated or truncated:
                env.reset()
            return 1

        with closing(env):
            return _measure_rate(step, seconds)

    return run


def _run_envpool(task_id: str) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        import envpool
        import numpy as np

        env = envpool.make_gymnasium(task_id, num_envs=ENVPOOL_ENVS, num_threads=0)
        env.reset()
        env.action_space.seed(0)
        actions = [np.stack([env.action_space.sample() for _ in range(ENVPOOL_ENVS)]) for _ in range(16)]

        def step(num_steps: int) -> int:
            env.step(actions[num_steps // ENVPOOL_ENVS % len(actions)])
            return ENVPOOL_ENVS

        with closing(env):
            return _measure_rate(step, seconds)

    return run


_PEERS = (
    Peer("Gymnasium LunarLander-v3", "one environment", _run_gymnasium("LunarLander-v3")),
    Peer("EnvPool LunarLander-v3", f"{ENVPOOL_ENVS} environments, all threads", _run_envpool("LunarLander-v3")),
    Peer("Gymnasium CarRacing-v3", "one environment, pixels", _run_gymnasium("CarRacing-v3")),
    Peer("EnvPool CarRacing-v3", f"{ENVPOOL_ENVS} environments, all threads, pixels", _run_envpool("CarRacing-v3")),
    Peer("highway-env racetrack-v0", "one environment", _run_gymnasium("racetrack-v0", "highway_env")),
)

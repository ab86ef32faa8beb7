"""Other simulators' speed on the same machine in the same run; those that are not installed are listed as absent."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from hotlap.bench.simulator import measure_sim
from hotlap.envs.racer import DEFAULT_TRACK

ENVPOOL_CARS = 64


@dataclass(frozen=True)
class Peer:
    """Another simulator: how to run it for some seconds, and what its step is."""

    name: str
    note: str
    run: Callable[[float], float]  # seconds -> steps a second


def measure_peers(num_envs: int, seconds: float) -> dict[str, Any]:
    """Steps a second of Hotlap and of each installed peer, and how many times faster Hotlap is; None where absent."""
    one = measure_sim(num_envs, 1, "cpu", DEFAULT_TRACK, seconds)
    every = measure_sim(num_envs, None, "cpu", DEFAULT_TRACK, seconds)
    peers: list[dict[str, Any]] = []
    for peer in _PEERS:
        rate, why = _try(peer, seconds)
        peers.append(
            {
                "name": peer.name,
                "note": peer.note,
                "steps_per_sec": rate,
                "absent": why,
                "hotlap_one_thread_times": one.steps_per_sec / rate if rate else None,
                "hotlap_all_threads_times": every.steps_per_sec / rate if rate else None,
            }
        )
    return {
        "num_envs": num_envs,
        "threads": every.threads,
        "hotlap_one_thread_steps_per_sec": one.steps_per_sec,
        "hotlap_all_threads_steps_per_sec": every.steps_per_sec,
        "hotlap_single_env_steps_per_sec": one.single_env_steps_per_sec,
        "peers": peers,
    }


def _try(peer: Peer, seconds: float) -> tuple[float | None, str | None]:
    """The peer's rate, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.run(seconds), None
    except (ImportError, gym.error.Error, RuntimeError, OSError, AttributeError) as error:
        return None, " ".join(str(error).split())[:120] or type(error).__name__


def _run_gymnasium(env_id: str, module: str | None = None) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        if module:
            __import__(module)
        env = gym.make(env_id)
        env.action_space.seed(0)
        env.reset(seed=0)
        actions = [env.action_space.sample() for _ in range(256)]
        steps, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            for action in actions[:32] if steps < 32 else actions:
                _, _, terminated, truncated, _ = env.step(action)
                steps += 1
                if terminated or truncated:
                    env.reset()
                if time.perf_counter() - begin > seconds:
                    break
        env.close()
        return steps / elapsed

    return run


def _run_envpool(task_id: str) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        import envpool
        import numpy as np

        env = envpool.make_gymnasium(task_id, num_envs=ENVPOOL_CARS, num_threads=0)
        env.reset()
        space = env.action_space
        space.seed(0)
        actions = [np.stack([space.sample() for _ in range(ENVPOOL_CARS)]) for _ in range(16)]
        steps, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            env.step(actions[steps // ENVPOOL_CARS % len(actions)])
            steps += ENVPOOL_CARS
        env.close()
        return steps / elapsed

    return run


_PEERS = (
    Peer("Gymnasium LunarLander-v3", "one environment", _run_gymnasium("LunarLander-v3")),
    Peer("EnvPool LunarLander-v3", f"{ENVPOOL_CARS} environments, all threads", _run_envpool("LunarLander-v3")),
    Peer("Gymnasium CarRacing-v3", "one environment, pixels", _run_gymnasium("CarRacing-v3")),
    Peer("EnvPool CarRacing-v3", f"{ENVPOOL_CARS} environments, all threads, pixels", _run_envpool("CarRacing-v3")),
    Peer("highway-env racetrack-v0", "one environment", _run_gymnasium("racetrack-v0", "highway_env")),
)

"""How fast the simulator steps, with everything on: observation, reward, laps and autoreset."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hotlap.envs.racer import RacerEnv
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import MAX_THREADS, default_threads
from hotlap.tracks.golden_traces import reflexes

# Actions are renewed outside the clock every so many ticks, so that cars drive instead of scraping along walls.
HOLD_TICKS = 10
SPREAD_TICKS = 300
BLOCK_CALLS = 100
BATCH_CONFIG = {"episode": {"start": "random"}}


@dataclass(frozen=True)
class SimSpeed:
    """Steps a second of the batched environment through its Gymnasium interface, and the settings."""

    steps_per_sec: float
    num_envs: int
    threads: int
    device: str
    track: str
    seconds: float
    single_env_steps_per_sec: float
    step_usec: float
    reset_usec: float

    def as_dict(self) -> dict[str, Any]:
        """Plain figures for JSON."""
        return asdict(self)


def measure_sim(num_envs: int, threads: int | None, device: str, track_id: str, seconds: float) -> SimSpeed:
    """Step `num_envs` cars for about `seconds` on `threads` threads (all cores), and one `RacerEnv` beside it."""
    if device != "cpu":
        raise ConfigError(f"device must be 'cpu', got {device!r:.40}: this version simulates on the CPU only.")
    if not 0.1 <= seconds <= 3600.0:
        raise ConfigError(f"seconds must be from 0.1 to 3600, got {seconds:g}.")
    chosen = threads if threads is not None else default_threads()
    if not 1 <= chosen <= MAX_THREADS:
        raise ConfigError(f"threads must be from 1 to this machine's {MAX_THREADS}, got {chosen}.")
    env = RacerVectorEnv(num_envs, track_id, BATCH_CONFIG, num_threads=chosen)
    step_usec, reset_usec = _single_costs(track_id, seconds / 4.0)
    return SimSpeed(
        steps_per_sec=_batch_rate(env, seconds),
        num_envs=num_envs,
        threads=chosen,
        device=device,
        track=track_id,
        seconds=seconds,
        single_env_steps_per_sec=1e6 / step_usec,
        step_usec=step_usec,
        reset_usec=reset_usec,
    )


def _batch_rate(env: RacerVectorEnv, seconds: float) -> float:
    """Steps a second in the median block of ticks, so that what else the machine does now and then counts little."""
    obs, _ = env.reset(seed=0)
    for tick in range(SPREAD_TICKS):
        obs, *_ = env.step(reflexes(obs, tick))
    blocks_s: list[float] = []
    while sum(blocks_s) < seconds:
        actions = reflexes(obs, SPREAD_TICKS + len(blocks_s) * HOLD_TICKS)
        begin = time.perf_counter()
        for _ in range(HOLD_TICKS):
            obs, *_ = env.step(actions)
        blocks_s.append(time.perf_counter() - begin)
    return HOLD_TICKS * env.num_envs / float(np.median(blocks_s))


def _single_costs(track_id: str, seconds: float) -> tuple[float, float]:
    """Microseconds of one step and of one reset of a `RacerEnv`, in turn, so that both meet the same machine."""
    env = RacerEnv(track_id)
    env.reset(seed=0)
    action = np.array([0.05, 0.5, 0.0], np.float32)
    calls: tuple[Callable[[], object], ...] = (lambda: env.step(action), env.reset)
    blocks_s: tuple[list[float], ...] = ([], [])
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for call, times_s in zip(calls, blocks_s, strict=True):
            times_s.append(_block_s(call))
    step_s, reset_s = (float(np.median(times_s)) / BLOCK_CALLS for times_s in blocks_s)
    return 1e6 * step_s, 1e6 * reset_s


def _block_s(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(BLOCK_CALLS):
        call()
    return time.perf_counter() - begin

"""Measures steps per second of the simulator, with observations, rewards, lap counting and autoreset."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotlap.envs.racer import RacerEnv
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName, num_observations
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import MAX_THREADS, default_threads
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.golden_traces import scripted_actions

# New actions are computed between the timed blocks, so that cars drive instead of scraping along walls.
HOLD_TICKS = 10
WARMUP_TICKS = 300  # spreads the cars over the track
BLOCK_CALLS = 100
BATCH_CONFIG = {"episode": {"start": "random"}}


@dataclass(frozen=True)
class SimSpeed:
    """Speed of the vector environment and of a single one through their Gymnasium interface, and the settings."""

    steps_per_sec: float
    num_envs: int
    threads: int | None  # None on a GPU
    device: str
    track: str
    observation: str
    seconds: float
    single_env_steps_per_sec: float | None  # these three are of the CPU
    step_usec: float | None
    reset_usec: float | None
    cars_per_race: int | None = None  # None where no car has another on its road


def check_setting(device: str, seconds: float) -> None:
    """ConfigError for a device that is not known, or a measurement too short or too long."""
    if device not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu' or 'cuda', got {device!r:.40}.")
    if not 0.1 <= seconds <= 3600.0:
        raise ConfigError(f"seconds must be from 0.1 to 3600, got {seconds:g}.")


def choose_threads(threads: int | None) -> int:
    """The number of threads, by default one per core; ConfigError where there are fewer."""
    chosen = threads if threads is not None else min(default_threads(), MAX_THREADS)
    if not 1 <= chosen <= MAX_THREADS:
        raise ConfigError(f"threads must be from 1 to this machine's {MAX_THREADS}, got {chosen}.")
    return chosen


def measure_sim(
    num_envs: int,
    threads: int | None,
    device: str,
    track_id: str,
    seconds: float,
    observation: ObservationName = DEFAULT_OBSERVATION,
) -> SimSpeed:
    """Step `num_envs` cars for about `seconds` on `threads` threads (None: all cores) or on a GPU.

    On the CPU a single `RacerEnv` is measured too.
    """
    check_setting(device, seconds)
    num_observations(observation)  # an unknown one is an error
    if device == "cuda":
        rate = cuda_rate(num_envs, track_id, seconds, observation=observation)
        return SimSpeed(rate, num_envs, None, device, track_id, observation, seconds, None, None, None)
    chosen = choose_threads(threads)
    env = RacerVectorEnv(num_envs, track_id, BATCH_CONFIG, num_threads=chosen, observation=observation)
    step_usec, reset_usec = _single_costs(track_id, observation, seconds / 4.0)
    return SimSpeed(
        steps_per_sec=_batch_rate(env, seconds),
        num_envs=num_envs,
        threads=chosen,
        device=device,
        track=track_id,
        observation=observation,
        seconds=seconds,
        single_env_steps_per_sec=1e6 / step_usec,
        step_usec=step_usec,
        reset_usec=reset_usec,
    )


def _batch_rate(env: RacerVectorEnv, seconds: float) -> float:
    """Steps per second in the median block of ticks, which other load on the machine affects little."""
    obs, _ = env.reset(seed=0)
    for tick in range(WARMUP_TICKS):
        obs, *_ = env.step(scripted_actions(obs, tick))
    blocks_s: list[float] = []
    while sum(blocks_s) < seconds:
        actions = scripted_actions(obs, WARMUP_TICKS + len(blocks_s) * HOLD_TICKS)
        begin_s = time.perf_counter()
        for _ in range(HOLD_TICKS):
            obs, *_ = env.step(actions)
        blocks_s.append(time.perf_counter() - begin_s)
    return HOLD_TICKS * env.num_envs / float(np.median(blocks_s))


def cuda_rate(
    num_cars: int,
    track_id: str,
    seconds: float,
    repeat: int = 1,
    observation: ObservationName = DEFAULT_OBSERVATION,
) -> float:
    """Steps of `repeat` ticks per second on the GPU, with everything that a learner reads written there.

    The median block of steps counts.
    """
    from hotlap.sim.batch_cuda import CudaCars, synchronize

    setting = RacerVectorEnv(1, track_id, BATCH_CONFIG, num_threads=1).fleet.scenario
    cars = CudaCars(setting, num_cars, num_observations(observation))
    states = np.zeros(num_cars, STATE_DTYPE)
    states["seed"] = np.arange(num_cars)
    cars.upload(states)
    cars.reset(np.ones(num_cars, np.bool_))

    def run_block(block: int) -> None:
        cars.actions.copy_to_device(scripted_actions(cars.batch.obs.copy_to_host(), block * HOLD_TICKS))  # type: ignore[attr-defined]
        synchronize()
        begin_s = time.perf_counter()
        for _ in range(HOLD_TICKS):
            cars.step(autoreset=True, repeat=repeat)
        synchronize()
        blocks_s.append(time.perf_counter() - begin_s)

    blocks_s: list[float] = []
    for block in range(WARMUP_TICKS // HOLD_TICKS):
        run_block(block)
    del blocks_s[:]
    while sum(blocks_s) < seconds:
        run_block(WARMUP_TICKS // HOLD_TICKS + len(blocks_s))
    return HOLD_TICKS * num_cars / float(np.median(blocks_s))


def _single_costs(track_id: str, observation: ObservationName, seconds: float) -> tuple[float, float]:
    """Microseconds per step and per reset of a `RacerEnv`, measured alternately under the same machine load."""
    env = RacerEnv(track_id, observation=observation)
    env.reset(seed=0)
    action = np.array([0.05, 0.5, 0.0], np.float32)
    calls: tuple[Callable[[], object], ...] = (lambda: env.step(action), env.reset)
    blocks_s: tuple[list[float], ...] = ([], [])
    begin_s = time.perf_counter()
    while time.perf_counter() - begin_s < seconds:
        for call, times_s in zip(calls, blocks_s, strict=True):
            times_s.append(_time_block(call))
    step_s, reset_s = (float(np.median(times_s)) / BLOCK_CALLS for times_s in blocks_s)
    return 1e6 * step_s, 1e6 * reset_s


def _time_block(call: Callable[[], object]) -> float:
    """Seconds that BLOCK_CALLS calls take."""
    begin_s = time.perf_counter()
    for _ in range(BLOCK_CALLS):
        call()
    return time.perf_counter() - begin_s

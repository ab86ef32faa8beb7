"""The world for N cars on K threads: the compiled calls that Python makes."""

import os
import threading
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hotlap.sim.compiling import entry_point, kernel, rare_kernel
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.vehicle import CAR_DTYPE
from hotlap.sim.world import INFO_DTYPE, NUM_OBSERVATIONS, STATE_DTYPE, begin_episode, describe, observe, tick

F = np.float32
ZERO = F(0.0)

ALL_FINE = -1

# As many as numba starts, which is one for each core unless NUMBA_NUM_THREADS says otherwise.
MAX_THREADS: int = getattr(numba.config, "NUMBA_NUM_THREADS", 1)

# numba's thread pool must not be entered from two Python threads at once.
_POOL_LOCK = threading.Lock()


class Batch(NamedTuple):
    """All a step reads and writes, for N cars; every array has N rows."""

    states: NDArray[np.void]
    obs: NDArray[np.float32]  # (N, 14)
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    infos: NDArray[np.void]
    final_obs: NDArray[np.float32]  # what a car saw last, where it was reset on this step
    final_infos: NDArray[np.void]


def make_batch(num_cars: int) -> Batch:
    """Room for `num_cars` cars, all zero."""
    return Batch(
        np.zeros(num_cars, STATE_DTYPE),
        np.zeros((num_cars, NUM_OBSERVATIONS), np.float32),
        np.zeros(num_cars, np.float32),
        np.zeros(num_cars, np.bool_),
        np.zeros(num_cars, np.bool_),
        np.zeros(num_cars, INFO_DTYPE),
        np.zeros((num_cars, NUM_OBSERVATIONS), np.float32),
        np.zeros(num_cars, INFO_DTYPE),
    )


@kernel
def is_finite(value):
    """False for NaN and the infinities."""
    return value - value == ZERO


@kernel
def find_bad_action(actions):
    """Index of the first car whose action is not finite, or ALL_FINE."""
    for i in range(actions.shape[0]):
        if not (is_finite(actions[i, 0]) and is_finite(actions[i, 1]) and is_finite(actions[i, 2])):
            return i
    return ALL_FINE


@kernel
def clear_info(info):
    """The info of a car that has not moved yet."""
    info.progress, info.speed, info.wall = ZERO, ZERO, ZERO
    info.offTrack, info.backward, info.stillness = ZERO, ZERO, ZERO
    info.wallContact = False
    info.lapTime = F(np.nan)
    info.lapClean = False


@kernel
def reset_car(i, ribbons, cars, rules, batch):
    """Begin car i's episode and observe it."""
    tracks, nodes, portals = ribbons
    me, info = batch.states[i], batch.infos[i]
    begin_episode(me, tracks, nodes, rules[0])
    clear_info(info)
    describe(me, info)
    info.rawSpeed = me.forward_mps
    observe(me, tracks, nodes, portals, cars, batch.obs[i])


@kernel
def add_before(info, before):
    """Add what the ticks `before` gave to a tick's info: terms and wall contact, and the lap if one ended in them."""
    progress, speed, wall, off_track, backward, stillness, wall_contact, lap_time_s, lap_clean = before
    info.progress, info.speed, info.wall = progress + info.progress, speed + info.speed, wall + info.wall
    info.offTrack, info.backward = off_track + info.offTrack, backward + info.backward
    info.stillness = stillness + info.stillness
    info.wallContact = wall_contact or info.wallContact
    if not is_finite(info.lapTime):  # no lap ended in the last tick
        info.lapTime, info.lapClean = lap_time_s, lap_clean


@rare_kernel
def hold_action(me, action, ribbons, cars, rules, info, so_far, num_ticks):
    """Up to `num_ticks` more ticks with the same action; `so_far` and the result: (reward, terminated, truncated)."""
    tracks, nodes, portals = ribbons
    reward, terminated, truncated = so_far
    for _ in range(num_ticks):
        if terminated or truncated:
            break
        terms = info.progress, info.speed, info.wall, info.offTrack, info.backward, info.stillness
        before = (*terms, info.wallContact, info.lapTime, info.lapClean)
        gain, terminated, truncated = tick(me, action, tracks, nodes, portals, cars, rules[0], info)
        reward += gain
        add_before(info, before)
    return reward, terminated, truncated


@kernel
def step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat):
    """Up to `repeat` ticks of car i with one action, seen and told as one step; its episode's end ends the step.

    With `autoreset` a car that ended starts its next episode at once, and drives it from the next step on.
    """
    tracks, nodes, portals = ribbons
    me, info = batch.states[i], batch.infos[i]
    result = tick(me, actions[i], tracks, nodes, portals, cars, rules[0], info)
    if repeat > 1:
        result = hold_action(me, actions[i], ribbons, cars, rules, info, result, repeat - 1)
    reward, terminated, truncated = result
    batch.rewards[i], batch.terminated[i], batch.truncated[i] = reward, terminated, truncated
    observe(me, tracks, nodes, portals, cars, batch.obs[i])
    if autoreset and (terminated or truncated):
        batch.final_infos[i] = info
        for k in range(NUM_OBSERVATIONS):
            batch.final_obs[i, k] = batch.obs[i, k]
        me.episode += 1
        reset_car(i, ribbons, cars, rules, batch)


@entry_point()
def reset_cars(mask, ribbons, cars, rules, batch):
    """Begin an episode for every car in `mask`."""
    for i in range(mask.shape[0]):
        if mask[i]:
            reset_car(i, ribbons, cars, rules, batch)


@entry_point()
def step_serial(actions, ribbons, cars, rules, batch, autoreset, repeat):
    """Step every car; returns ALL_FINE, or the first car with a bad action, and then nothing moved."""
    bad = find_bad_action(actions)
    if bad == ALL_FINE:
        for i in range(actions.shape[0]):
            step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat)
    return bad


@entry_point(parallel=True)
def step_parallel(actions, ribbons, cars, rules, batch, autoreset, repeat):
    """`step_serial` on numba's threads: the same bits."""
    bad = find_bad_action(actions)
    if bad == ALL_FINE:
        for i in prange(actions.shape[0]):
            step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat)
    return bad


@entry_point()
def observe_cars(ribbons, cars, batch):
    """Fill the observations of every car from its state."""
    tracks, nodes, portals = ribbons
    for i in range(batch.states.shape[0]):
        observe(batch.states[i], tracks, nodes, portals, cars, batch.obs[i])


def step(
    actions: NDArray[np.float32], world: tuple[Any, ...], batch: Batch, autoreset: bool, num_threads: int, repeat: int
) -> int:
    """`repeat` ticks with one action for all cars of `batch`; `world` is (ribbons, cars, rules)."""
    if num_threads <= 1:
        return int(step_serial(actions, *world, batch, autoreset, repeat))
    with _POOL_LOCK:
        numba.set_num_threads(min(num_threads, MAX_THREADS))
        return int(step_parallel(actions, *world, batch, autoreset, repeat))


def default_threads() -> int:
    """How many threads a batch uses unless told: one for each core this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def warm_up(parallel: bool = True) -> None:
    """Compile everything, or load it from disk, before anyone waits for a step."""
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(8, NODE_DTYPE), np.zeros(8, PORTAL_DTYPE))
    ribbons.tracks["num_nodes"], ribbons.tracks["step_m"], ribbons.tracks["length_m"] = 8, 1.0, 8.0
    world = (ribbons, np.ones(1, CAR_DTYPE), np.ones(1, RULES_DTYPE))
    batch = make_batch(0)
    actions = np.zeros((0, 3), np.float32)
    reset_cars(np.zeros(0, np.bool_), *world, batch)
    observe_cars(*world[:2], batch)
    step(actions, world, batch, False, 1, 1)
    if parallel:
        step(actions, world, batch, True, 2, 1)

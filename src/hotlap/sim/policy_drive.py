"""A policy drives N cars through their laps in compiled code: decisions, ticks and the counting of laps in one loop.

Cars do not meet, so each drives to its end by itself, on any thread, with the same bits.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.compilation import entry_point, rare_kernel
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.policy_forward import PackedPolicy, PolicyMemory, decide, make_memory, pack_policy
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.step import Batch, drive_car, is_finite, make_batch, see
from hotlap.sim.vehicle import CAR_DTYPE
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS

F = np.float32
ZERO, HALF = F(0.0), F(0.5)

# What is counted while a car drives. The distance is float64: it is summed over a whole drive.
DRIVE_DTYPE = np.dtype(
    [
        ("is_running", np.bool_),
        ("has_bad_action", np.bool_),
        ("touches_wall", np.bool_),
        ("num_contacts", np.int32),
        ("tick", np.int32),
        ("reward", np.float64),  # sum so far
        ("lap_m", np.float64),  # length of the lap
        ("arc_m", np.float64),  # arc length at the last tick
        ("distance_m", np.float64),  # backwards is negative
        ("mark_m", np.float64),  # the distance at which the car last got further,
        ("mark_tick", np.int32),  # and the tick
    ],
    align=True,
)


class DriveRules(NamedTuple):
    """When a car is done."""

    num_laps: int
    repeat: int  # ticks that an action is held
    stuck_after_ticks: int  # a car is stuck if it does not get
    stuck_within_m: float  # this much further within that time


class Drives(NamedTuple):
    """N drives and their laps; the lap of index k is the one numbered k + 1, and has ended if its tick is not 0."""

    cars: NDArray[np.void]  # (N,) DRIVE_DTYPE
    lap_ticks: NDArray[np.int32]  # (N, num_laps)
    lap_times_s: NDArray[np.float32]
    lap_clean: NDArray[np.bool_]


def begin_drives(batch: Batch, lap_m: NDArray[np.float64], num_laps: int) -> Drives:
    """Drives of cars that were just reset, on laps of these lengths (N,)."""
    num_cars = len(batch.states)
    cars = np.zeros(num_cars, DRIVE_DTYPE)
    cars["is_running"], cars["lap_m"], cars["arc_m"] = True, lap_m, batch.states["arc_m"]
    shape = (num_cars, num_laps)
    return Drives(cars, np.zeros(shape, np.int32), np.zeros(shape, F), np.zeros(shape, np.bool_))


@rare_kernel
def count_tick(i, rules, batch, drives):
    """Count the last tick of car i, and whether it was its last."""
    drive, me, info = drives.cars[i], batch.states[i], batch.infos[i]
    drive.tick += 1
    drive.reward += batch.rewards[i]
    if info.wallContact and not drive.touches_wall:
        drive.num_contacts += 1
    drive.touches_wall = info.wallContact
    if is_finite(info.lapTime):
        lap = info.lap - 2
        drives.lap_ticks[i, lap] = drive.tick
        drives.lap_times_s[i, lap] = info.lapTime
        drives.lap_clean[i, lap] = info.lapClean

    half_m = drive.lap_m * HALF
    moved_m = me.arc_m - drive.arc_m + half_m
    if moved_m < ZERO:
        moved_m += drive.lap_m
    elif moved_m >= drive.lap_m:
        moved_m -= drive.lap_m
    drive.distance_m += moved_m - half_m
    drive.arc_m = me.arc_m
    if drive.distance_m >= drive.mark_m + rules.stuck_within_m:
        drive.mark_m, drive.mark_tick = drive.distance_m, drive.tick
    is_stuck = drive.tick - drive.mark_tick > rules.stuck_after_ticks
    drive.is_running = not (me.lap > rules.num_laps or batch.terminated[i] or is_stuck)


@rare_kernel
def drive_on(i, worker, policy, memory, rules, ribbons, cars, episode_rules, batch, drives, num_ticks):
    """Up to `num_ticks` ticks of car i; it stops when it is done, or before an action that is not finite."""
    drive, action = drives.cars[i], memory.actions[i]
    for _ in range(num_ticks):
        if not drive.is_running:
            break
        if drive.tick % rules.repeat == 0:
            # Nobody looks between two decisions, so the rays need not be cast on every tick.
            see(i, ribbons, cars, episode_rules, batch, batch.obs[i])
            decide(policy, batch.obs[i], memory.history[i], memory.work[worker], action)
            if not (is_finite(action[0]) and is_finite(action[1]) and is_finite(action[2])):
                drive.has_bad_action, drive.is_running = True, False
                break
        drive_car(i, memory.actions, ribbons, cars, episode_rules, batch, 1)
        count_tick(i, rules, batch, drives)
    see(i, ribbons, cars, episode_rules, batch, batch.obs[i])


@entry_point()
def drive_cars(worker, policy, memory, rules, ribbons, cars, episode_rules, batch, drives, num_ticks):
    """Up to `num_ticks` ticks of every running car of a worker; each has an equal part of the cars."""
    num_cars, num_workers = batch.states.shape[0], memory.work.shape[0]
    for i in range(worker * num_cars // num_workers, (worker + 1) * num_cars // num_workers):
        if drives.cars[i].is_running:
            drive_on(i, worker, policy, memory, rules, ribbons, cars, episode_rules, batch, drives, num_ticks)


def drive_further(
    policy: PackedPolicy,
    memory: PolicyMemory,
    rules: DriveRules,
    scenario: Scenario,
    batch: Batch,
    drives: Drives,
    num_ticks: int,
) -> int:
    """Drive all cars by up to `num_ticks` ticks, each worker of the memory on its own thread.

    Returns ALL_FINE, or the first car whose action is not finite.
    """

    def work(worker: int) -> None:
        drive_cars(worker, policy, memory, rules, *scenario, batch, drives, num_ticks)

    num_workers = len(memory.work)
    if num_workers == 1:
        work(0)
    else:
        # Not numba's threads: Python's may be used after a fork and from several threads, and do not slow down torch's.
        with ThreadPoolExecutor(num_workers) as pool:
            list(pool.map(work, range(num_workers)))
    bad = np.flatnonzero(drives.cars["has_bad_action"])
    return int(bad[0]) if len(bad) else ALL_FINE


def warm_up() -> None:
    """Compile the loop, or load it from the disk cache, before the first drive."""
    layer = np.zeros((NUM_ACTIONS, NUM_OBSERVATIONS), F), np.zeros(NUM_ACTIONS, F)
    policy = pack_policy([layer], activation="tanh", bounds=(np.zeros(NUM_ACTIONS, F), np.ones(NUM_ACTIONS, F)))
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(1, NODE_DTYPE), np.zeros(1, PORTAL_DTYPE))
    scenario, batch = Scenario(ribbons, np.zeros(1, CAR_DTYPE), np.zeros(1, RULES_DTYPE)), make_batch(0)
    drives = begin_drives(batch, np.zeros(0), num_laps=1)
    drive_further(policy, make_memory(policy, 0), DriveRules(1, 1, 1, 1.0), scenario, batch, drives, 1)

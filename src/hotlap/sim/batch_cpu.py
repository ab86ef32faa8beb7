"""The CPU engine: `step.py` over N cars on threads. These are the compiled functions that Python calls."""

import os
import threading

import numba
import numpy as np
from numba import prange
from numba.np.ufunc import parallel as numba_parallel
from numpy.typing import NDArray

from hotlap.sim.compilation import entry_point, kernel
from hotlap.sim.domain import equip_if_drawn
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.step import Batch, is_finite, make_batch, reset_car, see, step_car
from hotlap.sim.vehicle import CAR_DTYPE
from hotlap.sim.world import NUM_OBSERVATIONS

# The size of numba's thread pool: one thread per core unless NUMBA_NUM_THREADS is set.
MAX_THREADS: int = getattr(numba.config, "NUMBA_NUM_THREADS", 1)


class _ThreadPool:
    """numba's threads. They must not be entered from two Python threads at once, and do not exist after a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_usable = True

    def forget_threads(self) -> None:
        """In a forked child: the parent's threads are gone, and numba would abort the process or wait for them."""
        self.lock = threading.Lock()  # a thread that no longer exists may have held it
        # Another user of numba may have started the threads, so ask numba; if it cannot say, assume they ran.
        self.is_usable = self.is_usable and not getattr(numba_parallel, "_is_initialized", True)


_POOL = _ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget_threads)


@kernel
def find_bad_action(actions):
    """Index of the first car whose action is not finite, or ALL_FINE."""
    for i in range(actions.shape[0]):
        if not (is_finite(actions[i, 0]) and is_finite(actions[i, 1]) and is_finite(actions[i, 2])):
            return i
    return ALL_FINE


@entry_point()
def reset_cars(mask, ribbons, cars, rules, batch):
    """Begin an episode for every car in `mask`."""
    for i in range(mask.shape[0]):
        if mask[i]:
            reset_car(i, ribbons, cars, rules, batch)


@entry_point()
def step_serial(actions, ribbons, cars, rules, batch, autoreset, repeat):
    """Step every car; returns ALL_FINE, or the first car with a bad action, in which case no car moved."""
    bad = find_bad_action(actions)
    if bad == ALL_FINE:
        for i in range(actions.shape[0]):
            step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat)
    return bad


@entry_point(parallel=True)
def step_parallel(actions, ribbons, cars, rules, batch, autoreset, repeat):
    """`step_serial` on numba's threads, bit-identical to it."""
    bad = find_bad_action(actions)
    if bad == ALL_FINE:
        for i in prange(actions.shape[0]):
            step_car(i, actions, ribbons, cars, rules, batch, autoreset, repeat)
    return bad


@entry_point()
def observe_cars(ribbons, cars, rules, batch):
    """Fill the observations of every car from its state, and its record where cars have their own."""
    for i in range(batch.states.shape[0]):
        equip_if_drawn(i, cars, rules, batch)
        see(i, ribbons, cars, rules, batch, batch.obs[i])


class CpuEngine:
    """Steps cars on `num_threads` threads; with one, or in a child forked after threads ran, in the calling thread."""

    def __init__(self, num_threads: int = 1) -> None:
        self.num_threads = min(num_threads, MAX_THREADS)

    def make_batch(self, num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> Batch:
        """A batch of `num_cars` cars, all zero."""
        return make_batch(num_cars, num_observations)

    def reset(self, mask: NDArray[np.bool_], scenario: Scenario, batch: Batch) -> None:
        """Begin an episode for every car in `mask`."""
        reset_cars(mask, *scenario, batch)

    def step(
        self, actions: NDArray[np.float32], scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int
    ) -> int:
        """Up to `repeat` ticks with one action for every car; ALL_FINE, or the first car with a bad action."""
        if self.num_threads == 1 or not _POOL.is_usable:
            return int(step_serial(actions, *scenario, batch, autoreset, repeat))
        with _POOL.lock:
            numba.set_num_threads(self.num_threads)
            return int(step_parallel(actions, *scenario, batch, autoreset, repeat))

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        """Fill the observations of every car from its state."""
        observe_cars(*scenario, batch)


def default_threads() -> int:
    """The default number of threads: one per core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def warm_up(parallel: bool = True) -> None:
    """Compile everything, or load it from the disk cache, before the first step."""
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(8, NODE_DTYPE), np.zeros(8, PORTAL_DTYPE))
    ribbons.tracks["num_nodes"], ribbons.tracks["step_m"], ribbons.tracks["length_m"] = 8, 1.0, 8.0
    scenario = Scenario(ribbons, np.ones(1, CAR_DTYPE), np.ones(1, RULES_DTYPE))
    batch, actions = make_batch(0), np.zeros((0, 3), np.float32)
    reset_cars(np.zeros(0, np.bool_), *scenario, batch)
    observe_cars(*scenario, batch)
    step_serial(actions, *scenario, batch, False, 1)
    if parallel and _POOL.is_usable:
        with _POOL.lock:
            step_parallel(actions, *scenario, batch, True, 1)

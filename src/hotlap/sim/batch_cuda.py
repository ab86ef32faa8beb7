"""`step.py` over N cars on a GPU, with the CPU's bits: one thread per car drives, then one thread per ray observes.

Rays take more than half of a step, and they differ in length. Neighbouring threads handle the nine rays of one car; one
thread per car was a third slower (docs/gpu.md has the figures).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, from_dtype, types
from numpy.typing import NDArray

from hotlap.errors import CudaError
from hotlap.sim.compilation import kernel
from hotlap.sim.cuda_compilation import exact_kernel
from hotlap.sim.domain import disturb_if_noisy, equip_if_drawn, make_actions, own_place
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.maths import sin_cos
from hotlap.sim.rays import NUM_RAYS
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.road_view import count_points, direction_before, reach_of, view_point, view_position
from hotlap.sim.step import Batch, drive_car, finish_episode, is_finite, make_batch, restart_car
from hotlap.sim.vehicle import CAR_DTYPE
from hotlap.sim.world import INFO_DTYPE, NUM_OBSERVATIONS, STATE_DTYPE, observe_motion, observe_ray

THREADS_PER_BLOCK = 64
MIN_COMPUTE_CAPABILITY = (7, 0)
# In device memory the number of the first car with a bad action; this where there is none.
NO_BAD_CAR = np.uint32(0xFFFFFFFF)


def find_problem() -> str | None:
    """Why cars cannot be stepped on a GPU here, and what to install; None where they can."""
    try:
        if not cuda.is_available():
            return "no NVIDIA GPU with a working driver was found. Use --device cpu."
        capability = cuda.get_current_device().compute_capability
    except Exception as error:  # a missing or broken CUDA library raises whatever it likes
        return (
            f"CUDA does not work here ({' '.join(str(error).split())[:200]}). Install hotlap[gpu], or use --device cpu."
        )
    if tuple(capability) < MIN_COMPUTE_CAPABILITY:
        return f"the GPU's compute capability is {capability[0]}.{capability[1]}; 7.0 is needed. Use --device cpu."
    return None


def _drive(actions, ribbons, cars, rules, batch, bad_car, autoreset, repeat):
    i = cuda.grid(1)
    if i < actions.shape[0]:
        if bad_car[0] == NO_BAD_CAR:
            has_ended = drive_car(i, actions, ribbons, cars, rules, batch, repeat)
            if autoreset and has_ended:
                finish_episode(i, ribbons, cars, rules, batch)
        place = own_place(i, cars)
        observe_motion(batch.states[i], ribbons[0], cars[place : place + 1], batch.obs[i])


@kernel
def split_thread(thread, threads_per_car):
    """The car of a thread, and the thread's number within the car. In 32 bits: 64-bit division is slow on a GPU."""
    thread, threads_per_car = np.uint32(thread), np.uint32(threads_per_car)
    return np.uint32(thread // threads_per_car), np.int32(thread % threads_per_car)


@kernel
def look(i, ray, ribbons, batch):
    """Fill the observation of one ray of car i."""
    me = batch.states[i]
    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    batch.obs[i, ray] = observe_ray(me, ribbons[0], ribbons[2], ray, cos_yaw, sin_yaw)


def _look(ribbons, batch):
    i, ray = split_thread(cuda.grid(1), NUM_RAYS)
    if i < batch.states.shape[0]:
        look(i, ray, ribbons, batch)


@kernel
def view(i, point, ribbons, batch):
    """Fill the observation of one point of the road ahead of car i; the first one's thread also of its position."""
    me, nodes, columns = batch.states[i], ribbons[1], batch.obs[i, NUM_OBSERVATIONS:]
    track = ribbons[0][me.track]
    sin_yaw, cos_yaw = sin_cos(me.yaw_rad)
    if point == 0:
        view_position(me, track, nodes, sin_yaw, cos_yaw, columns)
    num_points = count_points(columns.shape[0])
    reach_m = reach_of(me, num_points)
    x, y = direction_before(me, track, nodes, point, num_points, reach_m)
    view_point(me, track, nodes, point, reach_m, sin_yaw, cos_yaw, x, y, columns)


def _view(ribbons, batch):
    i, point = split_thread(cuda.grid(1), count_points(batch.obs.shape[1] - NUM_OBSERVATIONS))
    if i < batch.states.shape[0]:
        view(i, point, ribbons, batch)


def _reset(mask, ribbons, cars, rules, batch):
    i = cuda.grid(1)
    if i < mask.shape[0]:
        if mask[i]:
            restart_car(i, ribbons, cars, rules, batch)
        equip_if_drawn(i, cars, rules, batch)
        place = own_place(i, cars)
        observe_motion(batch.states[i], ribbons[0], cars[place : place + 1], batch.obs[i])


def _disturb(rules, batch):
    i = cuda.grid(1)
    if i < batch.states.shape[0]:
        disturb_if_noisy(batch.states[i], rules, batch.obs[i])


def _check(actions, bad_car):
    i = cuda.grid(1)
    if i < actions.shape[0] and not (
        is_finite(actions[i, 0]) and is_finite(actions[i, 1]) and is_finite(actions[i, 2])
    ):
        cuda.atomic.min(bad_car, 0, np.uint32(i))


def array_type(dtype: Any, ndim: int = 1) -> Any:
    """Numba's type of a contiguous array."""
    return types.Array(from_dtype(np.dtype(dtype)), ndim, "C")


def ribbons_type() -> Any:
    """Numba's type of `Ribbons`."""
    return types.NamedTuple((array_type(TRACK_DTYPE), array_type(NODE_DTYPE), array_type(PORTAL_DTYPE)), Ribbons)


def batch_type() -> Any:
    """Numba's type of a `Batch`."""
    floats, table, flags = array_type(np.float32), array_type(np.float32, 2), array_type(np.bool_)
    states, infos = array_type(STATE_DTYPE), array_type(INFO_DTYPE)
    return types.NamedTuple((states, table, floats, flags, flags, infos, table, infos), Batch)


class _Kernels(NamedTuple):
    drive: Any
    reset: Any
    disturb: Any


class _SharedKernels(NamedTuple):
    look: Any
    view: Any
    check: Any


@lru_cache(maxsize=1)
def _kernels() -> _Kernels:
    """The kernels that move cars, compiled for the GPU in use."""
    ribbons, batch, table, flags = ribbons_type(), batch_type(), array_type(np.float32, 2), array_type(np.bool_)
    cars, rules, bad_car = array_type(CAR_DTYPE), array_type(RULES_DTYPE), array_type(np.uint32)
    return _Kernels(
        exact_kernel(_drive, (table, ribbons, cars, rules, batch, bad_car, types.boolean, types.int64)),
        exact_kernel(_reset, (flags, ribbons, cars, rules, batch)),
        exact_kernel(_disturb, (rules, batch)),
    )


@lru_cache(maxsize=1)
def _shared_kernels() -> _SharedKernels:
    """The kernels that cars alone and cars of a race share, compiled for the GPU in use."""
    ribbons, batch = ribbons_type(), batch_type()
    return _SharedKernels(
        exact_kernel(_look, (ribbons, batch)),
        exact_kernel(_view, (ribbons, batch)),
        exact_kernel(_check, (array_type(np.float32, 2), array_type(np.uint32))),
    )


class CudaBatch:
    """A batch in the memory of a GPU, and what does not depend on how its cars move.

    `batch` has the arrays of a `Batch`, and `actions` is (num_cars, 3), or wider where they arrive late. All have
    `__cuda_array_interface__`, so that torch uses them without a copy.
    """

    def __init__(self, scenario: Scenario, num_cars: int, num_observations: int) -> None:
        problem = find_problem()
        if problem:
            raise CudaError(f"--device cuda: {problem}")
        self.num_cars, self.num_observations = num_cars, num_observations
        self._shared = _shared_kernels()
        self._ribbons = Ribbons(*(cuda.to_device(array) for array in scenario.ribbons))
        self._cars, self._rules = cuda.to_device(scenario.cars), cuda.to_device(scenario.rules)
        self.batch = Batch(*(cuda.to_device(array) for array in make_batch(num_cars, num_observations)))
        self.actions = cuda.to_device(make_actions(num_cars, int(scenario.rules["delay_high_ticks"][0])))
        self._bad_car = cuda.to_device(np.full(1, NO_BAD_CAR, np.uint32))
        self._no_bad_car = cuda.to_device(np.full(1, NO_BAD_CAR, np.uint32))

    def set_rules(self, rules: NDArray[np.void]) -> None:
        """Drive by these rules from now on."""
        self._rules.copy_to_device(rules)
        self._is_noisy = bool(rules["observation_noise"][0] > 0.0)

    def upload_ribbon(self, ribbons: Ribbons, parts: tuple[slice, slice, slice]) -> None:
        """Copy these parts of the arrays of `ribbons` into those on the GPU, which stay where they are."""
        for target, part, source in zip(self._ribbons, parts, ribbons, strict=True):
            target[part].copy_to_device(source[part])  # type: ignore[attr-defined]

    def upload(self, states: NDArray[np.void]) -> None:
        """Put the cars into these states (num_cars,)."""
        self.batch.states.copy_to_device(states)  # type: ignore[attr-defined]

    def download(self) -> NDArray[np.void]:
        """The states of the cars; waits for the GPU."""
        states: NDArray[np.void] = self.batch.states.copy_to_host()  # type: ignore[attr-defined]
        return states

    def _check(self, stream: Any) -> None:
        """Launch what looks for actions that are not finite; kernels that move cars then move none."""
        self._bad_car.copy_to_device(self._no_bad_car, stream=stream)
        self._shared.check[self._blocks(1), THREADS_PER_BLOCK, stream](self.actions, self._bad_car)

    def _look(self, stream: Any) -> None:
        """Launch what observes the road: its walls by rays, and its course where the observation has it."""
        self._shared.look[self._blocks(NUM_RAYS), THREADS_PER_BLOCK, stream](self._ribbons, self.batch)
        if self.num_observations > NUM_OBSERVATIONS:
            self.view(self.batch.obs, stream)

    def make_observations(self, num_columns: int) -> Any:
        """Room for another observation of the cars."""
        return cuda.to_device(np.zeros((self.num_cars, num_columns), np.float32))

    def view(self, obs: Any, stream: Any = 0) -> None:
        """Launch what fills the columns of the road's course in observations, of the version they have room for."""
        num_points = count_points.py_func(obs.shape[1] - NUM_OBSERVATIONS)
        batch = self.batch._replace(obs=obs)
        self._shared.view[self._blocks(num_points), THREADS_PER_BLOCK, stream](self._ribbons, batch)

    def find_bad_car(self) -> int:
        """The first car whose action was not finite in the last step, or ALL_FINE; waits for the GPU."""
        bad_car = int(self._bad_car.copy_to_host()[0])
        return ALL_FINE if bad_car == NO_BAD_CAR else bad_car

    def _blocks(self, threads_per_car: int) -> int:
        return max(1, -(-self.num_cars * threads_per_car // THREADS_PER_BLOCK))


class CudaCars(CudaBatch):
    """Cars in the memory of a GPU, each alone on its road."""

    def __init__(self, scenario: Scenario, num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> None:
        super().__init__(scenario, num_cars, num_observations)
        self._kernels = _kernels()
        self._is_noisy = bool(scenario.rules["observation_noise"][0] > 0.0)

    def upload_records(self, cars: NDArray[np.void]) -> None:
        """Give cars that differ these records."""
        self._cars.copy_to_device(cars)

    def download_records(self) -> NDArray[np.void]:
        """The records of the cars; waits for the GPU."""
        records: NDArray[np.void] = self._cars.copy_to_host()
        return records

    def reset(self, mask: NDArray[np.bool_], stream: Any = 0) -> None:
        """Begin an episode for every car in `mask`; the others are observed as they are."""
        kernels = self._kernels
        on_device = cuda.to_device(mask, stream=stream)
        arguments = (self._ribbons, self._cars, self._rules, self.batch)
        kernels.reset[self._blocks(1), THREADS_PER_BLOCK, stream](on_device, *arguments)
        self._observe(stream)

    def step(self, *, autoreset: bool, repeat: int, check_actions: bool = True, stream: Any = 0) -> None:
        """Up to `repeat` ticks with `actions`; where one of them is not finite, no car moves (see `find_bad_car`).

        Without `check_actions` the caller guarantees that they are finite. The call only launches kernels, so it can be
        captured in a CUDA graph; the results are valid when the stream has finished them.
        """
        kernels, blocks = self._kernels, self._blocks(1)
        if check_actions:
            self._check(stream)
        kernels.drive[blocks, THREADS_PER_BLOCK, stream](
            self.actions, self._ribbons, self._cars, self._rules, self.batch, self._bad_car, autoreset, repeat
        )
        self._observe(stream)

    def _observe(self, stream: Any) -> None:
        """Launch what observes the road, and what adds noise where there is some."""
        self._look(stream)
        if self._is_noisy:
            self._kernels.disturb[self._blocks(1), THREADS_PER_BLOCK, stream](self._rules, self.batch)


class _Bytes:
    """A contiguous device array as plain bytes: torch knows neither records nor, through this interface, flags."""

    def __init__(self, array: Any) -> None:
        self._owner = array
        interface = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {
            "shape": (array.size * array.dtype.itemsize,),
            "typestr": "|u1",
            "data": interface["data"],
            "version": 3,
            "strides": None,
        }


def as_bytes(array: Any) -> _Bytes:
    """An array of a `CudaCars` batch as bytes (`__cuda_array_interface__`), without a copy."""
    return _Bytes(array)


def stream_of(handle: int) -> Any:
    """The stream of another library, by its handle, for `CudaCars.step` and `CudaCars.reset`."""
    return cuda.external_stream(handle)


def synchronize() -> None:
    """Wait until the GPU has done all that was launched."""
    cuda.synchronize()

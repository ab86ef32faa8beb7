"""What callbacks read about a rollout that was collected as tensors: laps and ended episodes, decision by decision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap.envs.infos import REWARD_KEYS, Info, step_info
from hotlap.learning.distributed.processes import Processes
from hotlap.sim.world import INFO_DTYPE
from hotlap.training.algorithms.tensor_rollout import TensorRollout

# One event as the processes of a run send it to each other.
_SENT_DTYPE = np.dtype(
    [("step", "<i8"), ("car", "<i8"), ("info", INFO_DTYPE), ("has_ended", "?"), ("return", "<f8"), ("length", "<i8")]
)
_LAP_TIME = INFO_DTYPE.fields["lapTime"][1] // 4  # type: ignore[index]


@dataclass(frozen=True)
class StepEvents:
    """The cars that finished a lap or an episode on one step, one row each."""

    cars: NDArray[np.int64]
    infos: NDArray[np.void]  # INFO_DTYPE
    has_ended: NDArray[np.bool_]
    returns: NDArray[np.float64]  # of the episode so far
    lengths: NDArray[np.int64]

    def episodes(self) -> Iterator[tuple[float, int]]:
        """Return and length of the episodes that ended."""
        ended = self.has_ended
        return zip(self.returns[ended].round(6).tolist(), self.lengths[ended].tolist(), strict=True)


class SparseInfos(Sequence[Info]):
    """One info per environment, as `RacerVecEnv` fills them: empty but for those in `events`."""

    def __init__(self, num_envs: int, events: StepEvents, elapsed_s: float) -> None:
        self._num_envs, self.events, self._elapsed_s = num_envs, events, elapsed_s

    def __len__(self) -> int:
        return self._num_envs

    @overload
    def __getitem__(self, index: int) -> Info: ...
    @overload
    def __getitem__(self, index: slice) -> list[Info]: ...
    def __getitem__(self, index: int | slice) -> Info | list[Info]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._num_envs))]
        if not -self._num_envs <= index < self._num_envs:
            raise IndexError(index)
        events = self.events
        row = int(np.searchsorted(events.cars, index % self._num_envs))
        if row == len(events.cars) or events.cars[row] != index % self._num_envs:
            return {}
        info = step_info(events.infos[row].item())
        if events.has_ended[row]:
            info["episode"] = self.episode(round(float(events.returns[row]), 6), int(events.lengths[row]))
        return info

    def episode(self, episode_return: float, length: int) -> Info:
        """What stable-baselines3's `Monitor` tells about an episode that ended on this step."""
        return {"r": episode_return, "l": length, "t": self._elapsed_s}


class RolloutEvents:
    """The laps and ended episodes of some decisions of a rollout, brought to main memory in a few copies."""

    def __init__(self, rollout: TensorRollout, steps: slice) -> None:
        ended, infos = rollout.ended[steps], rollout.infos[steps]
        laps = infos[:, :, _LAP_TIME].view(torch.float32)
        rows, cars = torch.logical_or(ended, laps == laps).nonzero(as_tuple=True)
        self.dones: NDArray[np.bool_] = ended.cpu().numpy()
        self._reward_terms = rollout.reward_terms[steps].cpu().numpy()
        self._events = StepEvents(
            cars.cpu().numpy(),
            np.ascontiguousarray(infos[rows, cars].cpu().numpy()).view(INFO_DTYPE).reshape(-1),
            ended[rows, cars].cpu().numpy(),
            rollout.episode_returns[steps][rows, cars].cpu().numpy(),
            rollout.episode_lengths[steps][rows, cars].cpu().numpy(),
        )
        self._steps = rows.cpu().numpy()
        self._first_events = np.searchsorted(self._steps, np.arange(len(ended) + 1)).tolist()

    def gather(self, processes: Processes) -> None:
        """Add the events of the other processes; cars are then numbered over all of them."""
        num_steps, num_cars = self.dones.shape
        own, events = np.zeros(len(self._steps), _SENT_DTYPE), self._events
        own["step"], own["car"] = self._steps, events.cars + processes.rank * num_cars
        own["info"], own["has_ended"] = events.infos, events.has_ended
        own["return"], own["length"] = events.returns, events.lengths
        found = np.concatenate([np.frombuffer(part, _SENT_DTYPE) for part in processes.gather_bytes(own.tobytes())])
        found = found[np.argsort(found["step"], kind="stable")]
        self._steps = found["step"].copy()
        self._events = StepEvents(
            *(np.ascontiguousarray(found[name]) for name in ("car", "info", "has_ended", "return", "length"))
        )
        self._first_events = np.searchsorted(self._steps, np.arange(num_steps + 1)).tolist()
        self.dones = np.zeros((num_steps, num_cars * processes.size), np.bool_)
        self.dones[found["step"], found["car"]] = found["has_ended"]
        terms = torch.from_numpy(self._reward_terms.copy())
        processes.average(terms)
        self._reward_terms = terms.numpy()

    def infos(self, row: int, elapsed_s: float) -> SparseInfos:
        """The infos of one decision."""
        part = slice(*self._first_events[row : row + 2])
        events = self._events
        own = StepEvents(
            events.cars[part], events.infos[part], events.has_ended[part], events.returns[part], events.lengths[part]
        )
        return SparseInfos(self.dones.shape[1], own, elapsed_s)

    def reward_term_means(self, row: int) -> dict[str, float]:
        """The reward terms of one decision, each the mean over all cars."""
        return dict(zip(REWARD_KEYS, self._reward_terms[row].tolist(), strict=True))

"""What a learner tells about its steps: the laps and the episodes that ended."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap.envs.infos import REWARD_KEYS
from hotlap.learning.cars import Cars
from hotlap.learning.distributed.processes import Processes
from hotlap.learning.rollout import Rollout
from hotlap.sim.world import INFO_DTYPE

# One event, also as the processes of a run send it to each other.
_EVENT_DTYPE = np.dtype(
    [("step", "<i8"), ("car", "<i8"), ("info", INFO_DTYPE), ("has_ended", "?"), ("return", "<f8"), ("length", "<i8")]
)
_LAP_TIME = INFO_DTYPE.fields["lapTime"][1] // 4  # type: ignore[index]


@dataclass(frozen=True)
class StepEvents:
    """What happened in one step of all environments: the laps and episodes that ended, one row each."""

    num_timesteps: int  # decisions so far, this step included
    envs: NDArray[np.int64]
    has_ended: NDArray[np.bool_]  # whether the episode ended; else a lap
    returns: NDArray[np.float64]  # of the episode so far
    lengths: NDArray[np.int64]
    infos: NDArray[np.void] | None = None  # INFO_DTYPE; None for environments other than our cars
    reward_terms: Mapping[str, float] = field(default_factory=dict)  # each the mean over all cars
    successes: tuple[bool, ...] = ()  # of the episodes that ended, where the environment tells

    def episodes(self) -> Iterator[tuple[float, int]]:
        """Return and length of the episodes that ended."""
        ended = self.has_ended
        return zip(self.returns[ended].round(6).tolist(), self.lengths[ended].tolist(), strict=True)


OnStep = Callable[[StepEvents], bool]  # is told a step; False ends the rollout


def step_events(cars: Cars, num_timesteps: int) -> StepEvents:
    """Those of the last step of cars in main memory."""
    ended, infos = cars.ended.numpy(), cars.infos.numpy().view(INFO_DTYPE).reshape(-1)
    rows = np.flatnonzero(ended | ~np.isnan(infos["lapTime"]))
    terms = cars.infos[:, : len(REWARD_KEYS)].view(torch.float32).mean(0).tolist()
    return StepEvents(
        num_timesteps,
        rows,
        ended[rows],
        cars.episode_returns.numpy()[rows],
        cars.episode_lengths.numpy()[rows],
        infos[rows],
        dict(zip(REWARD_KEYS, terms, strict=True)),
    )


class RolloutEvents:
    """The laps and ended episodes of a rollout of all processes, brought to main memory in a few copies.

    Cars are numbered over all processes.
    """

    def __init__(self, rollout: Rollout, processes: Processes) -> None:
        ended, infos = rollout.ended, rollout.infos
        laps = infos[:, :, _LAP_TIME].view(torch.float32)
        rows, cars = torch.logical_or(ended, laps == laps).nonzero(as_tuple=True)  # NaN where no lap ended
        own = np.zeros(len(rows), _EVENT_DTYPE)
        own["step"] = rows.cpu().numpy()
        own["car"] = cars.cpu().numpy() + processes.rank * ended.shape[1]
        own["info"] = np.ascontiguousarray(infos[rows, cars].cpu().numpy()).view(INFO_DTYPE).reshape(-1)
        own["has_ended"] = ended[rows, cars].cpu().numpy()
        own["return"] = rollout.episode_returns[rows, cars].cpu().numpy()
        own["length"] = rollout.episode_lengths[rows, cars].cpu().numpy()
        terms = rollout.reward_terms.cpu()
        if not processes.is_alone:
            own = np.concatenate([np.frombuffer(each, _EVENT_DTYPE) for each in processes.gather_bytes(own.tobytes())])
            own = own[np.argsort(own["step"], kind="stable")]
            processes.average(terms := terms.clone())
        self._events, self._reward_terms = own, terms.numpy()
        self._first_rows = np.searchsorted(own["step"], np.arange(len(ended) + 1)).tolist()

    def at(self, row: int, num_timesteps: int) -> StepEvents:
        """Those of one decision."""
        part = self._events[slice(*self._first_rows[row : row + 2])]
        terms = dict(zip(REWARD_KEYS, self._reward_terms[row].tolist(), strict=True))
        return StepEvents(
            num_timesteps, part["car"], part["has_ended"], part["return"], part["length"], part["info"], terms
        )

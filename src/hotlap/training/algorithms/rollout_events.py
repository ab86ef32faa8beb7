"""What callbacks read about a rollout that was collected as tensors: laps and ended episodes, decision by decision."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap.envs.infos import REWARD_KEYS, Info, step_info
from hotlap.sim.world import INFO_DTYPE
from hotlap.training.algorithms.tensor_rollout import TensorRollout

_LAP_TIME = INFO_DTYPE.fields["lapTime"][1] // 4  # type: ignore[index]


class SparseInfos(Sequence[Info]):
    """One info per environment, most of them empty; `items` gives those that are not."""

    def __init__(self, num_envs: int, filled: dict[int, Info]) -> None:
        self._num_envs, self._filled = num_envs, filled

    def items(self) -> Iterator[tuple[int, Info]]:
        """The environments with an info, and their infos."""
        return iter(self._filled.items())

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
        return self._filled.get(index % self._num_envs, {})


class RolloutEvents:
    """The laps and ended episodes of some decisions of a rollout, brought to main memory in a few copies."""

    def __init__(self, rollout: TensorRollout, steps: slice) -> None:
        ended = rollout.ended[steps]
        laps = rollout.infos[steps, :, _LAP_TIME].view(torch.float32)
        happened = torch.logical_or(ended, laps == laps)
        self.dones: NDArray[np.bool_] = ended.cpu().numpy()
        self.reward_terms: NDArray[np.float32] = rollout.reward_terms[steps].cpu().numpy()
        at = happened.nonzero()
        rows, cars = at[:, 0], at[:, 1]
        self._rows, self._cars = rows.cpu().numpy(), cars.cpu().numpy()
        self._first_events = np.searchsorted(self._rows, np.arange(len(ended) + 1))
        infos = rollout.infos[steps][rows, cars].cpu().numpy()
        self._infos = np.ascontiguousarray(infos).view(INFO_DTYPE).reshape(-1)
        self._returns = rollout.episode_returns[steps][rows, cars].cpu().numpy()
        self._lengths = rollout.episode_lengths[steps][rows, cars].cpu().numpy()

    def infos(self, row: int, elapsed_s: float) -> SparseInfos:
        """The infos of one decision: filled where a lap or an episode ended, as `RacerVecEnv` fills them."""
        filled: dict[int, Info] = {}
        dones = self.dones[row]
        for event in range(self._first_events[row], self._first_events[row + 1]):
            car = int(self._cars[event])
            info = step_info(self._infos[event].item())
            if dones[car]:
                episode: dict[str, Any] = {
                    "r": round(float(self._returns[event]), 6),
                    "l": int(self._lengths[event]),
                    "t": elapsed_s,
                }
                info |= {"episode": episode}
            filled[car] = info
        return SparseInfos(len(dones), filled)

    def reward_term_means(self, row: int) -> dict[str, float]:
        """The reward terms of one decision, each the mean over all cars."""
        return dict(zip(REWARD_KEYS, self.reward_terms[row].tolist(), strict=True))

"""The cars of a `RacerVecEnv` as tensors on one device: no copies, and no Python object per car."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotlap.envs.fleet import Fleet
from hotlap.sim.world import OBS_PROGRESS
from hotlap.training.vec_envs.racer import RacerVecEnv


class TensorCars:
    """Steps the cars of a `RacerVecEnv` on a device; the results are tensors with one row per car.

    The VecEnv owns the cars' state between rollouts: `load` takes it over and `store` gives it back, with the same bits
    from every device. A step writes into the same tensors each time, so it can be captured in a CUDA graph.
    """

    def __init__(self, env: RacerVecEnv, device: torch.device) -> None:
        self._env, self._device = env, device
        self._is_cuda = device.type == "cuda"
        self._engine: Any = _GpuEngine(env) if self._is_cuda else _HostEngine(env)
        num_cars, num_obs = env.num_envs, env.observation_space.shape[0]  # type: ignore[index]
        self.actions: Tensor = self._engine.actions  # (N, 3), read by `step`
        self.rewards: Tensor = self._engine.rewards
        self.obs = torch.zeros(num_cars, num_obs, device=device)  # not normalized
        self.final_obs = torch.zeros(num_cars, num_obs, device=device)  # valid where an episode ended
        self.ended = torch.zeros(num_cars, dtype=torch.bool, device=device)
        self.cut_off = torch.zeros(num_cars, dtype=torch.bool, device=device)  # ended by the time limit
        # Of the episode that ended; of the running one elsewhere. The return is float64, as `Monitor` sums it.
        self.episode_returns = torch.zeros(num_cars, dtype=torch.float64, device=device)
        self.episode_lengths = torch.zeros(num_cars, dtype=torch.int64, device=device)
        self.infos = torch.zeros_like(self._engine.infos)  # (N, …) the bits of INFO_DTYPE as int32
        self._frequencies_rad = 2.0 * torch.pi * torch.arange(1, env.lap_fourier + 1, device=device)
        arrays = env.episode_arrays
        self._history, self._returns, self._lengths = (torch.from_numpy(array).to(device) for array in arrays)

    def load(self) -> None:
        """Take over the state of the VecEnv."""
        arrays = [torch.from_numpy(array) for array in self._env.episode_arrays]
        if self._is_cuda:
            for mine, its in zip((self._history, self._returns, self._lengths), arrays, strict=True):
                mine.copy_(its)
        else:
            self._history, self._returns, self._lengths = arrays  # shared: the VecEnv is always up to date
        self._engine.load()
        self._write_features(self._history, self.obs)

    def store(self) -> None:
        """Give the state back to the VecEnv."""
        if self._is_cuda:
            arrays = map(torch.from_numpy, self._env.episode_arrays)
            for its, mine in zip(arrays, (self._history, self._returns, self._lengths), strict=True):
                its.copy_(mine)
        self._engine.store()

    def step(self) -> None:
        """One decision of every car with `actions`; where an episode ends, the next one begins."""
        engine = self._engine
        engine.step()
        torch.logical_or(engine.terminated, engine.truncated, out=self.ended)
        torch.gt(engine.truncated, engine.terminated, out=self.cut_off)
        self._count()
        if self._history.shape[1] > 1:
            self._history[:, :-1] = self._history[:, 1:].clone()
        if self._is_cuda:
            self._end_episodes()
        else:
            self._end_few_episodes()
        self._history[:, -1] = engine.obs
        self._write_features(self._history, self.obs)

    def _end_episodes(self) -> None:
        """Write the last observations and infos where an episode ended, and forget its history; no branches."""
        engine, ended = self._engine, self.ended[:, None]
        self._history[:, -1] = torch.where(ended, engine.final_obs, engine.obs)
        self._write_features(self._history, self.final_obs)
        self._history.masked_fill_(ended[:, :, None], 0.0)
        torch.where(ended, engine.final_infos, engine.infos, out=self.infos)

    def _end_few_episodes(self) -> None:
        """The same for the few cars whose episode ended, which is faster on the CPU."""
        engine = self._engine
        self.infos.copy_(engine.infos)
        rows = self.ended.nonzero().flatten()
        if len(rows):
            past = self._history[rows]
            past[:, -1] = engine.final_obs[rows]
            last = self.final_obs.new_empty(len(rows), self.final_obs.shape[1])
            self._write_features(past, last)
            self.final_obs[rows] = last
            self._history[rows] = 0.0
            self.infos[rows] = engine.final_infos[rows]

    def _count(self) -> None:
        self._returns.add_(self.rewards)
        self._lengths.add_(1)
        self.episode_returns.copy_(self._returns)
        self.episode_lengths.copy_(self._lengths)
        self._returns.masked_fill_(self.ended, 0.0)
        self._lengths.masked_fill_(self.ended, 0)

    def _write_features(self, history: Tensor, out: Tensor) -> None:
        """The stacked observations, then the sines and the cosines of the lap progress."""
        num_stacked, num_waves = history[0].numel(), len(self._frequencies_rad)
        out[:, :num_stacked] = history.flatten(1)
        if num_waves:
            angles = history[:, -1, OBS_PROGRESS, None] * self._frequencies_rad
            out[:, num_stacked : num_stacked + num_waves] = angles.sin()
            out[:, num_stacked + num_waves :] = angles.cos()


class _HostEngine:
    """The VecEnv's own fleet; the tensors share memory with its arrays."""

    def __init__(self, env: RacerVecEnv) -> None:
        self._env, batch = env, env.fleet.batch
        self.actions = torch.zeros(env.num_envs, 3)
        self.obs, self.final_obs = torch.from_numpy(batch.obs), torch.from_numpy(batch.final_obs)
        self.rewards = torch.from_numpy(batch.rewards)
        self.terminated, self.truncated = torch.from_numpy(batch.terminated), torch.from_numpy(batch.truncated)
        self.infos, self.final_infos = (
            torch.from_numpy(infos.view(np.int32).reshape(env.num_envs, -1))
            for infos in (batch.infos, batch.final_infos)
        )

    def load(self) -> None:
        """Nothing to do: the fleet is the VecEnv's."""

    def store(self) -> None:
        """Nothing to do: the fleet is the VecEnv's."""

    def step(self) -> None:
        self._env.fleet.step(self.actions.numpy(), autoreset=True, repeat=self._env.action_repeat)


class _GpuEngine:
    """A copy of the fleet in the memory of a GPU; the tensors share memory with its arrays."""

    def __init__(self, env: RacerVecEnv) -> None:
        from hotlap.sim import batch_cuda  # needs numba-cuda

        self._env, self._batch_cuda = env, batch_cuda
        if not isinstance(env.fleet, Fleet):
            raise TypeError("cars behind a bridge are trained on the CPU")
        self._fleet = env.fleet
        self._cars = batch_cuda.CudaCars(self._fleet.scenario, *env.fleet.batch.obs.shape)
        batch = self._cars.batch
        self.actions = _tensor(self._cars.actions)
        self.obs, self.final_obs, self.rewards = map(_tensor, (batch.obs, batch.final_obs, batch.rewards))
        self.terminated, self.truncated = (_tensor(flags).view(torch.bool) for flags in (
            batch_cuda.as_bytes(batch.terminated), batch_cuda.as_bytes(batch.truncated)
        ))  # fmt: skip
        self.infos, self.final_infos = (
            _tensor(batch_cuda.as_bytes(infos)).view(torch.int32).view(env.num_envs, -1)
            for infos in (batch.infos, batch.final_infos)
        )

    def load(self) -> None:
        self._cars.upload(self._fleet.states)

    def store(self) -> None:
        self._fleet.states[:] = self._cars.download()

    def step(self) -> None:
        stream = self._batch_cuda.stream_of(torch.cuda.current_stream().cuda_stream)
        # Actions are clamped to their bounds, and a NaN is found in the losses of the update.
        self._cars.step(autoreset=True, repeat=self._env.action_repeat, check_actions=False, stream=stream)


def _tensor(array: Any) -> Tensor:
    return torch.as_tensor(array, device="cuda")

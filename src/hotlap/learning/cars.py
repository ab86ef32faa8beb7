"""The cars that a learner drives, as tensors on one device: no copies, and no Python object per car."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.envs.fleet_vector import AnyFleet
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.stream_fleet import StreamFleet
from hotlap.envs.tensor_engines import CarEngine, open_engine
from hotlap.errors import StateError
from hotlap.learning.race_seats import RaceSeats
from hotlap.models.model_file import PolicyArrays
from hotlap.sim.world import OBS_PROGRESS

WORLD = "world."  # prefix of the fleet's columns in a saved state


class Cars:
    """Steps a fleet on a device; the results are tensors with one row per car.

    An observation is the last `stack` observations, oldest first, followed by `lap_fourier` sines and cosines of the
    lap progress. A step writes into the same tensors each time, so it can be captured in a CUDA graph. States have the
    same bits on every device.
    """

    def __init__(
        self,
        fleet: AnyFleet | RaceFleet,
        device: torch.device,
        *,
        action_repeat: int = 1,
        stack: int = 1,
        lap_fourier: int = 0,
        races: RaceSeats | None = None,
        on_close: Callable[[], object] = lambda: None,
    ) -> None:
        """`races` says who drives the cars of a `RaceFleet`; `on_close` closes what the fleet belongs to."""
        self.fleet, self.action_repeat, self.close = fleet, action_repeat, on_close
        self._is_cuda, self._races = device.type == "cuda", races
        self._engine: CarEngine = races if races is not None else open_engine(fleet, device, action_repeat)
        num_cars, num_single = self._engine.obs.shape
        num_obs = stack * num_single + 2 * lap_fourier
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
        self._frequencies_rad = 2.0 * torch.pi * torch.arange(1, lap_fourier + 1, device=device)
        # Of the running episodes: the last observations, (N, stack, …), zeros before the start; return and length.
        self._history = torch.zeros(num_cars, stack, num_single, device=device)
        self._returns = torch.zeros(num_cars, dtype=torch.float64, device=device)
        self._lengths = torch.zeros(num_cars, dtype=torch.int64, device=device)

    def __len__(self) -> int:
        return len(self.obs)

    def reset(self, seed: int) -> None:
        """Begin an episode for every car, or every race; number i gets the seed `seed` + i."""
        self._engine.begin(seed)
        for running in (self._history, self._returns, self._lengths):
            running.zero_()
        self._history[:, -1] = self._engine.obs
        self._write_features(self._history, self.obs)

    def renew_opponents(self, num_timesteps: int, policy: Callable[[], PolicyArrays]) -> None:
        """Say which drivers the next races have, and keep a version of the policy for them where it is time."""
        if self._races is not None:
            self._races.opponents.renew(num_timesteps, policy)

    def renew_roads(self) -> Tensor | None:
        """Replace the oldest roads of a fleet on a stream; returns which cars began an episode on a new one.

        Call it between two rollouts only: the last one has already valued the states in which these cars were.
        """
        fleet = self.fleet
        if not isinstance(fleet, StreamFleet) or not fleet.plan.new_roads:
            return None
        self._engine.store()
        restarted = torch.from_numpy(fleet.renew_roads())
        self._engine.load()
        rows = restarted.nonzero().flatten()
        first_obs = torch.from_numpy(fleet.batch.obs)[rows].to(self.obs.device)
        restarted, rows = restarted.to(self.obs.device), rows.to(self.obs.device)
        self._history[rows] = 0.0
        self._history[rows, -1] = first_obs
        self._returns.masked_fill_(restarted, 0.0)
        self._lengths.masked_fill_(restarted, 0)
        self._write_features(self._history, self.obs)
        return restarted

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
        num_stacked, num_fourier = history[0].numel(), len(self._frequencies_rad)
        out[:, :num_stacked] = history.flatten(1)
        if num_fourier:
            angles = history[:, -1, OBS_PROGRESS, None] * self._frequencies_rad
            out[:, num_stacked : num_stacked + num_fourier] = angles.sin()
            out[:, num_stacked + num_fourier :] = angles.cos()

    # --- state ---

    @property
    def _episodes(self) -> dict[str, Tensor]:
        """The running episodes, one row per car, by their names in a saved state."""
        return {"stack": self._history.flatten(1), "returns": self._returns, "lengths": self._lengths}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All that a bit-identical continuation needs: the world and the running episodes, one row per car.

        In races also who drives the others.
        """
        self._engine.store()
        world = {WORLD + name: column for name, column in self.fleet.get_state().items()}
        others = {} if self._races is None else self._races.opponents.state_dict()
        return world | others | {name: column.cpu().numpy().copy() for name, column in self._episodes.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `state_dict`; StateError, with nothing changed, if it does not fit."""
        new = {name: np.asarray(column) for name, column in state.items()}
        for name, column in self._episodes.items():
            if name not in new or new[name].shape != tuple(column.shape) or not np.isfinite(new[name]).all():
                raise StateError(f"state: column {name!r} must be finite and of shape {tuple(column.shape)}.")
        self.fleet.set_state({name.removeprefix(WORLD): new[name] for name in new if name.startswith(WORLD)})
        if self._races is not None:
            self._races.opponents.load_state_dict(new)
        self._engine.load()
        for name, column in self._episodes.items():
            column.copy_(torch.as_tensor(new[name]))
        self._write_features(self._history, self.obs)

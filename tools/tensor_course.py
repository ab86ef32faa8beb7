"""Cars as tensors that drive all candidates of a search at once, on a GPU or a CPU, for `polish_driver`.

A candidate differs from the others in one layer alone, so all cars share the layers before it. The sums of a product
are in another order than in the compiled policy: what drives is the same policy but for the rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import MAX_CARS, Fleet, make_engine
from hotlap.envs.settings import MAX_COUNT, EpisodeRules, RacerSettings, RewardRules
from hotlap.envs.spaces import SEE_GUIDE
from hotlap.envs.tensor_engines import columns_of, open_engine
from hotlap.errors import ConfigError
from hotlap.learning.cuda_graph import capture
from hotlap.sim.policy_forward import PackedPolicy
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.sim.world import INFO_DTYPE, OBS_PROGRESS
from last_layer import Numbers
from polish_courses import SETTLE_TICKS, Drives

# What is counted: metres, or for those who see the guide its seconds, which are worth the same on every road.
_METRES = RewardRules(progress_length_m=1.0, wall_penalty=-1.0, off_track_penalty=-1.0, stillness_penalty=0.0)
_SECONDS = replace(_METRES, progress_length_m=0.0, progress_time_s=1.0)
_ENDLESS = EpisodeRules(max_ticks=MAX_COUNT, stillness_timeout_ticks=MAX_COUNT)
_COUNTED = ("progress", "wall", "offTrack")


class TensorCourse:
    """Cars on some tracks for every candidate; they drive so many ticks once they have settled."""

    def __init__(
        self, driver: PackedDriver, tracks: Sequence[str], num_ticks: int, num_candidates: int, layer: int, device: str
    ) -> None:
        """`layer` is the number of the one in which candidates differ."""
        if num_candidates * len(tracks) > MAX_CARS:
            raise ConfigError(f"--population, --cars: {num_candidates} x {len(tracks)} cars, at most {MAX_CARS} fit.")
        self._seconds, self._num_candidates = num_ticks / TICKS_PER_SECOND, num_candidates
        settings = RacerSettings(_SECONDS if driver.observation in SEE_GUIDE else _METRES, _ENDLESS)
        self._num_cars = len(tracks)
        count = num_candidates * len(tracks)
        self._fleet = Fleet([*tracks] * num_candidates, settings, count, make_engine(count), driver.observation)
        self._device = torch.device(device)
        self._engine = open_engine(self._fleet, self._device, driver.action_repeat)
        self._policy = CandidatePolicies(driver.packed, layer, num_candidates, self._device)
        found = columns_of(self._engine.infos, INFO_DTYPE, _COUNTED)
        self._counted = [found[name] for name in _COUNTED]
        self._sums = torch.zeros(len(_COUNTED), count, device=self._device)
        self._num_settling = -(-SETTLE_TICKS // driver.action_repeat)
        self._num_scored = num_ticks // driver.action_repeat
        self._decide_graph: Callable[[], object] | None = None

    def drive_all(self, candidates: Sequence[Numbers], seeds: NDArray[np.uint64]) -> list[Drives]:
        """Drive with the numbers of each candidate from the random starts of these seeds, the same for all."""
        if len(candidates) > self._num_candidates:
            raise ValueError(f"{len(candidates)} candidates, {self._num_candidates} fit")
        self._policy.load([*candidates, *[candidates[0]] * (self._num_candidates - len(candidates))])
        if self._decide_graph is None:  # capturing drives, so cars are put to their starts afterwards
            self._put_to_starts(seeds)
            self._decide_graph = capture(self._decide, torch.Generator(self._device), allow_tf32=False)
        self._put_to_starts(seeds)
        for _ in range(self._num_settling):
            self._decide_graph()
        self._sums.zero_()
        for _ in range(self._num_scored):
            self._decide_graph()
        progress, *faults = self._sums.cpu().numpy().astype(np.float64).reshape(len(_COUNTED), -1, self._num_cars)
        is_clean = ~np.any(faults, axis=0)
        slowness = self._seconds / np.maximum(progress, 1e-3 * self._seconds)
        return [Drives(*drives) for drives in zip(slowness, is_clean, strict=True)][: len(candidates)]

    def _put_to_starts(self, seeds: NDArray[np.uint64]) -> None:
        self._fleet.seed(np.tile(seeds, self._num_candidates))
        self._fleet.reset(start="random")
        self._engine.load()

    def _decide(self) -> None:
        """One decision of every car."""
        self._policy.act(self._engine.obs, out=self._engine.actions)
        self._engine.step()
        for total, column in zip(self._sums, self._counted, strict=True):
            total.add_(column)


class CandidatePolicies:
    """Policies that share all layers but one; the first of equally many rows are those of the first policy."""

    def __init__(self, packed: PackedPolicy, layer: int, count: int, device: torch.device) -> None:
        shape, self._layer = packed.shape[0], layer
        self._records = [(int(row["num_inputs"]), int(row["num_outputs"])) for row in packed.layers]
        self._places = [(int(row["first_weight"]), int(row["first_bias"])) for row in packed.layers]
        self._num_observations, num_fourier = int(shape["num_observations"]), int(shape["num_fourier"])
        self._frequencies_rad = 2.0 * torch.pi * torch.arange(1, num_fourier + 1, device=device)
        numbers = torch.as_tensor(packed.numbers, device=device)
        size = int(shape["num_inputs"])
        self._mean_high, self._mean_low, self._inverse = numbers[: 3 * size].view(3, size)
        self._low, self._high = numbers[3 * size : 3 * size + 6].view(2, 3)
        self._clip = float(shape["clip"])
        self._shared = [self._layer_of(numbers, index) for index in range(len(self._records))]
        num_inputs, num_outputs = self._records[layer]
        self._weights = torch.zeros(count, num_inputs, num_outputs, device=device)
        self._biases = torch.zeros(count, 1, num_outputs, device=device)

    def _layer_of(self, numbers: Tensor, index: int) -> tuple[Tensor, Tensor]:
        """Weights (inputs, outputs) and biases."""
        (num_inputs, num_outputs), (first_weight, first_bias) = self._records[index], self._places[index]
        weights = numbers[first_weight : first_weight + num_inputs * num_outputs].view(num_inputs, num_outputs)
        return weights, numbers[first_bias : first_bias + num_outputs]

    def load(self, candidates: Sequence[Numbers]) -> None:
        """Take the layer in which they differ from each of these policies' numbers."""
        for index, numbers in enumerate(candidates):
            weights, biases = self._layer_of(torch.from_numpy(numbers), self._layer)
            self._weights[index].copy_(weights)
            self._biases[index, 0].copy_(biases)

    def act(self, obs: Tensor, out: Tensor) -> None:
        """Write the actions of all cars for their observations."""
        inputs = obs[:, : self._num_observations]
        if len(self._frequencies_rad):
            angles = inputs[:, OBS_PROGRESS, None] * self._frequencies_rad
            inputs = torch.cat([inputs, angles.sin(), angles.cos()], 1)
        values = ((inputs - self._mean_high) - self._mean_low) * self._inverse
        values = values.clamp_(-self._clip, self._clip)
        for index, (weights, biases) in enumerate(self._shared):
            if index:
                values = values.tanh_()
            if index == self._layer:
                rows = values.view(len(self._weights), -1, values.shape[1])
                values = torch.baddbmm(self._biases, rows, self._weights).flatten(0, 1)
            else:
                values = torch.addmm(biases, values, weights)
        out.copy_(values.clamp_(self._low, self._high))

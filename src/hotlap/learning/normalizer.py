"""Running normalization of observations and rewards on tensors, with the statistics of the library's VecNormalize.

Sums over cars are float32, the statistics float64. They cover the cars of all processes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.errors import StateError
from hotlap.hyperparameters import NormalizeSettings
from hotlap.learning.distributed.moments import pooled_moments
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.models.actor_layers import VARIANCE_FLOOR

INITIAL_COUNT = 1e-4  # of observations with mean 0 and variance 1, as in stable-baselines3


class Normalizer:
    """Subtracts the mean of the observations and divides by their deviation; divides rewards by that of the returns.

    `reset` takes the first observations; then for each step `add`, `merge`, and the two methods that normalize. Where
    the settings switch both off, it has no statistics, and observations and rewards stay as they are.
    """

    def __init__(
        self,
        settings: NormalizeSettings,
        gamma: float,
        num_cars: int,
        num_obs: int,
        device: torch.device,
        processes: Processes = ALONE,
    ) -> None:
        self.settings, self._gamma, self._processes = settings, gamma, processes
        # One column per observation, and the discounted return as the last one.
        self._means, self._variances, self._counts = torch.zeros(3, num_obs + 1, dtype=torch.float64, device=device)
        self._variances.fill_(1.0)
        self._counts.fill_(INITIAL_COUNT)
        # Means and variances of a step.
        self._batch = torch.zeros(2, num_obs + 1, dtype=torch.float64, device=device)
        self._returns = torch.zeros(num_cars, dtype=torch.float64, device=device)
        self._scratch = torch.zeros(num_cars, num_obs, device=device)
        # The mean in two parts: an observation that hardly varied is magnified, and with it the rounding of its mean.
        self._mean_high, self._mean_low, self._inverse = torch.zeros(3, num_obs + 1, device=device)
        self._statistics = [_plain(each) for each in (self._means, self._variances, self._counts)]
        self._factors = [_plain(each) for each in (self._mean_high, self._mean_low, self._inverse)]
        self._prepare()

    # --- statistics ---

    def reset(self, obs: Tensor) -> None:
        """Add the first observations (N, num_obs) of all episodes."""
        self._returns.zero_()
        if not self.settings.obs:
            return
        rows = self._processes.gather(obs.cpu()).flatten(0, 1).numpy()
        means, variances, counts = (each[:-1].cpu().numpy() for each in (self._means, self._variances, self._counts))
        total, delta = counts + len(rows), rows.mean(0) - means
        squares = variances * counts + rows.var(0) * len(rows) + np.square(delta) * counts * len(rows) / total
        self._means[:-1] = torch.from_numpy(means + delta * len(rows) / total)
        self._variances[:-1] = torch.from_numpy(squares / total)
        self._counts[:-1] = torch.from_numpy(total)
        self._prepare()

    def add(self, obs: Tensor, rewards: Tensor, ended: Tensor) -> None:
        """Add a step: raw observations (N, num_obs) and rewards (N,). `merge` must follow."""
        if not self.settings.is_on:
            return
        self._returns.mul_(self._gamma).add_(rewards)
        if obs.device.type == "cuda":
            variances, means = torch.var_mean(obs, 0, correction=0)
        else:  # `var_mean` takes seven times as long on a CPU
            means = obs.mean(0)
            variances = torch.sub(obs, means, out=self._scratch).square_().mean(0)
        self._batch[0, :-1], self._batch[1, :-1] = means, variances
        self._batch[1, -1], self._batch[0, -1] = torch.var_mean(self._returns, 0, correction=0)
        self._returns.masked_fill_(ended, 0.0)
        if not self._processes.is_alone:
            self._wait_for_others = self._processes.begin_gather(self._batch)

    def forget_returns(self, cars: Tensor) -> None:
        """Begin the returns of some cars (N,) again, whose episodes were cut off between two steps."""
        self._returns.masked_fill_(cars, 0.0)

    def merge(self) -> None:
        """Merge the step that was added, with those of the other processes, into the statistics."""
        if not self.settings.is_on:
            return
        batch = self._batch if self._processes.is_alone else pooled_moments(self._wait_for_others())
        means, variances = _plain(batch)
        num_new = len(self._returns) * self._processes.size
        # Chan's formula for the moments of two samples taken together.
        own_means, own_variances, counts = self._statistics
        new_counts = counts + num_new
        delta = means - own_means
        fraction = num_new / new_counts
        own_means += delta * fraction
        own_variances *= counts
        own_variances += variances * num_new + delta * delta * counts * fraction
        own_variances /= new_counts
        counts += num_new
        self._prepare()

    def _prepare(self) -> None:
        (means, variances, _), (high, low, inverse) = self._statistics, self._factors
        high[:] = means
        low[:] = means - high
        inverse[:] = 1.0 / (variances + VARIANCE_FLOOR) ** 0.5

    # --- normalization ---

    def normalize_obs(self, obs: Tensor, out: Tensor) -> Tensor:
        """Observations (N, num_obs) by the present statistics."""
        if not self.settings.obs:
            return out.copy_(obs)
        clip = self.settings.clip_obs
        torch.sub(obs, self._mean_high[:-1], out=out).sub_(self._mean_low[:-1])
        return out.mul_(self._inverse[:-1]).clamp_(-clip, clip)

    def normalize_rewards(self, rewards: Tensor, out: Tensor) -> Tensor:
        """Rewards (N,) by the present statistics."""
        if not self.settings.reward:
            return out.copy_(rewards)
        clip = self.settings.clip_reward
        return torch.mul(rewards, self._inverse[-1], out=out).clamp_(-clip, clip)

    # --- state ---

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """The statistics by the names used in model files, and the running return of each car; none where it is off."""
        if not self.settings.is_on:
            return {}
        means, variances, counts = torch.stack([self._means, self._variances, self._counts]).cpu().numpy()
        found = {"returns": self._returns.cpu().numpy().copy()}
        found |= {"return_mean": means[-1], "return_var": variances[-1], "return_count": counts[-1]}
        if self.settings.obs:
            found |= {"obs_mean": means[:-1], "obs_var": variances[:-1], "obs_count": counts[0]}
        return {name: np.asarray(value, np.float64) for name, value in found.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        if not self.settings.is_on:
            if state:
                raise StateError("state: it has a normalizer; this run has none.")
            return
        if state["returns"].shape != self._returns.shape:
            raise StateError(f"state: it has {len(state['returns'])} running returns; this run {len(self._returns)}.")
        self._returns.copy_(torch.as_tensor(state["returns"]))
        self._load_statistics("return", state, slice(-1, None))
        self.load_observations(state)

    def load_observations(self, state: Mapping[str, Any]) -> None:
        """Take over the statistics of the observations only, for example those of a model."""
        if self.settings.obs:
            self._load_statistics("obs", state, slice(None, -1))
        elif "obs_mean" in state:
            raise StateError("state: it has normalized observations; this run has raw ones.")
        self._prepare()

    def _load_statistics(self, name: str, state: Mapping[str, Any], columns: slice) -> None:
        for own, part in ((self._means, "mean"), (self._variances, "var"), (self._counts, "count")):
            found = torch.as_tensor(np.asarray(state[f"{name}_{part}"], np.float64))
            if part != "count" and found.numel() != own[columns].numel():
                raise StateError(
                    f"state: the normalizer's {name} has shape {tuple(found.shape)}; this run's has "
                    f"{tuple(own[columns].shape)}."
                )
            own[columns] = found


def _plain(tensor: Tensor) -> Any:
    """A tensor on a GPU, or the NumPy array of one in main memory, whose operators take a quarter of the time."""
    return tensor if tensor.device.type == "cuda" else tensor.numpy()

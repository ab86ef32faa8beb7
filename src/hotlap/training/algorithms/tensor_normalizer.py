"""`VecNormalize` of stable-baselines3 on tensors: the same statistics, updated at every step, on any device."""

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.training.algorithms.moments import Moments


class TensorNormalizer:
    """Normalizes observations and rewards as a `VecNormalize` would.

    The `VecNormalize` owns the statistics between rollouts: `load` takes them over and `store` gives them back. Sums
    over environments are float32, the statistics float64. They cover the environments of all processes.
    """

    def __init__(self, env: VecNormalize, device: torch.device, processes: Processes = ALONE) -> None:
        self._env, self._processes = env, processes
        num_obs = env.observation_space.shape[0]  # type: ignore[index]
        # One column per observation, and the discounted return as the last one.
        self._means, self._variances, self._counts = torch.zeros(3, num_obs + 1, dtype=torch.float64, device=device)
        # Means and variances of a step.
        self._batch = torch.zeros(2, num_obs + 1, dtype=torch.float64, device=device)
        self._returns = torch.zeros(env.num_envs, dtype=torch.float64, device=device)
        self._scratch = torch.zeros(env.num_envs, num_obs, device=device)
        # The mean in two parts: an observation that hardly varied is magnified, and with it the rounding of its mean.
        self._mean_high, self._mean_low, self._inverse = torch.zeros(3, num_obs + 1, device=device)
        self._statistics = [_plain(each) for each in (self._means, self._variances, self._counts)]
        self._factors = [_plain(each) for each in (self._mean_high, self._mean_low, self._inverse)]

    def load(self) -> None:
        """Take over the statistics of the VecNormalize."""
        for mine, name in ((self._means, "mean"), (self._variances, "var"), (self._counts, "count")):
            if self._env.norm_obs:
                mine[:-1] = torch.as_tensor(np.asarray(getattr(self._env.obs_rms, name), np.float64))
            mine[-1] = float(getattr(self._env.ret_rms, name))
        self._returns.copy_(torch.as_tensor(self._env.returns))
        self._prepare()

    def store(self) -> None:
        """Give the statistics back to the VecNormalize."""
        means, variances, counts = torch.stack([self._means, self._variances, self._counts]).cpu().numpy()
        if self._env.norm_obs:
            observations: Any = self._env.obs_rms  # never a dict of them: our cars have one space
            observations.mean, observations.var = means[:-1].copy(), variances[:-1].copy()
            observations.count = float(counts[0])
        returns = self._env.ret_rms
        returns.mean, returns.var, returns.count = means[-1], variances[-1], float(counts[-1])
        self._env.returns = self._returns.cpu().numpy().copy()

    def add(self, obs: Tensor, rewards: Tensor, ended: Tensor) -> None:
        """Add a step: raw observations (N, num_obs) and rewards (N,). `merge` must follow."""
        self._returns.mul_(self._env.gamma).add_(rewards)
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

    def merge(self) -> None:
        """Merge the step that was added, with those of the other processes, into the statistics."""
        batch = self._batch
        if not self._processes.is_alone:
            together = Moments.of_parts(self._wait_for_others())
            batch = torch.stack([together.mean, together.variance])
        means, variances = _plain(batch)
        num_new = len(self._returns) * self._processes.size
        # Chan's formula for the moments of two samples taken together.
        own_means, own_variances, counts = self._statistics
        new_counts = counts + num_new
        delta = means - own_means
        share = num_new / new_counts
        own_means += delta * share
        own_variances *= counts
        own_variances += variances * num_new + delta * delta * counts * share
        own_variances /= new_counts
        counts += num_new
        self._prepare()

    def _prepare(self) -> None:
        (means, variances, _), (high, low, inverse) = self._statistics, self._factors
        high[:] = means
        low[:] = means - high
        inverse[:] = 1.0 / (variances + self._env.epsilon) ** 0.5

    def normalize_obs(self, obs: Tensor, out: Tensor) -> Tensor:
        """Observations (N, num_obs) by the present statistics."""
        if not self._env.norm_obs:
            return out.copy_(obs)
        clip = self._env.clip_obs
        torch.sub(obs, self._mean_high[:-1], out=out).sub_(self._mean_low[:-1])
        return out.mul_(self._inverse[:-1]).clamp_(-clip, clip)

    def normalize_rewards(self, rewards: Tensor, out: Tensor) -> Tensor:
        """Rewards (N,) by the present statistics."""
        if not self._env.norm_reward:
            return out.copy_(rewards)
        clip = self._env.clip_reward
        return torch.mul(rewards, self._inverse[-1], out=out).clamp_(-clip, clip)


def _plain(tensor: Tensor) -> Any:
    """A tensor on a GPU, or the NumPy array of one in main memory, whose operators take a quarter of the time."""
    return tensor if tensor.device.type == "cuda" else tensor.numpy()


class NoNormalizer:
    """For runs without a `VecNormalize`."""

    def load(self) -> None:
        """Nothing to do."""

    def store(self) -> None:
        """Nothing to do."""

    def add(self, obs: Tensor, rewards: Tensor, ended: Tensor) -> None:
        """Nothing to do."""

    def merge(self) -> None:
        """Nothing to do."""

    def normalize_obs(self, obs: Tensor, out: Tensor) -> Tensor:
        """The observations as they are."""
        return out.copy_(obs)

    def normalize_rewards(self, rewards: Tensor, out: Tensor) -> Tensor:
        """The rewards as they are."""
        return out.copy_(rewards)


def share_reset(env: VecNormalize, before: Any, processes: Processes) -> Any:
    """Redo the statistics after a reset with the observations of all processes; returns this one's, normalized.

    The library has added only those of this process. `before` are its statistics of observations before the reset.
    """
    own = torch.from_numpy(env.get_original_obs())
    before.update(processes.gather(own).flatten(0, 1).numpy())
    env.obs_rms = before
    return env.normalize_obs(own.numpy())

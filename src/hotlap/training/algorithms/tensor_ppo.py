"""`TensorPPO`: PPO for many environments and small networks, several times as fast as stable-baselines3's.

It samples the same actions and the same minibatches from the same random numbers and takes the same steps as
`HotlapPPO`; only the rounding differs. What it cannot do itself, such as pictures or discrete actions, is left to
stable-baselines3.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.mlp import ActorCritic, Mlp
from hotlap.training.algorithms.ppo import HotlapPPO
from hotlap.training.algorithms.ppo_update import HALF_LOG_TAU, LossSettings, MinibatchLosses, PPOUpdate, Rollout

VALUE_ROWS = 4096  # in one product


class TensorPPO(HotlapPPO):
    """PPO whose rollouts and updates need no autograd and no Python objects for each environment."""

    def own_nets(self) -> ActorCritic | None:
        """The networks that we compute ourselves; None where stable-baselines3 does all."""
        policy = self.policy
        is_plain = (
            self.device.type == "cpu"
            and not self.use_sde
            and self.clip_range_vf is None
            and self.target_kl is None
            and type(self.rollout_buffer) is RolloutBuffer
            and isinstance(policy, ActorCriticPolicy)
            and FlatAdam.fits(policy.optimizer)
        )
        return ActorCritic.of(policy) if is_plain else None

    # --- rollout ---

    def _collect(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        nets = self.own_nets()
        if nets is None:
            return super()._collect(env, callback, rollout_buffer, n_rollout_steps)
        actor = _Actor(self.policy, nets, env.num_envs)
        buffer, low, high = rollout_buffer, self.action_space.low, self.action_space.high  # type: ignore[attr-defined]
        buffer.reset()
        callback.on_rollout_start()
        # Callbacks read the names of stable-baselines3's local variables.
        for row in range(n_rollout_steps):
            actions, log_probs = actor.act(self._last_obs)
            clipped_actions = np.clip(actions, low, high)
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            _bootstrap(rewards, dones, infos, actor, self.gamma)
            buffer.observations[row], buffer.actions[row], buffer.rewards[row] = self._last_obs, actions, rewards
            buffer.log_probs[row], buffer.episode_starts[row] = log_probs, self._last_episode_starts
            self._last_obs, self._last_episode_starts = new_obs, dones  # type: ignore[assignment]
        buffer.full = True
        buffer.values[:] = _values(nets, buffer.observations)
        values = torch.from_numpy(actor.value(new_obs))
        buffer.compute_returns_and_advantage(values, dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    # --- update ---

    def _update(self) -> None:
        nets = self.own_nets()
        if nets is None:
            super()._update()
            return
        buffer, policy = self.rollout_buffer, self.policy
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        clip_range = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        settings = LossSettings(
            clip_range, self.ent_coef, self.vf_coef, self.max_grad_norm, bool(self.normalize_advantage)
        )
        update = PPOUpdate(policy, nets, Rollout.of(buffer), settings, self.batch_size)
        losses = update.run(_orders(buffer, self.n_epochs))
        self._n_updates += self.n_epochs
        self._log_update(losses, clip_range)

    def _log_update(self, losses: MinibatchLosses, clip_range: float) -> None:
        """Log what stable-baselines3's PPO logs: means over all minibatches, the KL over those of the last epoch."""
        buffer = self.rollout_buffer
        last_epoch = len(losses.policy) // self.n_epochs
        loss = losses.policy[-1] + self.ent_coef * losses.entropy[-1] + self.vf_coef * losses.value[-1]
        figures = {
            "entropy_loss": losses.entropy.mean(),
            "policy_gradient_loss": losses.policy.mean(),
            "value_loss": losses.value.mean(),
            "approx_kl": losses.approx_kl[-last_epoch:].mean(),
            "clip_fraction": losses.clip_fraction.mean(),
            "loss": loss,
            "explained_variance": explained_variance(buffer.values.flatten(), buffer.returns.flatten()),
            "std": self.policy.log_std.detach().exp().mean(),
            "clip_range": clip_range,
        }
        for name, figure in figures.items():
            self.logger.record(f"train/{name}", float(figure))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")


class _Actor:
    """The policy's actions for the environments of a rollout, and the values of single observations."""

    def __init__(self, policy: ActorCriticPolicy, nets: ActorCritic, num_envs: int) -> None:
        # Copied into memory of torch's own: the bits of a product can depend on where an array begins.
        self._observations = torch.empty(num_envs, nets.policy[0].in_features)
        self._policy_net, self._value_net = (
            Mlp([(layer.weight.detach(), layer.bias.detach()) for layer in layers], nets.activation, num_envs)
            for layers in (nets.policy, nets.value)
        )
        log_std = policy.log_std.detach()[:, None]
        self._std, self._log_norm = log_std.exp(), log_std + HALF_LOG_TAU

    def act(self, observations: Any) -> tuple[NDArray[np.float32], ...]:
        """Sampled actions and their log probabilities."""
        means = self._policy_net.forward(self._load(observations))  # (num_actions, num_envs)
        noise = torch.randn(means.shape[::-1]).t()  # in the library's order
        log_probs = noise.square().mul_(-0.5).sub_(self._log_norm).sum(0)
        actions = (noise * self._std).add_(means).t()
        return actions.numpy(), log_probs.numpy()

    def value(self, observations: Any) -> NDArray[np.float32]:
        """The values of observations, at most one for each environment."""
        found: NDArray[np.float32] = self._value_net.forward(self._load(observations))[0].numpy()
        return found

    def _load(self, observations: Any) -> Tensor:
        return self._observations[: len(observations)].copy_(torch.from_numpy(observations))


def _values(nets: ActorCritic, observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """The values of a whole rollout, (steps, environments), in few large products and on two threads."""
    rows = torch.from_numpy(observations).flatten(0, 1)
    found = torch.empty(len(rows))
    # The parts are the same whatever the threads do, so the bits are too.
    parts = [range(start, min(start + VALUE_ROWS, len(rows))) for start in range(0, len(rows), VALUE_ROWS)]

    def compute(own: list[range]) -> None:
        layers = [(layer.weight.detach(), layer.bias.detach()) for layer in nets.value]
        net, inputs = Mlp(layers, nets.activation, VALUE_ROWS), torch.empty(VALUE_ROWS, rows.shape[1])
        for part in own:
            at = slice(part.start, part.stop)
            found[at] = net.forward(inputs[: len(part)].copy_(rows[at]))[0]

    with ThreadPoolExecutor(1, "values") as second:
        other_half = second.submit(compute, parts[1::2])
        compute(parts[::2])
        other_half.result()
    return found.view(observations.shape[:2]).numpy()


def _bootstrap(
    rewards: NDArray[np.float32], dones: NDArray[np.bool_], infos: list[dict[str, Any]], actor: _Actor, gamma: float
) -> None:
    """Add the value of the last observation where an episode was cut off by its time limit."""
    ended = np.flatnonzero(dones).tolist()
    cut = [index for index in ended if infos[index].get("TimeLimit.truncated")]
    if cut:
        rewards[cut] += gamma * actor.value(np.stack([infos[index]["terminal_observation"] for index in cut]))


def _orders(buffer: RolloutBuffer, n_epochs: int) -> Iterator[Tensor]:
    """Permutations of a rollout's rows: the minibatches that stable-baselines3's buffer would draw."""
    num_rows = buffer.buffer_size * buffer.n_envs
    # The library's buffer counts environment by environment; our rows go step by step.
    rows = np.arange(num_rows).reshape(buffer.buffer_size, buffer.n_envs).T.ravel()
    for _ in range(n_epochs):
        yield torch.from_numpy(rows[np.random.permutation(num_rows)])  # noqa: NPY002 (as the library)

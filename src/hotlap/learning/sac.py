"""SAC over tensors in main memory, whose updates need no autograd.

It draws the same minibatches and actions from the same random numbers and takes the same steps as stable-baselines3's
SAC; only the rounding differs.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotlap.envs.spaces import action_space
from hotlap.errors import StateError
from hotlap.hyperparameters import SACSettings
from hotlap.learning.adam import Adam, as_tensors
from hotlap.learning.cars import Cars
from hotlap.learning.distributed.processes import ALONE
from hotlap.learning.events import OnStep, step_events
from hotlap.learning.generators import Generators
from hotlap.learning.networks.soft_actor_critic import (
    ACTOR,
    CRITIC,
    TARGET,
    SoftActorCritic,
    as_critics,
    as_targets,
    initial_weights,
    part_of,
)
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.replay import ReplayBuffer
from hotlap.learning.sac_update import LOG_ENT_COEF, LOSS_NAMES, ActorNet, SACUpdate
from hotlap.learning.schedules import linear_decay
from hotlap.learning.step_budget import RolloutPlan, plan_rollout
from hotlap.models.model_file import PolicyArrays, PolicySettings

ADAM_EPS = 1e-8  # torch's default
REPLAY = "replay_buffer"
_OPTIMIZERS = ("actor", "critic", "entropy")


class SAC:
    """Learns to drive `cars`, a step budget of `total_steps` decisions long. It owns all its state.

    Call `collect` and `update` in turns until `num_timesteps` has reached the budget.
    """

    has_atomic_rollouts = False
    processes = ALONE

    def __init__(
        self,
        settings: SACSettings,
        policy: PolicySettings,
        cars: Cars,
        normalizer: Normalizer,
        *,
        total_steps: int,
        seed: int,
    ) -> None:
        self._settings, self._total_steps = settings, total_steps
        self._cars, self._normalizer = cars, normalizer
        device = cars.obs.device
        num_obs, num_actions = cars.obs.shape[1], cars.actions.shape[1]
        self._generators = Generators(seed, device)
        space = action_space()
        self._low, self._high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        with self._generators.initializing():
            weights = initial_weights(policy, num_obs, num_actions)
        self._actor_adam = Adam(part_of(weights, ACTOR), device, ADAM_EPS)
        self._critic_adam = Adam(part_of(weights, CRITIC), device, ADAM_EPS)
        log_ent_coef = torch.log(torch.ones(1) * settings.initial_ent_coef)
        self._ent_coef_adam = Adam({LOG_ENT_COEF: log_ent_coef}, device, ADAM_EPS)
        self._targets = self._critic_adam.values.clone()
        nets = SoftActorCritic.of(policy)
        self._actor = ActorNet(self._actor_adam, nets, len(cars))
        entropy = -float(num_actions) if settings.target_entropy is None else settings.target_entropy
        self._update = SACUpdate(
            self._adams, nets, self._targets, entropy, settings.tau, settings.batch_size, self._generators.torch
        )
        self._second = ThreadPoolExecutor(1, "second-critic")  # starts its thread when it is first used
        self._replay = ReplayBuffer(settings.buffer_size, len(cars), num_obs, num_actions)
        self.num_timesteps = 0  # decisions of all cars
        cars.reset(seed)
        normalizer.reset(cars.obs)
        self._obs = torch.zeros_like(cars.obs)  # normalized

    @property
    def _adams(self) -> tuple[Adam, Adam, Adam]:
        return self._actor_adam, self._critic_adam, self._ent_coef_adam

    @property
    def total_envs(self) -> int:
        """The cars."""
        return len(self._cars)

    @property
    def replay_bytes(self) -> int:
        """The size of the replay buffer when it is full."""
        return self._replay.num_bytes

    @property
    def plan(self) -> RolloutPlan:
        """How long the next rollout is; the last one ends at the step budget."""
        return plan_rollout(self.num_timesteps, self._total_steps, self.total_envs, self._settings.train_freq)

    # --- collect ---

    def collect(self, on_step: OnStep) -> bool:
        """Collect the decisions between two updates; `on_step` is told every step and may end them."""
        for _ in range(self.plan.num_steps):
            self._decide()
            self.num_timesteps += self.total_envs
            if not on_step(step_events(self._cars, self.num_timesteps)):
                return False
        return True

    @torch.no_grad()
    def _decide(self) -> None:
        """Drive one decision of every car and remember it."""
        cars, obs = self._cars, self._cars.obs.clone()
        scaled = self._draw_actions()
        cars.actions.copy_(self._low + 0.5 * (scaled + 1.0) * (self._high - self._low))
        cars.step()
        self._normalizer.add(cars.obs, cars.rewards, cars.ended)
        self._normalizer.merge()
        next_obs = torch.where(cars.ended[:, None], cars.final_obs, cars.obs)
        self._replay.add(obs, next_obs, scaled, cars.rewards, cars.ended, cars.cut_off)

    def _draw_actions(self) -> Tensor:
        """Actions (N, num_actions) from -1 to 1: uniform ones before learning starts, then those of the actor."""
        if self.num_timesteps < self._settings.learning_starts:
            shape = tuple(self._cars.actions.shape)
            drawn = self._generators.actions.uniform(self._low.numpy(), self._high.numpy(), shape).astype(np.float32)
            return 2.0 * ((torch.from_numpy(drawn) - self._low) / (self._high - self._low)) - 1.0
        self._normalizer.normalize_obs(self._cars.obs, out=self._obs)
        self._actor.load_head()
        noise = torch.randn(self._cars.actions.shape, generator=self._generators.torch)
        return self._actor.sample(self._obs, noise).actions.t()

    # --- update ---

    def update(self) -> dict[str, float]:
        """Update everything from minibatches of the replay buffer; returns the figures to log, none before learning."""
        settings = self._settings
        if self.num_timesteps <= settings.learning_starts:
            return {}
        remaining = 1.0 - float(self.num_timesteps) / float(self._total_steps)
        lr = settings.learning_rate * linear_decay(settings.final_lr_fraction, remaining)
        for adam in self._adams:
            adam.set_lr(lr)
        losses = [
            self._update.run(
                self._replay.draw(
                    settings.batch_size, settings.n_steps, settings.gamma, self._normalizer, self._generators.numpy
                ),
                self._second,
            )
            for _ in range(settings.gradient_steps)
        ]
        means = zip(LOSS_NAMES, torch.stack(losses).mean(0).tolist(), strict=True)
        return {f"train/{name}": value for name, value in means} | {"train/learning_rate": lr}

    def close(self) -> None:
        """Close the cars and end the second thread."""
        self._second.shutdown(wait=False)
        self._cars.close()

    # --- state ---

    def policy(self) -> PolicyArrays:
        """The weights, by stable-baselines3's names, and the normalizer's statistics. Copies."""
        weights = self._actor_adam.weights() | self._critic_adam.weights()
        weights |= as_targets(self._critic_adam.weights(self._targets))
        arrays = {name: weight.numpy().copy() for name, weight in weights.items()}
        return PolicyArrays(arrays, self._normalizer.state_dict())

    def load_policy(self, policy: PolicyArrays) -> None:
        """Start from the weights of a model, and its statistics of observations where they are normalized."""
        self._load_weights(as_tensors(policy.weights))
        self._normalizer.load_observations(policy.normalizer)

    def _load_weights(self, weights: Mapping[str, Tensor]) -> None:
        self._actor_adam.load_weights(weights)
        self._critic_adam.load_weights(weights)
        self._critic_adam.load_weights(as_critics(part_of(weights, TARGET)), self._targets)

    def state_dict(self, *, with_replay: bool = True) -> dict[str, Any]:
        """All that a bit-identical continuation needs, between two rollouts; a model needs no replay buffer."""
        policy = self.policy()
        state = {
            "learner": {
                "counters": {"num_timesteps": self.num_timesteps},
                LOG_ENT_COEF: self._ent_coef_adam.value(LOG_ENT_COEF).clone(),
            },
            "policy": policy.weights,
            "optimizers": {name: adam.state_dict() for name, adam in zip(_OPTIMIZERS, self._adams, strict=True)},
            "normalizer": policy.normalizer,
            "envs": self._cars.state_dict(),
            "rng": self._generators.state_dict(),
        }
        return state | {REPLAY: self._replay.state_dict()} if with_replay else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        counters = state["learner"]["counters"]
        if REPLAY not in state:
            raise StateError(
                "state: its replay buffer was removed when newer checkpoints were written. Resume from one of those."
            )
        self._replay.load_state_dict(state[REPLAY])
        self._load_weights(as_tensors(state["policy"]))
        self._ent_coef_adam.load_weights({LOG_ENT_COEF: torch.as_tensor(state["learner"][LOG_ENT_COEF])})
        for name, adam in zip(_OPTIMIZERS, self._adams, strict=True):
            adam.load_state_dict(state["optimizers"][name])
        self._normalizer.load_state_dict(state["normalizer"])
        self._cars.load_state_dict(state["envs"])
        self._generators.load_state_dict(state["rng"])
        self.num_timesteps = int(counters["num_timesteps"])

"""A rollout as tensors on one device: collected, normalized and turned into advantages without leaving it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from hotlap.envs.infos import REWARD_KEYS
from hotlap.learning.cars import Cars
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.networks.ppo_passes import HALF_LOG_TAU
from hotlap.learning.normalizer import Normalizer

VALUE_ROWS = {"cpu": 4096, "cuda": 1 << 17}  # in one product


@dataclass(frozen=True)
class Actor:
    """What samples actions: the policy's network, log standard deviations and bounds of the actions.

    `log_std` are those of the actions with noise of their own. One action more is the brake: its noise is the opposite
    of the last one's.
    """

    net: Mlp
    log_std: Tensor
    low: Tensor
    high: Tensor
    generator: torch.Generator
    processes: Processes = ALONE

    def draw(self, num_cars: int) -> Tensor:
        """Standard normal noise (num_cars, len(log_std)), in stable-baselines3's order.

        Every process draws for the cars of all of them, so a car's noise does not depend on the number of processes.
        """
        first = num_cars * self.processes.rank
        shape = num_cars * self.processes.size, len(self.log_std)
        noise = torch.randn(shape, device=self.low.device, generator=self.generator)
        return noise[first : first + num_cars]


class Rollout:
    """The buffers of a rollout of T decisions of N cars, and what fills them.

    On a GPU a whole rollout is captured as one graph, so nothing there branches on data, and every tensor is written
    in place.
    """

    def __init__(
        self,
        cars: Cars,
        normalizer: Normalizer,
        actor: Actor,
        value_nets: Sequence[Mlp],
        num_steps: int,
        max_cuts: int,
    ) -> None:
        """Allocate the buffers.

        `value_nets` are copies of one network, one for each thread; `max_cuts` is how often one car's episodes can
        reach the time limit within a rollout.
        """
        self._cars, self._normalizer, self._actor, self._value_nets = cars, normalizer, actor, value_nets
        self.num_steps = num_steps
        (num_cars, num_obs), num_actions, device = cars.obs.shape, len(actor.low), cars.obs.device

        def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(*shape, dtype=dtype, device=device)

        self.obs = floats(num_cars, num_obs)  # normalized; of the next decision
        self.observations = floats(num_steps, num_cars, num_obs)
        self.actions = floats(num_actions, num_steps, num_cars)  # few, long rows are faster than many short ones
        self.log_probs, self.rewards = floats(num_steps, num_cars), floats(num_steps, num_cars)
        self.values = floats(num_steps + 1, num_cars)
        self.advantages, self.returns = floats(num_steps, num_cars), floats(num_steps, num_cars)
        self.ended = floats(num_steps, num_cars, dtype=torch.bool)
        # What `RolloutEvents` reads.
        self.infos = floats(num_steps, *cars.infos.shape, dtype=torch.int32)
        self.episode_returns = floats(num_steps, num_cars, dtype=torch.float64)
        self.episode_lengths = floats(num_steps, num_cars, dtype=torch.int64)
        self.reward_terms = floats(num_steps, len(REWARD_KEYS))
        # The last observations of episodes cut off by the time limit, and which of them belongs to a decision.
        self._cut_obs = floats(max_cuts, num_cars, num_obs)
        self._cut_values = floats(max_cuts, num_cars)
        self._num_cuts = floats(num_cars, dtype=torch.int64)
        self._cuts = floats(max_cuts, num_steps, num_cars, dtype=torch.bool)
        self._final_obs = floats(num_cars, num_obs)

    def begin(self) -> None:
        """Prepare for the first decision."""
        self._num_cuts.zero_()
        self._normalizer.normalize_obs(self._cars.obs, out=self.obs)

    def decide(self, step: int) -> None:
        """Sample the actions of one decision, drive, and record what happened."""
        cars, actor = self._cars, self._actor
        obs = self.observations[step].copy_(self.obs)
        means = actor.net.forward(obs)  # (num_actions, N)
        noise = actor.draw(means.shape[1]).t()
        actions, num_axes = self.actions[:, step], len(noise)
        torch.mul(noise, actor.log_std.exp()[:, None], out=actions[:num_axes])
        if num_axes < len(actions):
            torch.neg(actions[num_axes - 1], out=actions[num_axes])
        actions.add_(means)
        log_norms = actor.log_std + HALF_LOG_TAU
        torch.sum(noise.square().mul_(-0.5).sub_(log_norms[:, None]), 0, out=self.log_probs[step])
        cars.actions.copy_(actions.t()).clamp_(actor.low, actor.high)
        cars.step()
        self._normalizer.add(cars.obs, cars.rewards, cars.ended)
        self._record(step)  # here, since other processes may have to be waited for
        self._normalizer.merge()
        self._normalizer.normalize_obs(cars.obs, out=self.obs)
        self._normalizer.normalize_rewards(cars.rewards, out=self.rewards[step])
        self._keep_cut_obs(step)

    def _keep_cut_obs(self, step: int) -> None:
        """Keep the last observation where the time limit cut an episode off: its value is added to the reward."""
        cut_off = self._cars.cut_off
        if cut_off.device.type == "cpu":
            self._keep_few_cut_obs(step, cut_off.nonzero().flatten())
            return
        self._normalizer.normalize_obs(self._cars.final_obs, out=self._final_obs)
        for index, kept in enumerate(self._cut_obs):
            here = torch.logical_and(cut_off, self._num_cuts == index, out=self._cuts[index, step])
            torch.where(here[:, None], self._final_obs, kept, out=kept)
        self._num_cuts.add_(cut_off)

    def _keep_few_cut_obs(self, step: int, rows: Tensor) -> None:
        """The same for the few cars whose episode was cut off, which is faster on the CPU."""
        self._cuts[:, step] = False
        if len(rows):
            index, final_obs = self._num_cuts[rows], self._cars.final_obs[rows]
            self._cut_obs[index, rows] = self._normalizer.normalize_obs(final_obs, out=final_obs)
            self._cuts[index, step, rows] = True
            self._num_cuts[rows] += 1

    def _record(self, step: int) -> None:
        cars = self._cars
        self.ended[step] = cars.ended
        self.infos[step] = cars.infos
        self.episode_returns[step] = cars.episode_returns
        self.episode_lengths[step] = cars.episode_lengths
        terms = cars.infos[:, : len(REWARD_KEYS)].view(torch.float32)
        torch.mean(terms, 0, out=self.reward_terms[step])

    def finish(self, gamma: float, gae_lambda: float) -> None:
        """Fill values, advantages and returns (generalized advantage estimation)."""
        self._evaluate(self.observations.flatten(0, 1), self.values[:-1].view(-1))
        self._evaluate(self.obs, self.values[-1])
        self._evaluate(self._cut_obs.flatten(0, 1), self._cut_values.view(-1))
        for cut_off, values in zip(self._cuts, self._cut_values, strict=True):
            self.rewards.add_(cut_off * values, alpha=gamma)
        continues = self.ended.logical_not().float()
        errors = self.values[1:] * continues
        errors.mul_(gamma).add_(self.rewards).sub_(self.values[:-1])
        continues.mul_(gamma * gae_lambda)
        advantage = self.advantages[-1].copy_(errors[-1])
        for step in reversed(range(self.num_steps - 1)):
            advantage = torch.addcmul(errors[step], continues[step], advantage, out=self.advantages[step])
        torch.add(self.advantages, self.values[:-1], out=self.returns)

    def _evaluate(self, observations: Tensor, values: Tensor) -> None:
        """Values (n,) of observations (n, num_obs), in few large products, each network on a thread of its own."""
        num_rows, nets = VALUE_ROWS[observations.device.type], self._value_nets
        # The parts are the same whatever the threads do, so the bits are too.
        parts = [slice(start, start + num_rows) for start in range(0, len(values), num_rows)]

        def evaluate(index: int) -> None:
            for part in parts[index :: len(nets)]:
                values[part] = nets[index].forward(observations[part])[0]

        if len(nets) == 1 or len(parts) == 1:
            evaluate(0)
            return
        with ThreadPoolExecutor(len(nets), "values") as pool:
            list(pool.map(evaluate, range(len(nets))))

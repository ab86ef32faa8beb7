"""Races with TorchRL: its PettingZoo wrapper around `hotlap.parallel_env`, one policy for all cars, its PPO.

Needs `pip install torchrl`. One race at a time: for speed use `hotlap.TensorRacer`, as tensor_ppo.py does.

usage: python race_torchrl.py [--rollouts 200] [--cars 4] [--seed 1]
"""

import argparse
import warnings
from typing import Any

import torch
from pettingzoo.utils import BaseParallelWrapper
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.envs import PettingZooWrapper
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, ValueEstimators

import hotlap

warnings.filterwarnings("ignore", message="PettingZoo in TorchRL")  # TorchRL names the one version it is tested with

REPEAT = 4  # ticks that an action is held
STEPS, EPOCHS, BATCH = 120, 8, 60  # decisions of a rollout, passes over it, rows of an update
GAMMA, LAMBDA, RATE = 0.987, 0.95, 5e-4
GROUP = "car"  # TorchRL's name for car_0, car_1, …
OBS, ACTION, VALUE = (GROUP, "observation"), (GROUP, "action"), (GROUP, "state_value")


class HeldActions(BaseParallelWrapper):
    """Holds actions for REPEAT ticks. TorchRL takes the keys of infos from `reset`, so a step gives only those."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._keys: list[str] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin a race."""
        obs, infos = self.env.reset(seed, options)
        self._keys = list(next(iter(infos.values())))
        return obs, infos

    def step(self, actions: Any) -> Any:
        """REPEAT ticks, or until the race is over."""
        totals = dict.fromkeys(actions, 0.0)
        for _ in range(REPEAT):
            obs, rewards, terminated, truncated, infos = self.env.step(actions)
            totals = {car: total + rewards[car] for car, total in totals.items()}
            if not self.env.agents:
                break
        kept = {car: {key: info[key] for key in self._keys} for car, info in infos.items()}
        return obs, totals, terminated, truncated, kept


def make_networks(env: PettingZooWrapper) -> tuple[ProbabilisticActor, ValueOperator]:
    """The policy and the value function, the same for every car."""
    size = env.observation_spec[OBS].shape[-1]
    space = env.full_action_spec[ACTION].space
    layers = nn.Sequential(nn.Linear(size, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 6))
    with torch.no_grad():  # at first it accelerates: with as much brake as throttle a car never moves
        layers[-1].weight.mul_(0.01)
        layers[-1].bias.copy_(torch.tensor([0.0, 0.5, -2.0, -0.5, -0.5, -0.5]))
    parameters = [(GROUP, "loc"), (GROUP, "scale")]
    policy = ProbabilisticActor(
        TensorDictModule(nn.Sequential(layers, NormalParamExtractor()), [OBS], parameters),
        in_keys=parameters,
        out_keys=[ACTION],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": space.low[0], "high": space.high[0]},
        return_log_prob=True,
        log_prob_key=(GROUP, "action_log_prob"),
    )
    value = nn.Sequential(nn.Linear(size, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))
    return policy, ValueOperator(value, in_keys=[OBS], out_keys=[VALUE])


def make_loss(policy: ProbabilisticActor, value: ValueOperator) -> ClipPPOLoss:
    """PPO's loss; every car has its own reward."""
    loss = ClipPPOLoss(policy, value, clip_epsilon=0.2, entropy_coeff=0.0)
    names = ("reward", "action", "done", "terminated", "advantage", "value_target")
    loss.set_keys(value=VALUE, sample_log_prob=(GROUP, "action_log_prob"), **{name: (GROUP, name) for name in names})
    loss.make_value_estimator(ValueEstimators.GAE, gamma=GAMMA, lmbda=LAMBDA)
    return loss


def learn(loss: ClipPPOLoss, adam: torch.optim.Optimizer, rollout: TensorDict) -> None:
    """EPOCHS passes over a rollout."""
    with torch.no_grad():
        loss.value_estimator(
            rollout, params=loss.critic_network_params, target_params=loss.target_critic_network_params
        )
        advantages = rollout[(GROUP, "advantage")]
        rollout[(GROUP, "advantage")] = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(rollout)).split(BATCH):
            losses = loss(rollout[some])
            adam.zero_grad()
            sum(losses[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
            nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            adam.step()


def main() -> None:
    """Train, and say how far the cars get."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=200)
    parser.add_argument("--cars", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    race = hotlap.parallel_env(num_cars=options.cars, laps=1, start="rolling", config={"weights": {"progress": 100.0}})
    env = PettingZooWrapper(HeldActions(race), use_mask=False, seed=options.seed)
    policy, value = make_networks(env)
    loss = make_loss(policy, value)
    adam = torch.optim.Adam(loss.parameters(), RATE)
    for number in range(1, options.rollouts + 1):
        with torch.no_grad():
            rollout = env.rollout(STEPS, policy)  # each begins another race
        learn(loss, adam, rollout)
        progress_m = rollout[("next", GROUP, "info", "raceProgress")]
        driven_m = (progress_m[-1] - progress_m[0]).mean().item()
        if number % 20 == 0 or number == options.rollouts:
            print(f"rollout {number}: in eight seconds a car drives {driven_m:.0f} m", flush=True)


if __name__ == "__main__":
    main()

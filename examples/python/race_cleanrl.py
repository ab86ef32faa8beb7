"""PPO for races in one file, in the style of CleanRL: everything from the network to the update, top to bottom.

One policy drives every car of every race; it learns from all of them on `hotlap.RaceVectorEnv`.

usage: python race_cleanrl.py [--steps 500000] [--races 32] [--cars 4] [--seed 1] [--track track-01]
"""

import argparse
import math
import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal

import hotlap

REPEAT = 4  # ticks that an action is held
NUM_STEPS = 64  # decisions of a car between updates
NUM_EPOCHS, NUM_BATCHES = 4, 8
GAMMA, GAE_LAMBDA = 0.987, 0.95
CLIP, VALUE_WEIGHT, MAX_GRADIENT = 0.2, 0.5, 0.5
LEARNING_RATE = 5e-4
LOW, HIGH = np.array([-1.0, 0.0, 0.0], np.float32), np.ones(3, np.float32)
CONTACT_COST = 0.002  # of a contact that is the car's own fault, for each m/s at which it closed in


def layer(num_inputs: int, num_outputs: int, gain: float = math.sqrt(2.0)) -> nn.Linear:
    """A layer with orthogonal weights."""
    made = nn.Linear(num_inputs, num_outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """The policy, the value function, and the mean and spread of what cars have seen."""

    def __init__(self, num_obs: int) -> None:
        super().__init__()
        self.policy = nn.Sequential(layer(num_obs, 96), nn.Tanh(), layer(96, 96), nn.Tanh(), layer(96, 3, 0.01))
        self.value = nn.Sequential(layer(num_obs, 96), nn.Tanh(), layer(96, 96), nn.Tanh(), layer(96, 1, 1.0))
        self.log_std = nn.Parameter(torch.full((3,), -0.5))
        self.register_buffer("mean", torch.zeros(num_obs))
        self.register_buffer("variance", torch.ones(num_obs))
        self.count = 1e-4

    def see(self, obs: np.ndarray, is_learning: bool = True) -> Tensor:
        """Observations of zero mean and unit variance."""
        rows = torch.from_numpy(obs)
        if is_learning:
            total, apart = self.count + len(rows), rows.mean(0) - self.mean
            spread = apart.square() * self.count * len(rows) / total
            self.variance = (self.variance * self.count + rows.var(0, unbiased=False) * len(rows) + spread) / total
            self.mean, self.count = self.mean + apart * len(rows) / total, total
        return ((rows - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-10.0, 10.0)

    def judge(self, obs: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, drawn if none are given; their log probabilities; and the values of the observations."""
        chances = Normal(self.policy(obs), self.log_std.exp())
        actions = chances.sample() if actions is None else actions
        return actions, chances.log_prob(actions).sum(-1), self.value(obs)[:, 0]


def drive(env: hotlap.RaceVectorEnv, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hold actions for REPEAT ticks; observations, rewards, and which cars' races ended.

    A race that begins within these ticks is driven with the old actions for the rest of them.
    """
    total, ended = np.zeros(env.num_envs, np.float32), np.zeros(env.num_envs, np.bool_)
    for _ in range(REPEAT):
        obs, rewards, terminated, truncated, info = env.step(np.clip(actions, LOW, HIGH))
        total += np.where(ended, 0.0, rewards - CONTACT_COST * info["contact"] * info["atFault"])
        ended |= terminated | truncated
    return obs, total, ended


def advantages_of(rewards: Tensor, values: Tensor, ended: Tensor, last_value: Tensor) -> Tensor:
    """Generalized advantage estimates, (NUM_STEPS, cars)."""
    found, ahead = torch.zeros_like(rewards), torch.zeros_like(last_value)
    for step in reversed(range(len(rewards))):
        goes_on = 1.0 - ended[step]
        error = rewards[step] + GAMMA * goes_on * last_value - values[step]
        ahead = error + GAMMA * GAE_LAMBDA * goes_on * ahead
        found[step], last_value = ahead, values[step]
    return found


def update(agent: Agent, adam: torch.optim.Adam, rows: dict[str, Tensor]) -> float:
    """Passes over a rollout; returns how far the policy moved (KL divergence)."""
    kls = []
    for _ in range(NUM_EPOCHS):
        for some in torch.randperm(len(rows["obs"])).chunk(NUM_BATCHES):
            batch = {name: column[some] for name, column in rows.items()}
            _, log_probs, values = agent.judge(batch["obs"], batch["actions"])
            log_ratio = log_probs - batch["log_probs"]
            ratio = log_ratio.exp()
            gain = (batch["advantages"] - batch["advantages"].mean()) / (batch["advantages"].std() + 1e-8)
            policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * gain).mean()
            value_loss = (values - batch["targets"]).square().mean()
            adam.zero_grad()
            (policy_loss + VALUE_WEIGHT * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRADIENT)
            adam.step()
            kls.append((ratio - 1.0 - log_ratio).detach().mean())
    return float(torch.stack(kls).mean())


def five_seconds_m(agent: Agent, env: hotlap.RaceVectorEnv, seed: int) -> float:
    """How far a car drives in five seconds without noise, the median of all cars (m)."""
    obs, info = env.reset(seed=seed)
    start_m = info["raceProgress"]
    for _ in range(5 * 60 // REPEAT):
        with torch.no_grad():
            actions = agent.policy(agent.see(obs, is_learning=False)).numpy()
        obs, _, _ = drive(env, actions)
    return float(np.median(env.fleet.progress_m - start_m))


def main() -> None:
    """Train, and say how far the cars get."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500_000, help="decisions of all cars")
    parser.add_argument("--races", type=int, default=32)
    parser.add_argument("--cars", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--track", default="track-01")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    config = {"weights": {"progress": 20.0}}
    env = hotlap.RaceVectorEnv(options.races, options.cars, options.track, laps=1, start="rolling", config=config)
    agent = Agent(env.single_observation_space.shape[0])
    adam = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
    num_updates, begin_s = max(options.steps // (NUM_STEPS * env.num_envs), 1), time.monotonic()
    seen = agent.see(env.reset(seed=options.seed)[0])
    for number in range(1, num_updates + 1):
        adam.param_groups[0]["lr"] = LEARNING_RATE * (1.0 - 0.9 * (number - 1) / num_updates)
        rollout = []
        for _ in range(NUM_STEPS):
            with torch.no_grad():
                actions, log_probs, values = agent.judge(seen)
            obs, rewards, ended = drive(env, actions.numpy())
            rollout.append(
                (seen, actions, log_probs, values, torch.from_numpy(rewards), torch.from_numpy(ended).float())
            )
            seen = agent.see(obs)
        all_seen, actions, log_probs, values, rewards, ended = (
            torch.stack(column) for column in zip(*rollout, strict=True)
        )
        with torch.no_grad():
            advantages = advantages_of(rewards, values, ended, agent.value(seen)[:, 0])
        rows = {"obs": all_seen, "actions": actions, "log_probs": log_probs, "advantages": advantages}
        kl = update(
            agent,
            adam,
            {name: column.flatten(0, 1) for name, column in (rows | {"targets": advantages + values}).items()},
        )
        if number % 20 == 0 or number == num_updates:
            decisions = number * NUM_STEPS * env.num_envs
            rate = decisions / (time.monotonic() - begin_s)
            print(
                f"{decisions:>9,} decisions, {rate:,.0f} a second, reward {rewards.mean():.4f}, KL {kl:.3f}", flush=True
            )
    print(f"in five seconds a car drives {five_seconds_m(agent, env, options.seed + 1):.0f} m")


if __name__ == "__main__":
    main()

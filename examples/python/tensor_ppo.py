"""PPO in one file, on cars that are tensors: learns to lap track-01, and says how far it is from the optimal lap.

usage: python tensor_ppo.py [--minutes 8] [--device cpu|cuda] [--track track-01] [--seed 1]

The method is that of the recipe `racer-ppo`: many cars from random starts, normalized observations and rewards, a
learning rate that follows the KL divergence, and a floor under the noise. What `hotlap train` adds is missing here:
checkpoints, exact resume, evaluations, and passes written out by hand, which are faster than autograd.
"""

import argparse
import math
import time
from itertools import pairwise

import torch
from torch import Tensor, nn

from hotlap import TensorRacer
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track

STEPS, EPOCHS = 64, 3  # decisions of a car between updates, and passes over them
GAMMA, LAMBDA, CLIP = 0.987, 0.97, 0.2
FIRST_RATE, MIN_RATE, MAX_RATE = 5e-4, 1e-5, 5e-3
DESIRED_KL, MIN_STD = 0.02, 0.1
REPEAT = 4  # ticks that a decision is held
CONFIG = {
    "weights": {"penaltyMinSpeed": 8.0},
    "episode": {"start": "random", "maxSteps": 720, "stillnessTimeoutTicks": 60, "spunFraction": 0.125},
}


class Normalizer:
    """Running mean and variance of a stream of rows."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.mean = torch.zeros(size, device=device)
        self.variance = torch.ones(size, device=device)
        self.count = 1e-4

    def add(self, rows: Tensor) -> None:
        """Take rows in."""
        count, mean, variance = len(rows), rows.mean(0), rows.var(0, unbiased=False)
        total, apart = self.count + count, mean - self.mean
        spread = apart.square() * self.count * count / total
        self.variance = (self.variance * self.count + variance * count + spread) / total
        self.mean = self.mean + apart * count / total
        self.count = total

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows of zero mean and unit variance."""
        return ((rows - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-10.0, 10.0)


def network(num_inputs: int, num_outputs: int, gain: float) -> nn.Sequential:
    """Two hidden layers with orthogonal weights; the last layer's are small."""
    sizes, layers = (num_inputs, 96, 96, num_outputs), []
    for index, (rows, columns) in enumerate(pairwise(sizes)):
        layer = nn.Linear(rows, columns)
        nn.init.orthogonal_(layer.weight, gain if index == 2 else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
        layers += [layer] if index == 2 else [layer, nn.Tanh()]
    return nn.Sequential(*layers)


class Learner:
    """The policy, its value function and how they learn."""

    def __init__(self, racer: TensorRacer, batch_size: int) -> None:
        device, size = racer.device, racer.num_observations
        self.racer, self.batch_size, self.rate = racer, batch_size, FIRST_RATE
        self.policy, self.value = network(size, 3, 0.01).to(device), network(size, 1, 1.0).to(device)
        self.log_std = nn.Parameter(torch.full((3,), -0.5, device=device))
        self.weights = [*self.policy.parameters(), *self.value.parameters(), self.log_std]
        self.adam = torch.optim.Adam(self.weights, self.rate, eps=1e-5)
        self.normalizer, self.returns_seen = Normalizer(size, device), Normalizer(1, device)
        self.discounted = torch.zeros(racer.num_envs, device=device)  # of each car's running episode
        self.low = torch.tensor([-1.0, 0.0, 0.0], device=device)

    def log_prob(self, mean: Tensor, actions: Tensor) -> Tensor:
        """How likely actions are around a mean."""
        distance = (actions - mean) / self.log_std.exp()
        return (-0.5 * distance.square() - self.log_std - 0.5 * math.log(2.0 * math.pi)).sum(-1)

    @torch.no_grad()
    def collect(self, obs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Drive STEPS decisions; the last observation, and the rows to learn from."""
        racer, rows = self.racer, []
        self.normalizer.add(obs)
        seen = self.normalizer(obs)
        for _ in range(STEPS):
            mean, value = self.policy(seen), self.value(seen)[:, 0]
            actions = mean + self.log_std.exp() * torch.randn_like(mean)
            obs, rewards, terminated, truncated, infos = racer.step(actions.clamp(self.low, torch.ones_like(self.low)))
            ended = terminated | truncated
            scaled = self.scale(rewards, ended)
            last_value = self.value(self.normalizer(infos["final_obs"]))[:, 0]
            scaled = torch.where(truncated & ~terminated, scaled + GAMMA * last_value, scaled)
            rows.append((seen, actions, self.log_prob(mean, actions), value, scaled, ended))
            self.normalizer.add(obs)
            seen = self.normalizer(obs)
        columns = [torch.stack(column) for column in zip(*rows, strict=True)]
        names = ("obs", "actions", "log_probs", "values", "rewards", "ended")
        return obs, self.with_advantages(dict(zip(names, columns, strict=True)), self.value(seen)[:, 0])

    def scale(self, rewards: Tensor, ended: Tensor) -> Tensor:
        """Rewards over the spread of discounted returns."""
        self.discounted = GAMMA * self.discounted + rewards
        self.returns_seen.add(self.discounted[:, None])
        self.discounted = torch.where(ended, 0.0, self.discounted)
        return (rewards / (self.returns_seen.variance + 1e-8).sqrt()).clamp(-10.0, 10.0)

    def with_advantages(self, rollout: dict[str, Tensor], last_value: Tensor) -> dict[str, Tensor]:
        """Generalized advantages, and all rows of all cars in one column each."""
        advantages, ahead = torch.zeros_like(rollout["rewards"]), torch.zeros_like(last_value)
        for step in reversed(range(STEPS)):
            goes_on = 1.0 - rollout["ended"][step].float()
            error = rollout["rewards"][step] + GAMMA * goes_on * last_value - rollout["values"][step]
            ahead = error + GAMMA * LAMBDA * goes_on * ahead
            advantages[step], last_value = ahead, rollout["values"][step]
        rollout |= {"advantages": advantages, "targets": advantages + rollout["values"]}
        return {name: column.flatten(0, 1) for name, column in rollout.items()}

    def update(self, rows: dict[str, Tensor]) -> float:
        """EPOCHS passes over a rollout; returns the KL divergence, which the learning rate follows."""
        kl_sum, num_batches = 0.0, 0
        for _ in range(EPOCHS):
            order = torch.randperm(len(rows["targets"]), device=self.racer.device)
            for some in order.split(self.batch_size):
                batch = {name: column[some] for name, column in rows.items()}
                log_ratio = self.log_prob(self.policy(batch["obs"]), batch["actions"]) - batch["log_probs"]
                ratio = log_ratio.exp()
                gain = (batch["advantages"] - batch["advantages"].mean()) / (batch["advantages"].std() + 1e-8)
                policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * gain).mean()
                value_loss = (self.value(batch["obs"])[:, 0] - batch["targets"]).square().mean()
                self.adam.zero_grad()
                (policy_loss + 0.5 * value_loss).backward()
                nn.utils.clip_grad_norm_(self.weights, 0.5)
                self.adam.step()
                kl_sum, num_batches = kl_sum + float(((ratio - 1.0) - log_ratio).detach().mean()), num_batches + 1
        kl = kl_sum / num_batches
        factor = 1.0 / 1.5 if kl > 2.0 * DESIRED_KL else 1.5 if kl < 0.5 * DESIRED_KL else 1.0
        self.rate = min(max(self.rate * factor, MIN_RATE), MAX_RATE)
        for group in self.adam.param_groups:
            group["lr"] = self.rate
        with torch.no_grad():
            self.log_std.clamp_(min=math.log(MIN_STD))
        return kl

    @torch.no_grad()
    def lap_times(self, track: str, num_cars: int = 100, max_s: float = 120.0) -> tuple[list[float], int]:
        """Each car's first clean lap from a random start, without noise; and how many cars drove a lap at all."""
        settings = {"episode": {"start": "random", "maxSteps": 10**6}}
        racer = TensorRacer(num_cars, track, device=self.racer.device.type, action_repeat=REPEAT, config=settings)
        obs, _ = racer.reset(seed=12345)
        times = torch.full((num_cars,), math.nan, device=racer.device)
        clean = torch.zeros(num_cars, dtype=torch.bool, device=racer.device)
        for _ in range(int(max_s * 60 / REPEAT)):
            actions = self.policy(self.normalizer(obs)).clamp(self.low, torch.ones_like(self.low))
            obs, _, _, _, infos = racer.step(actions)
            is_first = times.isnan() & ~infos["lapTime"].isnan()
            times = torch.where(is_first, infos["lapTime"], times)
            clean = torch.where(is_first, infos["lapClean"], clean)
            if not times.isnan().any():
                break
        return times[clean].tolist(), int((~times.isnan()).sum())


def main() -> None:
    """Train for some minutes and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--track", default="track-01")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    num_cars, batch_size = (4096, 8192) if options.device == "cuda" else (512, 1024)
    racer = TensorRacer(num_cars, options.track, options.device, action_repeat=REPEAT, config=CONFIG)
    learner, begin = Learner(racer, batch_size), time.monotonic()
    obs, _ = racer.reset(seed=options.seed)
    decisions = 0
    while time.monotonic() - begin < 60.0 * options.minutes:
        obs, rows = learner.collect(obs)
        kl = learner.update(rows)
        decisions += num_cars * STEPS
        if decisions // (num_cars * STEPS) % 10 == 0:
            elapsed_s = time.monotonic() - begin
            reward = float(rows["rewards"].mean())
            print(f"{elapsed_s:4.0f} s  {decisions:>11,} decisions  reward {reward:.3f}  KL {kl:.3f}", flush=True)
    times_s, num_laps = learner.lap_times(options.track)
    print(f"{num_laps} of 100 random starts drove a lap, {len(times_s)} of them cleanly")
    reference = find_reference(load_track(options.track))
    if times_s and reference is not None:
        median_s = sorted(times_s)[len(times_s) // 2]
        gap = 100.0 * (median_s / reference.lap_time_s - 1.0)
        print(f"median lap {median_s:.2f} s, optimal {reference.lap_time_s:.2f} s, gap {gap:.1f} %")


if __name__ == "__main__":
    main()

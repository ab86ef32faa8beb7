"""Behaviour cloning: a network learns to drive from a dataset alone, and says how far it is from the optimal lap.

usage: hotlap dataset record champion --track track-01 --episodes 100 --noise 0.1
       python behaviour_cloning.py datasets/hotlap/track-01/champion-v0 [--passes 40] [--starts 1000] [--seed 1]

The network sees what the dataset's driver saw and learns to do what it did, by least squares. No car is driven while it
learns. Afterwards it drives: from random starts that are in no dataset, and from the line.
"""

import argparse
import math
from pathlib import Path

import minari
import numpy as np
import torch
from torch import Tensor, nn

from hotlap import TensorRacer
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track

PROGRESS = 12  # the observation that says how much of the lap is done, from 0 to 1
NUM_WAVES = 16  # of it the network sees sine and cosine
WIDTH, BATCH = 128, 256
FIRST_RATE, LAST_RATE = 2e-3, 2e-5
FIRST_SEED = 7_000_003  # of the starts that are measured; none of the dataset's


def read_rows(dataset: minari.MinariDataset) -> tuple[Tensor, Tensor, str, int]:
    """What the driver saw when it decided, and what it asked for: steer, and throttle less brake.

    Then its track, and for how many ticks it holds a decision.
    """
    seen, asked, tracks, repeats = [], [], set(), set()
    for episode, about in zip(dataset, dataset.storage.get_episode_metadata(range(len(dataset))), strict=True):
        repeat = int(about["action_repeat"])
        seen.append(episode.observations[:-1:repeat])
        asked.append(episode.infos["driverAction"][:-1:repeat])
        tracks.add(str(about["track"]))
        repeats.add(repeat)
    if len(tracks) != 1 or len(repeats) != 1:
        raise SystemExit("the dataset must have one track, and drivers that decide equally often")
    actions = torch.tensor(np.concatenate(asked))
    axes = torch.stack([actions[:, 0], actions[:, 1] - actions[:, 2]], dim=1)
    return torch.tensor(np.concatenate(seen)), axes, tracks.pop(), repeats.pop()


class Clone(nn.Module):
    """From observations to steer, and throttle less brake."""

    def __init__(self, observations: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", observations.mean(0))
        self.register_buffer("scale", observations.std(0) + 1e-3)
        self.register_buffer("waves", 2.0 * math.pi * torch.arange(1, NUM_WAVES + 1))
        inputs = observations.shape[1] + 2 * NUM_WAVES
        layers = [nn.Linear(inputs, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 2)]
        self.layers = nn.Sequential(*layers)

    def forward(self, observations: Tensor) -> Tensor:
        """Both axes, slightly beyond their bounds at most: full steering and full pedals need no large weights."""
        angles = observations[:, PROGRESS : PROGRESS + 1] * self.waves
        usual = ((observations - self.mean) / self.scale).clamp(-10.0, 10.0)
        return 1.1 * self.layers(torch.cat([usual, angles.sin(), angles.cos()], dim=1)).tanh()

    @torch.no_grad()
    def drive(self, observations: Tensor) -> Tensor:
        """Steer, throttle and brake."""
        steer, pedal = self(observations).clamp(-1.0, 1.0).unbind(1)
        return torch.stack([steer, pedal.clamp(min=0.0), (-pedal).clamp(min=0.0)], dim=1)


def learn(seen: Tensor, asked: Tensor, passes: int) -> Clone:
    """Minimise the squared distance to what the driver asked for; the learning rate falls from pass to pass."""
    clone = Clone(seen)
    adam = torch.optim.Adam(clone.parameters(), FIRST_RATE)
    for number in range(1, passes + 1):
        for group in adam.param_groups:
            group["lr"] = FIRST_RATE * (LAST_RATE / FIRST_RATE) ** (number / passes)
        total = 0.0
        for some in torch.randperm(len(seen)).split(BATCH):
            loss = (clone(seen[some]).clamp(-1.0, 1.0) - asked[some]).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += float(loss.detach()) * len(some)
        print(f"pass {number:3d}  error {math.sqrt(total / len(seen)):.4f}", flush=True)
    return clone


def measure(clone: Clone, racer: TensorRacer, first_lap: int, max_steps: int) -> tuple[list[float], int]:
    """Times of the cars whose flying lap, which is lap `first_lap`, is clean; and how many cars drove one at all."""
    observations, _ = racer.reset(seed=FIRST_SEED)
    laps = torch.zeros(racer.num_envs, dtype=torch.int32)
    times, clean = torch.full((racer.num_envs,), math.nan), torch.zeros(racer.num_envs, dtype=torch.bool)
    for _ in range(max_steps):
        observations, _, _, _, infos = racer.step(clone.drive(observations))
        has_lap = ~infos["lapTime"].isnan()
        laps += has_lap
        is_flying = has_lap & (laps == first_lap)
        times = torch.where(is_flying, infos["lapTime"], times)
        clean = torch.where(is_flying, infos["lapClean"], clean)
        if not times.isnan().any():
            break
    return times[clean].tolist(), int((~times.isnan()).sum())


def main() -> None:
    """Learn from the dataset, drive, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-lap-s", type=float, default=90.0, help="how long a car may take for a lap")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    dataset = minari.MinariDataset(options.dataset / "data")
    seen, asked, track, repeat = read_rows(dataset)
    print(f"{len(dataset)} episodes, {len(seen):,} decisions of {repeat} ticks on {track}")
    clone = learn(seen, asked, options.passes)
    reference = find_reference(load_track(track))
    observation = dataset.env_spec.kwargs["observation"]
    for start, num_cars, first_lap in (("random", options.starts, 1), ("line", 1, 2)):
        # No time limits: a car that fails must not begin a new episode and lap then.
        settings = {"episode": {"start": start, "maxSteps": 10**6, "stillnessTimeoutTicks": 10**6}}
        racer = TensorRacer(num_cars, track, action_repeat=repeat, observation=observation, config=settings)
        times_s, num_laps = measure(clone, racer, first_lap, int(2 * options.max_lap_s * 60 / repeat))
        line = f"from {num_cars} {start} starts: {num_laps} flying laps, {len(times_s)} of them clean"
        if times_s and reference is not None:
            gaps = np.sort(100.0 * (np.array(times_s) / reference.lap_time_s - 1.0))
            line += f"; gap to the optimum: median {np.median(gaps):.2f} %, worst {gaps[-1]:.2f} %"
            line += f", at most 5 % in {int((gaps <= 5.0).sum())}"
        print(line)


if __name__ == "__main__":
    main()

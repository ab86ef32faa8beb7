"""Trains a run, alone or as one of several processes, and writes what its learner saw."""

import sys
from pathlib import Path

import numpy as np

from hotlap.learning.distributed.processes import ALONE, Processes, join_processes
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import RunFolder
from hotlap.training.trainer import Observer, Trainer


class FirstRollout(Observer):
    """Keeps the advantages of the first rollout, (num_steps, num_envs), and the normalizer's moments after it."""

    def __init__(self):
        self.found, self.episodes = {}, []

    def on_rollout_start(self, learner):
        self.learner = learner
        if learner.num_timesteps and not self.found:
            normalizer = learner.policy().normalizer
            self.found = {
                "advantages": learner._parts.rollout.advantages.numpy().copy(),
                "mean": normalizer["obs_mean"],
                "variance": normalizer["obs_var"],
                "return_variance": normalizer["return_var"],
                "count": normalizer["obs_count"],
                "episodes": np.array(self.episodes),
            }

    def on_step(self, events):
        self.episodes += events.episodes()
        return True


def train_and_record(config: RunConfig, path: Path, processes: Processes = ALONE) -> dict[str, np.ndarray]:
    """What the learner saw in its first rollout, and its weights and its learning rate at the end."""
    first = FirstRollout()
    path.mkdir(exist_ok=True)
    Trainer(config, RunFolder(path, config.experiment_id), observers=[first], processes=processes).run()
    weights = {f"weight {name}": value for name, value in first.learner.policy().weights.items()}
    return {**first.found, **weights, "lr_scale": np.array(first.learner._lr_scale)}


def main() -> None:
    recipe, path = map(Path, sys.argv[1:])
    processes = join_processes()
    found = train_and_record(load_config(recipe), path, processes)
    np.savez(path / f"rank{processes.rank}.npz", **found)
    processes.leave()


if __name__ == "__main__":
    main()

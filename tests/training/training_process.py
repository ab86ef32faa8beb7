"""Trains a run, alone or as one of several processes, and writes what its learner saw."""

import sys
from pathlib import Path

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from hotlap.learning.distributed.processes import ALONE, Processes, join_processes
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import RunFolder
from hotlap.training.trainer import Trainer


class FirstRollout(BaseCallback):
    """Keeps the advantages of the first rollout, (num_steps, num_envs), and the normalizer's moments after it."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        if not self.found:
            normalizer = self.model.get_vec_normalize_env()
            self.found = {
                "advantages": self.model.rollout.advantages.numpy().copy(),
                "mean": normalizer.obs_rms.mean,
                "variance": normalizer.obs_rms.var,
                "return_variance": normalizer.ret_rms.var,
                "count": normalizer.obs_rms.count,
                "episodes": np.array([(info["r"], info["l"]) for info in self.model.ep_info_buffer]),
            }


def train_and_record(config: RunConfig, path: Path, processes: Processes = ALONE) -> dict[str, np.ndarray]:
    """What the learner saw in its first rollout, and its weights and its learning rate at the end."""
    first = FirstRollout()
    path.mkdir(exist_ok=True)
    Trainer(config, RunFolder(path, config.experiment_id), callbacks=[first], processes=processes).run()
    weights = {f"weight {name}": value.numpy() for name, value in first.model.policy.state_dict().items()}
    return {**first.found, **weights, "lr_scale": first.model.lr_scale}


def main() -> None:
    recipe, path = map(Path, sys.argv[1:])
    processes = join_processes()
    found = train_and_record(load_config(recipe), path, processes)
    np.savez(path / f"rank{processes.rank}.npz", **found)
    processes.leave()


if __name__ == "__main__":
    main()

"""Training runs that take a fraction of a second, and comparisons between two of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.config import build, snake_case
from hotlap.evaluation import evaluate as laps
from hotlap.evaluation.returns import Returns
from hotlap.models.archive import read_archive
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.trainer import Observer, Outcome, Trainer

# The first optimizer imports half of torch, which takes seconds; here it counts towards no test's timeout.
torch.optim.Adam([torch.zeros(1, requires_grad=True)])

ALGORITHMS = ("ppo", "sac", "a2c")
RACER, REMOTE_RACER, LUNAR = "hotlap/Racer-v0", "hotlap/RemoteRacer-v0", "LunarLander-v3"

SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 32, "batch_size": 32, "n_epochs": 2},
    "a2c": {"n_steps": 5, "normalize_advantage": True},
    "sac": {"buffer_size": 75, "learning_starts": 20, "batch_size": 16, "train_freq": 2, "gradient_steps": 1},
}


def tiny_config(algo: str = "ppo", env: str = RACER, num_envs: int = 1, steps: int = 100, **changes: Any) -> RunConfig:
    """A run of a few rollouts, episodes and checkpoints; `changes` are merged into it, table by table."""
    data: dict[str, Any] = {
        "algo": algo,
        "env": env,
        "num_envs": num_envs,
        "steps": steps,
        "recording_interval": 10,
        "policy": {"net_arch": [8]},
        "normalize": {"obs": True, "reward": True},
        algo: SMALL[algo],
        "checkpoint": {"interval": 40},
        "evaluation": {"interval": 0, "final_episodes": 1},
    }
    if env in (RACER, REMOTE_RACER):
        data["racer"] = {"episode": {"max_ticks": 30, "stillness_timeout_ticks": 25, "start": "random"}}
    if env == LUNAR and algo == "sac":
        data["env_args"] = {"continuous": True}
    for name, value in changes.items():
        data[name] = {**data.get(name, {}), **value} if isinstance(value, dict) else value
    return build(RunConfig, data, "tiny", snake_case)


def recipe_config(steps: int = 2048) -> RunConfig:
    """The default recipe of the racer with fewer cars and steps; all that a model depends on is the recipe's."""
    return resolve_config(
        "racer-ppo",
        {
            "steps": steps,
            "num_envs": 16,
            "checkpoint.interval": 0,
            "evaluation.interval": 0,
            "evaluation.final_episodes": 1,
        },
    )


class StopAt(Observer):
    """Asks the trainer to stop at a step, as a signal handler would."""

    trainer: Trainer

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step(self, events):
        if events.num_timesteps >= self._step:
            self.trainer.stop()
        return True


def folder_at(path: Path, config: RunConfig) -> RunFolder:
    """The folder of a run, created."""
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path, config.experiment_id)
    folder.write_config(config)
    return folder


def train(config: RunConfig, path: Path, stop_at: int | None = None, resume: bool = False) -> Outcome:
    """Train in a folder, from the start or from the newest checkpoint."""
    stop = None if stop_at is None else StopAt(stop_at)
    trainer = Trainer(config, folder_at(path, config), observers=() if stop is None else (stop,))
    if stop is not None:
        stop.trainer = trainer
    return trainer.run(trainer.checkpoints.find_newest() if resume else None)


def skip_evaluation(patch: pytest.MonkeyPatch) -> None:
    """Replace evaluations by constants, in tests about something else."""
    found = laps.Evaluation(
        "x", "track-01", "random", 0, 1, 0, 0.0, None, None, None, None, None, None, None, None, 0.0
    )
    patch.setattr(PolicyEvaluator, "evaluate_returns", lambda *_: Returns(np.zeros(1), np.ones(1, np.int64)))
    patch.setattr(PolicyEvaluator, "evaluate_laps", lambda *_: found)
    patch.setattr(PolicyEvaluator, "evaluate_file", lambda *_: found)


def tensors(path: Path) -> dict[str, bytes]:
    """Every array in a model or checkpoint, by group and name, as bytes with dtype and shape."""
    return {
        f"{group}/{name}": f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
        for group, arrays in read_archive(path).tensors.items()
        for name, array in arrays.items()
    }


def metrics(folder: RunFolder) -> Any:
    """The metrics document without its times."""
    content = json.loads(folder.metrics.read_text())["training_metrics"]
    for point in content["time_series"]:
        del point["timestamp"]
    return {"racer_series": [], **content}


def read_events(path: Path) -> dict[str, list[tuple[int, float]]]:
    """The TensorBoard scalars of a run that do not depend on the clock."""
    events = EventAccumulator(str(path / "tensorboard"), {"scalars": 0}).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
        if not name.startswith("time/")
    }


def results(folder: RunFolder) -> Any:
    """The results document without its times and its checkpoints (a stop adds one)."""
    content = json.loads(folder.results.read_text())["experiment_results"]
    for name in ("start_time", "end_time"):
        del content["metadata"][name]
    del content["metrics"]["training_time_seconds"], content["model"]["checkpoints"]
    return content


def assert_same_run(one: Path, other: Path, config: RunConfig) -> None:
    """Assert that two runs are bit-identical in everything that does not depend on the clock."""
    first, second = RunFolder(one, config.experiment_id), RunFolder(other, config.experiment_id)
    assert metrics(first) == metrics(second)
    assert results(first) == results(second)
    saved, again = tensors(first.model), tensors(second.model)
    assert saved.keys() == again.keys()
    assert [name for name in saved if saved[name] != again[name]] == []
    assert read_events(one) == read_events(other)

"""Training over a bridge gives the bits of training in this process: weights, metrics and events."""

from pathlib import Path
from typing import Any

import pytest

from bridge_process import BridgeProcess
from hotlap.errors import StateError, TrainingError
from hotlap.runs.recipe import recipe_names, resolve_config
from hotlap.runs.run_config import RunConfig, in_process
from hotlap.runs.run_folder import RunFolder
from hotlap.training.trainer import Observer, Trainer
from tiny_runs import (
    ALGORITHMS,
    REMOTE_RACER,
    folder_at,
    metrics,
    read_events,
    skip_evaluation,
    tensors,
    tiny_config,
    train,
)

EVERYTHING = {"action_repeat": 4, "stack": 2, "lap_fourier": 3, "observation": "road", "tracks": ["track-03", "train"]}


@pytest.fixture(autouse=True)
def _no_evaluation(monkeypatch):
    skip_evaluation(monkeypatch)


def remote_config(url: str, algo: str = "ppo", num_envs: int = 6, steps: int = 480, **changes: Any) -> RunConfig:
    changes.setdefault("racer", EVERYTHING)
    return tiny_config(algo, REMOTE_RACER, num_envs, steps, env_args={"bridge_url": url}, **changes)


def assert_same_training(one: Path, other: Path, config: RunConfig) -> None:
    """Assert that two runs have the same weights, optimizer, normalizer, generators, metrics and events."""
    first, second = RunFolder(one, config.experiment_id), RunFolder(other, config.experiment_id)
    saved, again = tensors(first.model), tensors(second.model)
    assert saved.keys() == again.keys()
    assert [name for name in saved if saved[name] != again[name]] == []
    points, same = metrics(first), metrics(second)
    assert points["time_series"] == same["time_series"]
    assert points["aggregated"] == same["aggregated"]
    assert read_events(one) == read_events(other)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_run_over_the_bridge_is_bit_identical_to_a_local_one(bridge_server, tmp_path, algo):
    config = remote_config(bridge_server.url, algo)
    train(config, tmp_path / "remote")
    train(in_process(config), tmp_path / "local")
    assert_same_training(tmp_path / "remote", tmp_path / "local", config)


@pytest.mark.parametrize("recipe", [name for name in recipe_names() if name.startswith("racer")])
def test_every_shipped_recipe_trains_over_the_bridge_with_the_bits_of_a_local_run(bridge_server, tmp_path, recipe):
    asked = {"env": REMOTE_RACER, "env_args.bridge_url": bridge_server.url, "num_envs": 8, "device": "cpu"}
    asked |= {"steps": 240, "evaluation.interval": 0, "sac.learning_starts": 160}
    if recipe == "racer-ppo-generalist":
        asked["racer.tracks"] = ["train-00*"]  # lines of a hundred roads take seconds
    config = resolve_config(recipe, asked)
    train(config, tmp_path / "remote")
    train(in_process(config), tmp_path / "local")
    assert_same_training(tmp_path / "remote", tmp_path / "local", config)


def test_more_cars_than_one_connection_may_have_are_divided(bridge_server, tmp_path):
    config = remote_config(bridge_server.url, num_envs=1100, steps=4400, ppo={"n_steps": 4, "batch_size": 1100})
    train(config, tmp_path / "remote")
    train(in_process(config), tmp_path / "local")
    assert_same_training(tmp_path / "remote", tmp_path / "local", config)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_run_stopped_and_resumed_over_another_bridge_is_bit_identical(bridge_server, tmp_path, algo):
    config = remote_config(bridge_server.url, algo)
    train(config, tmp_path / "whole")
    assert train(config, tmp_path / "stopped", stop_at=250).is_stopped
    with BridgeProcess(tmp_path / "log") as other:
        resumed = remote_config(other.url, algo)
        assert resumed.digest() == config.digest()
        train(resumed, tmp_path / "stopped", resume=True)
    assert_same_training(tmp_path / "whole", tmp_path / "stopped", config)


def test_a_checkpoint_whose_cars_do_not_fit_is_refused_and_nothing_is_lost(bridge_server, tmp_path, monkeypatch):
    config = remote_config(bridge_server.url)
    train(config, tmp_path / "run", stop_at=250)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setattr("hotlap.bridge.remote_fleet.state_columns", lambda state: {"x_m": [1e9]})
    with pytest.raises(StateError, match="cannot resume from this checkpoint: state: ") as caught:
        train(config, tmp_path / "run", resume=True)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_bridge_that_dies_stops_the_run_with_a_checkpoint_to_resume_from(bridge_server, tmp_path):
    config = remote_config(bridge_server.url)
    train(config, tmp_path / "whole")
    with BridgeProcess(tmp_path / "log") as other:

        class Kill(Observer):
            def on_step(self, events) -> bool:
                if events.num_timesteps >= 250:
                    other.stop()
                return True

        lost = remote_config(other.url)
        trainer = Trainer(lost, folder_at(tmp_path / "lost", lost), observers=[Kill()])
        with pytest.raises(
            TrainingError, match=r"so training stopped at step \d+. checkpoint_\d+.zip is intact"
        ) as caught:
            trainer.run()
    assert "\n" not in str(caught.value)
    train(config, tmp_path / "lost", resume=True)
    assert_same_training(tmp_path / "whole", tmp_path / "lost", config)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_200000_decisions_of_the_recipe_over_the_bridge_give_the_weights_of_the_local_run(bridge_server, tmp_path):
    asked = {"env": REMOTE_RACER, "env_args.bridge_url": bridge_server.url, "steps": 200_000, "evaluation.interval": 0}
    config = resolve_config("racer-ppo", asked)
    train(config, tmp_path / "remote")
    train(in_process(config), tmp_path / "local")
    assert_same_training(tmp_path / "remote", tmp_path / "local", config)

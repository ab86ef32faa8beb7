"""Two processes over loopback: what they learn, against one process with all the cars."""

from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import ConfigError, TrainingError
from hotlap.learning.distributed.processes import Place, Processes
from hotlap.training.trainer import Trainer
from process_pairs import run_pair
from tiny_runs import folder_at, tiny_config
from training.training_process import train_and_record

pytestmark = pytest.mark.timeout(120)  # processes that import torch take long on a busy machine
CONFIG = tiny_config(
    num_envs=8,
    steps=32 * 8 * 4,
    ppo={"batch_size": 64, "desired_kl": 0.01},
    policy={"net_arch": [16, 16]},
    evaluation={"interval": 500, "episodes": 1},
    checkpoint={"interval": 0},
)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two processes recorded."""
    path = tmp_path_factory.mktemp("pair")
    recipe = path / "recipe.toml"
    recipe.write_text(CONFIG.to_toml())
    ends = run_pair([Path(__file__).with_name("training_process.py"), recipe, path / "run"])
    assert [code for code, _, _ in ends] == [0, 0], ends
    return [dict(np.load(path / "run" / f"rank{rank}.npz")) for rank in range(2)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train_and_record(CONFIG, tmp_path_factory.mktemp("alone") / "run")


def test_both_processes_end_with_the_same_weights(ranks):
    for name in ranks[0]:
        if name != "advantages":
            np.testing.assert_array_equal(ranks[0][name], ranks[1][name], err_msg=name)


def test_the_cars_drive_as_in_one_process(ranks, alone):
    together = np.concatenate([rank["advantages"] for rank in ranks], axis=1)
    assert together.shape == alone["advantages"].shape == (32, 8)
    np.testing.assert_allclose(together, alone["advantages"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ranks[0]["episodes"], alone["episodes"], rtol=1e-5)
    assert len(ranks[0]["episodes"]) >= 8


def test_the_normalizer_has_the_moments_of_all_cars(ranks, alone):
    assert ranks[0]["count"] == alone["count"] == pytest.approx(32 * 8 + 8, abs=1e-3)
    for name in ("mean", "variance", "return_variance"):
        np.testing.assert_allclose(ranks[0][name], alone[name], rtol=1e-4, atol=1e-6)


def test_minibatches_are_others_than_in_one_process(ranks, alone):
    """So the weights differ, but by little: they have taken as many steps of the same size."""
    for name in (name for name in alone if name.startswith("weight")):
        assert np.abs(ranks[0][name] - alone[name]).max() < 0.05
    assert any((ranks[0][name] != alone[name]).any() for name in alone if name.startswith("weight"))


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (tiny_config(num_envs=7, ppo={"n_steps": 8}), ConfigError, "num_envs must be a multiple .* 2, got 7"),
        (tiny_config(num_envs=4, ppo={"batch_size": 33}), ConfigError, r"ppo.batch_size must be a multiple .* got 33"),
        (tiny_config("sac", num_envs=4), TrainingError, "sac on hotlap/Racer-v0 .* in one process only"),
        (tiny_config(env="CartPole-v1", num_envs=4), TrainingError, "CartPole-v1: several processes train only our"),
        (tiny_config(num_envs=4, ppo={"target_kl": 0.1}), TrainingError, "with these settings trains in one process"),
    ],
)
def test_what_cannot_be_divided_is_refused_before_anything_is_written(tmp_path, config, error, message):
    trainer = Trainer(config, folder_at(tmp_path, config), processes=Processes(Place(0, 2)))
    with pytest.raises(error, match=message):
        trainer.run()
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]

"""NaN and infinity from the environment or an update: never saved, and the last good checkpoint resumes."""

import sys

import pytest
import torch

from attacks.run_folders.attacked_runs import RUN, PoisonEnv, assert_as_in_peace, write_recipe
from hotlap.cli.main import main
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.sb3.algorithms import ALGORITHMS


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac"])
@pytest.mark.parametrize(
    ("poison", "words", "step"),
    [
        ("reward", "the reward of environment 0 is nan at step 70", 70),
        ("observation", "the observation of environment 0 is nan at index [0] at step 70", 70),
        ("last observation", "the last observation of an episode of environment 0 is not finite at step 80", 80),
    ],
)
def test_a_nan_from_the_environment_stops_the_run_and_the_last_good_checkpoint_resumes(
    hotlap, monkeypatch, algo, poison, words, step
):
    monkeypatch.setattr(PoisonEnv, "poison", poison)
    run = RUN.with_name(f"{algo}_seed42")
    options = {"algo": algo, "checkpoint": {"interval": 20, "keep": 1}}
    code, lines = hotlap("train", "--recipe", write_recipe(**options))
    assert code == 1
    assert words in lines[-1]
    assert "checkpoint_60.zip is intact" in lines[-1]
    assert f"hotlap resume {run}" in lines[-1]
    assert CheckpointManager(run).steps() == [60]
    monkeypatch.setattr(PoisonEnv, "poison", None)
    assert hotlap("resume", run)[0] == 0
    assert_as_in_peace(hotlap, run, **options)


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac"])
@pytest.mark.parametrize("where", ["loss", "weights"])
def test_a_nan_from_an_update_is_never_saved(hotlap, monkeypatch, algo, where):
    learner = ALGORITHMS[algo]
    update = learner.train

    def poisoned(self, *arguments, **options):
        update(self, *arguments, **options)
        if self.num_timesteps >= 70:
            if where == "weights":
                with torch.no_grad():
                    next(iter(self.policy.parameters())).fill_(torch.nan)
            else:
                names = {"ppo": "loss", "a2c": "value_loss", "sac": "critic_loss"}
                self.logger.record(f"train/{names[algo]}", float("nan"))

    options = {"algo": algo, "checkpoint": {"interval": 20, "keep": 1}}
    run = RUN.with_name(f"{algo}_seed42")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "train", poisoned)
        code, lines = hotlap("train", "--recipe", write_recipe(**options))
    assert code == 1
    assert ("the loss of the last update is nan" if where == "loss" else "holds NaN or infinity") in lines[-1]
    [step] = CheckpointManager(run).steps()
    assert f"checkpoint_{step}.zip is intact" in lines[-1]
    assert not (run / f"{algo}_seed42_model.zip").exists()
    assert hotlap("resume", run)[0] == 0
    assert_as_in_peace(hotlap, run, **options)


def test_an_error_of_the_environment_that_is_no_nan_keeps_its_own_traceback(hotlap, monkeypatch):
    monkeypatch.setattr(PoisonEnv, "_obs", lambda self: [][1])
    monkeypatch.setattr(sys, "argv", ["hotlap", "train", "--recipe", write_recipe()])
    with pytest.raises(IndexError):
        main()

"""SAC learns and logs what stable-baselines3's does, up to rounding, and owns its state."""

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.training.learners import is_ours
from hotlap.training.sb3.learner import SB3Learner
from small_learners import learn, ours, weights
from tiny_runs import tiny_config

LOGGED = {"actor_loss", "critic_loss", "ent_coef", "ent_coef_loss", "learning_rate"}
NUM_CARS = 4


def configure(steps=200, **changes):
    """A run of a few cars whose episodes end after a few decisions."""
    sac = {"buffer_size": 240, "learning_starts": 20, "batch_size": 64, "train_freq": 2, "gradient_steps": 3}
    changes = {"policy": {"net_arch": [8, 6]}, **changes, "sac": {**sac, **changes.get("sac", {})}}
    config = tiny_config("sac", num_envs=NUM_CARS, steps=steps, **changes)
    assert is_ours(config)
    return config


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalize": {"obs": False, "reward": False}},
        {"sac": {"n_steps": 3, "target_entropy": -5.0, "initial_ent_coef": 0.01, "final_lr_fraction": 0.1}},
        {"policy": {"net_arch": [6], "critic_arch": [7, 5], "activation": "tanh"}},
        {"policy": {"net_arch": [6], "critic_arch": []}},
    ],
    ids=["normalized", "as they are", "three steps", "other networks", "linear critics"],
)
def test_training_gives_the_weights_and_figures_of_the_library(changes):
    config = configure(**changes)
    mine, figures = learn(ours(config))
    theirs, their_figures = learn(SB3Learner(config))
    policy, expected = mine.policy(), theirs.policy()
    assert list(policy.weights) == list(expected.weights)
    np.testing.assert_allclose(weights(mine), weights(theirs), rtol=1e-4, atol=1e-5)
    for name, adam in zip(("actor", "critic", "entropy"), mine._adams, strict=True):
        found = torch.cat([moment.flatten() for moment in adam.state_dict()["exp_avg"].values()])
        states = theirs.model.named_optimizers()[name].state.values()
        moments = torch.cat([state["exp_avg"].flatten() for state in states])
        np.testing.assert_allclose(found, moments, rtol=1e-3, atol=1e-5)
    assert {name.removeprefix("train/") for name in figures} == LOGGED
    assert figures.keys() == their_figures.keys()
    for name, figure in figures.items():
        assert figure == pytest.approx(their_figures[name], rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize("uses_thread", [False, True])
def test_a_second_thread_gives_the_same_bits(uses_thread):
    expected = weights(learn(ours(configure(120)))[0])
    learner = ours(configure(120))
    learner._update._threads.should_use = lambda: uses_thread
    assert weights(learn(learner)[0]).tobytes() == expected.tobytes()
    assert bool(learner._second._threads) is uses_thread


@pytest.mark.parametrize("steps", [120, 480], ids=["filling", "full"])
def test_a_learner_restored_in_the_middle_goes_on_with_the_same_bits(steps):
    config = configure(steps, sac={"n_steps": 3})
    expected = weights(learn(ours(config))[0])
    first, _ = learn(ours(config), steps // 16)
    state = first.state_dict()
    saved = {"position": first._replay.position, "is_full": first._replay.is_full}
    assert saved["is_full"] is (steps == 480)
    state["replay_buffer"]["rows"] = {name: rows.clone() for name, rows in state["replay_buffer"]["rows"].items()}
    learn(first, 1)  # what was captured does not change with it
    resumed = ours(config)
    resumed.load_state_dict(state)
    np.testing.assert_array_equal(weights(learn(resumed)[0]), expected)


def test_a_state_without_its_replay_buffer_is_refused():
    learner = ours(configure())
    with pytest.raises(StateError, match="Resume from one of those"):
        learner.load_state_dict(learner.state_dict(with_replay=False))


def test_the_weights_of_a_model_are_taken_over_target_critics_too():
    model, _ = learn(ours(configure()))
    started = ours(configure(seed=7))
    started.load_policy(model.policy())
    np.testing.assert_array_equal(weights(started), weights(model))

"""SAC learns and logs what stable-baselines3's does, up to rounding, and owns its state."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.learning.adam import Adam
from hotlap.learning.networks.soft_actor_critic import SoftActorCritic, part_of
from hotlap.learning.replay import Minibatch
from hotlap.learning.sac_update import LOG_ENT_COEF, SACUpdate
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


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_gradients_are_those_of_autograd(activation):
    config = configure(policy={"net_arch": [8, 6], "activation": activation})
    policy = SB3Learner(config).model.policy
    with torch.no_grad():
        policy.actor.log_std.bias[0] = 5.0  # beyond the bound, where it has no gradient
    state, cpu = dict(policy.state_dict()), torch.device("cpu")
    adams = (
        Adam(part_of(state, "actor"), cpu, 1e-8),
        Adam(part_of(state, "critic"), cpu, 1e-8),
        Adam({LOG_ENT_COEF: torch.zeros(1)}, cpu, 1e-8),
    )  # whose learning rate is zero: all gradients belong to the same weights
    generator = torch.Generator()
    nets, targets = SoftActorCritic.of(config.policy), adams[1].values.clone()
    update = SACUpdate(adams, nets, targets, -3.0, 0.005, 16, generator)
    torch.manual_seed(0)
    num_obs = policy.observation_space.shape[0]
    batch = Minibatch(
        torch.randn(16, num_obs), torch.rand(16, 3) * 2 - 1, torch.randn(16, num_obs), torch.randn(16), torch.rand(16)
    )
    generator.manual_seed(1)
    found = update.run(batch, ThreadPoolExecutor(1))

    torch.manual_seed(1)
    log_ent_coef = torch.zeros(1, requires_grad=True)
    actions, log_prob = policy.actor.action_log_prob(batch.observations)
    with torch.no_grad():
        next_actions, next_log_prob = policy.actor.action_log_prob(batch.next_observations)
        ahead = torch.cat(policy.critic_target(batch.next_observations, next_actions), 1).min(1).values
        expected = batch.rewards + batch.discounts * (ahead - next_log_prob)  # the coefficient is 1
    critic_loss = 0.5 * sum(
        (q.flatten() - expected).square().mean() for q in policy.critic(batch.observations, batch.actions)
    )
    actor_loss = (log_prob - torch.cat(policy.critic(batch.observations, actions), 1).min(1).values).mean()
    entropy_loss = -(log_ent_coef * (log_prob.detach() - 3.0)).mean()
    assert found.tolist() == pytest.approx([1.0, actor_loss.item(), critic_loss.item(), 0.0], rel=1e-5)
    for adam, loss, name in zip(adams, (actor_loss, critic_loss), ("actor", "critic"), strict=False):
        parameters = {f"{name}.{part}": one for part, one in getattr(policy, name).named_parameters()}
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        for part, gradient in zip(parameters, gradients, strict=True):
            torch.testing.assert_close(adam.gradient(part), gradient, rtol=1e-4, atol=1e-5)
    [by_coefficient] = torch.autograd.grad(entropy_loss, [log_ent_coef])
    torch.testing.assert_close(adams[2].gradient(LOG_ENT_COEF), by_coefficient)
    assert not adams[0].gradient("actor.log_std.weight")[0].any()


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

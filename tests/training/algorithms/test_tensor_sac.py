"""TensorSAC learns and logs what stable-baselines3's SAC does, up to rounding."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from hotlap.training.algorithms import registry
from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.replay_sampler import Minibatch, ReplaySampler
from hotlap.training.algorithms.sac import HotlapSAC
from hotlap.training.algorithms.sac_update import SACNets, SACUpdate
from hotlap.training.algorithms.tensor_normalizer import NoNormalizer, TensorNormalizer
from hotlap.training.algorithms.tensor_sac import TensorSAC
from tiny_runs import tiny_config
from training.algorithms.small_learners import weights
from training.algorithms.tiny_learners import make_learner

LOGGED = {"actor_loss", "critic_loss", "ent_coef", "ent_coef_loss", "learning_rate", "n_updates"}
NUM_CARS = 4


def build(kind=TensorSAC, **changes):
    """A learner of that class for a few cars whose episodes end after a few decisions."""
    sac = {"buffer_size": 240, "learning_starts": 20, "batch_size": 64, "train_freq": 2, "gradient_steps": 3}
    changes = {"policy": {"net_arch": [8, 6]}, **changes, "sac": {**sac, **changes.get("sac", {})}}
    config = tiny_config("sac", num_envs=NUM_CARS, **changes)
    assert registry.learner_class(config) is TensorSAC
    return make_learner(kind, config)


# --- against stable-baselines3 ---


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
    found = {}
    for kind in (TensorSAC, HotlapSAC):
        learner = build(kind, **changes)
        learner.learn(200)
        moments = [
            one["exp_avg"].flatten()
            for optimizer in learner.named_optimizers().values()
            for one in optimizer.state.values()
        ]
        found[kind] = weights(learner), torch.cat(moments).numpy(), dict(learner.logger.name_to_value)
    (ours, our_moments, our_log), (theirs, their_moments, their_log) = found.values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(our_moments, their_moments, rtol=1e-3, atol=1e-5)
    assert {name.removeprefix("train/") for name in our_log if name.startswith("train/")} == LOGGED
    assert our_log.keys() == their_log.keys()
    for name in our_log.keys() - {"time/fps", "time/time_elapsed"}:
        assert our_log[name] == pytest.approx(their_log[name], rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_gradients_are_those_of_autograd(activation):
    learner = build(policy={"net_arch": [8, 6], "activation": activation})
    nets = SACNets.of(learner.policy)
    optimizers = learner.named_optimizers()
    for optimizer in optimizers.values():
        optimizer.param_groups[0]["lr"] = 0.0  # all gradients belong to the same weights
    adams = tuple(FlatAdam(optimizers[name]) for name in ("actor", "critic", "entropy"))
    update = SACUpdate(adams, nets, learner.log_ent_coef, -3.0, 0.005, 16)
    with torch.no_grad():
        learner.actor.log_std.bias[0] = 5.0  # beyond the bound, where it has no gradient
        adams[0].load_values()
    torch.manual_seed(0)
    num_obs = learner.observation_space.shape[0]
    batch = Minibatch(
        torch.randn(16, num_obs), torch.rand(16, 3) * 2 - 1, torch.randn(16, num_obs), torch.randn(16), torch.rand(16)
    )
    torch.manual_seed(1)
    found = update.run(batch, ThreadPoolExecutor(1))

    torch.manual_seed(1)
    policy = learner.policy
    actions, log_prob = policy.actor.action_log_prob(batch.observations)
    with torch.no_grad():
        next_actions, next_log_prob = policy.actor.action_log_prob(batch.next_observations)
        ahead = torch.cat(policy.critic_target(batch.next_observations, next_actions), 1).min(1).values
        targets = batch.rewards + batch.discounts * (ahead - next_log_prob)  # the coefficient is 1
    critic_loss = 0.5 * sum(
        (q.flatten() - targets).square().mean() for q in policy.critic(batch.observations, batch.actions)
    )
    actor_loss = (log_prob - torch.cat(policy.critic(batch.observations, actions), 1).min(1).values).mean()
    entropy_loss = -(learner.log_ent_coef * (log_prob.detach() - 3.0)).mean()
    assert found.tolist() == pytest.approx([1.0, actor_loss.item(), critic_loss.item(), 0.0], rel=1e-5)
    for adam, loss, module in zip(adams, (actor_loss, critic_loss), (policy.actor, policy.critic), strict=False):
        parameters = list(module.parameters())
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            torch.testing.assert_close(adam.gradient(parameter), gradient, rtol=1e-4, atol=1e-5)
    [expected] = torch.autograd.grad(entropy_loss, [learner.log_ent_coef])
    torch.testing.assert_close(adams[2].gradient(learner.log_ent_coef), expected)
    assert not adams[0].gradient(policy.actor.log_std.weight)[0].any()


def test_a_second_thread_gives_the_same_bits():
    found = []
    for uses_thread in (False, True):
        learner = build()
        learner.learn(40)
        parts = learner._parts
        parts.update._threads.should_use = lambda uses=uses_thread: uses
        learner.learn(80, reset_num_timesteps=False)
        assert bool(parts.second._threads) >= uses_thread
        found.append(weights(learner).tobytes())
    assert found[0] == found[1]


# --- the replay buffer ---


@pytest.mark.parametrize("steps", [200, 400], ids=["filling", "full"])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_minibatches_are_those_of_the_library(steps, n_steps):
    learner = build(HotlapSAC, sac={"n_steps": n_steps, "learning_starts": 10_000})
    learner.learn(steps)
    buffer, env = learner.replay_buffer, learner.get_vec_normalize_env()
    assert buffer.full == (steps == 400)
    assert buffer.dones.sum() >= NUM_CARS
    buffer.timeouts[:, 0] = 0.0  # as if the episodes of the first car had terminated
    normalizer = TensorNormalizer(env, learner.device)
    normalizer.load()
    np.random.seed(5)  # noqa: NPY002
    ours = ReplaySampler(buffer, normalizer, learner.gamma, n_steps).draw(500)
    np.random.seed(5)  # noqa: NPY002
    theirs = buffer.sample(500, env)
    discounts = learner.gamma if theirs.discounts is None else theirs.discounts.flatten()
    expected = {
        "observations": theirs.observations,
        "actions": theirs.actions,
        "next_observations": theirs.next_observations,
        "rewards": theirs.rewards.flatten(),
        "discounts": discounts * (1.0 - theirs.dones.flatten()),
    }
    assert (expected["discounts"] == 0.0).any()
    for name, tensor in expected.items():
        torch.testing.assert_close(getattr(ours, name), tensor, rtol=1e-5, atol=1e-5, msg=name)


def test_a_return_over_three_decisions_ends_with_its_episode_and_with_the_newest_decision():
    """Rewards 1, 10, 100, … of one car; the second decision terminates, the fifth is cut off by its time limit."""
    learner = build(HotlapSAC, normalize={"obs": False, "reward": False}, sac={"gamma": 0.5})
    buffer = learner.replay_buffer
    for step in range(6):
        buffer.rewards[step] = 10.0**step
        buffer.next_observations[step] = step
        buffer.dones[step] = step in (1, 4)
        buffer.timeouts[step] = step == 4
    buffer.pos = 6
    sampler, seen = ReplaySampler(buffer, NoNormalizer(), 0.5, 3), {}
    batch = sampler.draw(300)
    for reward, discount, next_obs in zip(
        batch.rewards.tolist(), batch.discounts.tolist(), batch.next_observations[:, 0].tolist(), strict=True
    ):
        seen[reward] = (discount, next_obs)
    assert seen == {
        1.0 + 5.0: (0.0, 1.0),
        10.0: (0.0, 1.0),
        100.0 + 500.0 + 2_500.0: (0.125, 4.0),
        1_000.0 + 5_000.0: (0.25, 4.0),
        10_000.0: (0.5, 4.0),
        100_000.0: (0.5, 5.0),
    }


# --- what is left to the library ---


def test_networks_that_it_does_not_know_are_left_to_the_library():
    learner = build()
    assert learner.own_nets() is not None
    learner.target_update_interval = 2
    assert learner.own_nets() is None
    learner.learn(40)
    assert learner._parts is None
    assert learner.logger.name_to_value["train/n_updates"] > 0


def test_weights_changed_between_two_calls_of_learn_are_taken_over():
    learner = build()
    learner.learn(40)
    with torch.no_grad():
        learner.critic_target.qf0[0].weight.fill_(7.0)
        learner.critic.qf0[0].weight.fill_(3.0)
    learner.learn(24, reset_num_timesteps=False)
    for network, value in ((learner.critic_target, 7.0), (learner.critic, 3.0)):
        assert float(network.qf0[0].weight.detach().mean()) == pytest.approx(value, abs=0.5)

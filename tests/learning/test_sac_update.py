from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from hotlap.learning.adam import Adam
from hotlap.learning.networks.soft_actor_critic import SoftActorCritic, part_of
from hotlap.learning.replay import Minibatch
from hotlap.learning.sac_update import LOG_ENT_COEF, SACUpdate
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import tiny_config


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_gradients_are_those_of_autograd(activation):
    config = tiny_config("sac", policy={"net_arch": [8, 6], "activation": activation})
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

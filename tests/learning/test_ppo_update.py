"""An update has the gradients of autograd, and divided over processes those of one process."""

import threading

import pytest
import torch
from torch import nn

from hotlap.hyperparameters import PPOSettings
from hotlap.learning.adam import Adam
from hotlap.learning.distributed.processes import ALONE, Place, Processes
from hotlap.learning.networks.actor_critic import ActorCritic, initial_weights
from hotlap.learning.ppo_update import MinibatchLosses, PPOUpdate, RolloutRows
from hotlap.models.model_file import PolicySettings
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import tiny_config

NUM_ROWS, BATCH, SIZE = 48, 20, 2  # rows and minibatch of each process; the last minibatch is smaller
NUM_OBS, NUM_ACTIONS, POLICY = 14, 3, PolicySettings(net_arch=(8,))
SETTINGS = PPOSettings(ent_coef=0.01)


class ThreadProcesses(Processes):
    """A process played by a thread."""

    def __init__(self, rank, board, barrier):
        super().__init__(Place(rank, SIZE))
        self._board, self._barrier = board, barrier

    def begin_gather(self, tensor):
        self._board[self.rank] = tensor.clone()
        self._barrier.wait()
        found = torch.stack(self._board)
        self._barrier.wait()
        return lambda: found


def random_rollout(rows, num_obs=NUM_OBS):
    generator = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    vectors = normal(rows) - 3.0, 5.0 * normal(rows), normal(rows)
    return RolloutRows(normal(rows, num_obs), normal(NUM_ACTIONS, rows), *vectors)


def part_of(rollout, rank):
    rows = slice(rank * NUM_ROWS, (rank + 1) * NUM_ROWS)
    vectors = (part[rows].clone() for part in (rollout.log_probs, rollout.advantages, rollout.returns))
    return RolloutRows(rollout.observations[rows].clone(), rollout.actions[:, rows].clone(), *vectors)


def update(weights, rollout, orders, batch_size, processes):
    """The weights and losses after an update."""
    adam = Adam(weights, torch.device("cpu"), eps=1e-5)
    adam.set_lr(3e-4)
    nets = ActorCritic.of(POLICY, NUM_ACTIONS)
    losses = PPOUpdate(adam, nets, rollout, SETTINGS, batch_size, processes).run(orders)
    return adam.values.clone(), losses


@pytest.fixture(scope="module")
def both():
    """Weights and losses of one process, and of each of two."""
    generator = torch.Generator().manual_seed(4)
    orders = [[torch.randperm(NUM_ROWS, generator=generator) for _ in range(2)] for _ in range(SIZE)]
    weights = initial_weights(POLICY, NUM_OBS, NUM_ACTIONS)
    rollout = random_rollout(SIZE * NUM_ROWS)
    together = [
        torch.cat([
            own[begin : begin + BATCH] + rank * NUM_ROWS
            for begin in range(0, NUM_ROWS, BATCH)
            for rank, own in enumerate(epoch)
        ])
        for epoch in zip(*orders, strict=True)
    ]  # fmt: skip
    board, barrier, found = [None] * SIZE, threading.Barrier(SIZE, timeout=30.0), [None] * SIZE

    def run(rank):
        processes = ThreadProcesses(rank, board, barrier)
        found[rank] = update(weights, part_of(rollout, rank), orders[rank], BATCH, processes)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return update(weights, rollout, together, SIZE * BATCH, ALONE), found


def test_weights_and_losses_are_those_of_one_process(both):
    (weights, losses), found = both
    for own_weights, own_losses in found:
        torch.testing.assert_close(own_weights, weights, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(own_losses, losses, rtol=1e-4, atol=1e-5)


def test_all_processes_have_the_same_bits(both):
    _, [(first_weights, first_losses), (weights, losses)] = both
    assert torch.equal(first_weights, weights)
    assert torch.equal(first_losses, losses)


def oracle_gradients(policy, rollout, settings):
    """The gradients of stable-baselines3's loss by autograd, before clipping, and the two losses."""
    values, log_prob, entropy = policy.evaluate_actions(rollout.observations, rollout.actions.t())
    advantages = rollout.advantages
    if settings.normalize_advantage:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = torch.exp(log_prob - rollout.log_probs)
    clipped = advantages * torch.clamp(ratio, 1 - settings.clip_range, 1 + settings.clip_range)
    policy_loss = -torch.min(advantages * ratio, clipped).mean()
    value_loss = nn.functional.mse_loss(rollout.returns, values.flatten())
    loss = policy_loss - settings.ent_coef * entropy.mean() + settings.vf_coef * value_loss
    policy.optimizer.zero_grad()
    loss.backward()
    return policy_loss.item(), value_loss.item()


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
@pytest.mark.parametrize("net_arch", [[64, 64], [16], [24, 8, 12]])
@pytest.mark.parametrize("normalize_advantage", [True, False])
def test_every_gradient_is_that_of_autograd(activation, net_arch, normalize_advantage):
    config = tiny_config(policy={"net_arch": net_arch, "activation": activation})
    policy = SB3Learner(config).model.policy
    num_rows = 500
    rollout = random_rollout(num_rows, policy.observation_space.shape[0])
    settings = PPOSettings(ent_coef=0.01, max_grad_norm=1e9, normalize_advantage=normalize_advantage)
    policy_loss, value_loss = oracle_gradients(policy, rollout, settings)
    adam = Adam(dict(policy.state_dict()), torch.device("cpu"), eps=1e-5)
    update = PPOUpdate(adam, ActorCritic.of(config.policy, 3), rollout, settings, num_rows)
    losses = MinibatchLosses(*update.run([torch.arange(num_rows)]).numpy().T)
    for name, parameter in policy.named_parameters():
        mine, oracle = adam.gradient(name), parameter.grad
        assert float((mine - oracle).abs().max()) <= 1e-5 * float(oracle.abs().max()), name
    assert losses.policy == pytest.approx([policy_loss], rel=1e-5)
    assert losses.value == pytest.approx([value_loss], rel=1e-5)
    assert 0.05 < losses.clip_fraction.item() < 0.999

"""An update divided over processes, against one process with the same minibatches."""

import threading

import pytest
import torch

from hotlap.hyperparameters import PPOSettings
from hotlap.learning.adam import Adam
from hotlap.learning.distributed.processes import ALONE, Place, Processes
from hotlap.learning.networks.actor_critic import ActorCritic, initial_weights
from hotlap.learning.ppo_update import PPOUpdate, RolloutRows
from hotlap.models.model_file import PolicySettings

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


def random_rollout():
    generator = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    rows = SIZE * NUM_ROWS
    return RolloutRows(
        normal(rows, NUM_OBS), normal(NUM_ACTIONS, rows), normal(rows) - 3.0, 5.0 * normal(rows), normal(rows)
    )


def part_of(rollout, rank):
    rows = slice(rank * NUM_ROWS, (rank + 1) * NUM_ROWS)
    return RolloutRows(
        rollout.observations[rows].clone(),
        rollout.actions[:, rows].clone(),
        rollout.log_probs[rows].clone(),
        rollout.advantages[rows].clone(),
        rollout.returns[rows].clone(),
    )


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
    rollout = random_rollout()
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

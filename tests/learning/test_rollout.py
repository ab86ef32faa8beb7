"""Advantages and returns of three decisions, worked out by hand, and the densities of sampled actions."""

from types import SimpleNamespace

import pytest
import torch

from hotlap.hyperparameters import NormalizeSettings
from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.rollout import Actor, Rollout
from hotlap.sim.world import INFO_DTYPE

REWARDS = [1.0, 0.0, 2.0]
LAST_OBS = 6.0  # of the episode that is cut off
STD = torch.tensor([0.5, 0.1])


class ThreeCars(SimpleNamespace):
    """Observes 1, 2, 3, 4. After the second decision, the second car's episode terminates, the third's is cut off."""

    def __init__(self):
        super().__init__(obs=torch.ones(3, 1), final_obs=torch.zeros(3, 1), actions=torch.zeros(3, 2), num_steps=0)
        self.infos = torch.zeros(3, INFO_DTYPE.itemsize // 4, dtype=torch.int32)
        self.episode_returns, self.episode_lengths = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=int)

    def step(self):
        self.rewards = torch.full((3,), REWARDS[self.num_steps])
        self.obs += 1.0
        self.num_steps += 1
        self.ended, self.cut_off = (self.num_steps == 2) & torch.tensor([[False, True, True], [False, False, True]])
        self.final_obs.fill_(LAST_OBS)


@pytest.fixture
def rollout():
    """A rollout whose value function is the observation, and whose policy is zero on average."""
    cars, generator = ThreeCars(), torch.Generator().manual_seed(1)
    net = Mlp([(torch.zeros(2, 1), torch.zeros(2))], "tanh", 3)
    values = Mlp([(torch.ones(1, 1), torch.zeros(1))], "tanh", 9)
    actor = Actor(net, STD.log(), torch.tensor([-0.2, -0.2]), torch.tensor([0.2, 0.2]), generator)
    normalizer = Normalizer(NormalizeSettings(), 0.5, num_cars=3, num_obs=1, device=torch.device("cpu"))
    found = Rollout(cars, normalizer, actor, [values], num_steps=3, max_cuts=1)
    found.begin()
    for step in range(3):
        found.decide(step)
    return found


def test_advantages_and_returns_are_those_worked_out_by_hand(rollout):
    rollout.finish(gamma=0.5, gae_lambda=0.5)
    # The last error is 2 + 0.5 * 4 - 3 = 1 for all. The second is 0 + 0.5 * 3 - 2 = -0.5 where the episode goes on,
    # 0 - 2 = -2 where it terminates, and 0 + 0.5 * 6 - 2 = 1 where it is cut off. The first is 1 + 0.5 * 2 - 1 = 1.
    expected = [[1.0 + 0.25 * -0.25, 1.0 + 0.25 * -2.0, 1.0 + 0.25 * 1.0], [-0.5 + 0.25 * 1.0, -2.0, 1.0], [1.0] * 3]
    assert rollout.advantages.tolist() == expected
    assert (rollout.returns - rollout.advantages).tolist() == [[1.0] * 3, [2.0] * 3, [3.0] * 3]


def test_a_density_is_that_of_the_action_before_it_is_clamped(rollout):
    densities = torch.distributions.Normal(0.0, STD[:, None, None]).log_prob(rollout.actions).sum(0)
    torch.testing.assert_close(rollout.log_probs, densities)
    assert (rollout._cars.actions.abs() == 0.2).any()

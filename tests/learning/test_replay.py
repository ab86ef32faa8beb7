"""The replay buffer draws what stable-baselines3's draws, and ends returns where it must."""

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.hyperparameters import NormalizeSettings
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.replay import ReplayBuffer
from hotlap.training.sb3.learner import SB3Learner
from small_learners import learn
from tiny_runs import tiny_config

NUM_CARS = 4


def library_buffer(steps, n_steps):
    """A buffer that stable-baselines3 filled, with its normalizer."""
    sac = {"buffer_size": 240, "learning_starts": 10_000, "batch_size": 64, "train_freq": 2, "n_steps": n_steps}
    config = tiny_config("sac", num_envs=NUM_CARS, steps=steps, sac=sac)
    learner, _ = learn(SB3Learner(config))
    return learner.model.replay_buffer, learner.model.get_vec_normalize_env(), learner, config


@pytest.mark.parametrize("steps", [200, 400], ids=["filling", "full"])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_minibatches_are_those_of_the_library(steps, n_steps):
    buffer, env, learner, config = library_buffer(steps, n_steps)
    assert buffer.full == (steps == 400)
    assert buffer.dones.sum() >= NUM_CARS
    buffer.timeouts[:, 0] = 0.0  # as if the episodes of the first car had terminated
    num_obs = buffer.observations.shape[-1]
    ours = ReplayBuffer(240, NUM_CARS, num_obs, 3)
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    rows = {name: torch.from_numpy(getattr(buffer, name)) for name in names}
    ours.load_state_dict({"position": buffer.pos, "is_full": buffer.full, "rows": rows})
    normalizer = Normalizer(config.normalize, 0.99, NUM_CARS, num_obs, torch.device("cpu"))
    normalizer.load_state_dict(learner.policy().normalizer)
    found = ours.draw(500, n_steps, 0.99, normalizer, np.random.RandomState(5))
    np.random.seed(5)  # noqa: NPY002
    theirs = buffer.sample(500, env)
    discounts = 0.99 if theirs.discounts is None else theirs.discounts.flatten()
    expected = {
        "observations": theirs.observations,
        "actions": theirs.actions,
        "next_observations": theirs.next_observations,
        "rewards": theirs.rewards.flatten(),
        "discounts": discounts * (1.0 - theirs.dones.flatten()),
    }
    assert (expected["discounts"] == 0.0).any()
    for name, tensor in expected.items():
        torch.testing.assert_close(getattr(found, name), tensor, rtol=1e-5, atol=1e-5, msg=name)


def test_a_return_over_three_decisions_ends_with_its_episode_and_with_the_newest_decision():
    """Rewards 1, 10, 100, … of one car; the second decision terminates, the fifth is cut off by its time limit."""
    replay, seen = ReplayBuffer(60, NUM_CARS, 2, 3), {}
    for step in range(6):
        obs, actions = torch.full((NUM_CARS, 2), float(step)), torch.zeros(NUM_CARS, 3)
        flags = torch.full((NUM_CARS,), step in (1, 4)), torch.full((NUM_CARS,), step == 4)
        replay.add(obs, obs, actions, torch.full((NUM_CARS,), 10.0**step), *flags)
    raw = Normalizer(NormalizeSettings(), 0.5, NUM_CARS, 2, torch.device("cpu"))
    batch = replay.draw(300, 3, 0.5, raw, np.random.RandomState(0))
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


def test_a_buffer_of_another_shape_is_refused():
    state = ReplayBuffer(60, NUM_CARS, 2, 3).state_dict()
    with pytest.raises(StateError, match="its replay buffer has observations of shape"):
        ReplayBuffer(60, NUM_CARS, 5, 3).load_state_dict(state)

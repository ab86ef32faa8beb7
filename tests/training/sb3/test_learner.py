"""stable-baselines3 as a learner: generators, environments and what it tells about steps."""

import numpy as np
import pytest
import torch

from hotlap.errors import TrainingError
from hotlap.training.sb3 import learner as learner_module
from hotlap.training.sb3.learner import SB3Learner
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs
from small_learners import learn, pendulum
from tiny_runs import tiny_config


def test_the_global_generators_are_seeded_before_environments_are_made(monkeypatch):
    drawn = []

    def drawing(config):
        drawn.append((np.random.random(), torch.rand(1).item()))  # noqa: NPY002
        return TrainingEnvs(config)

    monkeypatch.setattr(learner_module, "TrainingEnvs", drawing)
    for seed in (1, 1, 2):
        pendulum(seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]


def test_environments_are_closed_where_the_algorithm_cannot_be_built(monkeypatch):
    closed, close = [], TrainingEnvs.close
    monkeypatch.setattr(TrainingEnvs, "close", lambda self: (closed.append(self), close(self)))

    def fail(*_, **__):
        raise AssertionError("no such thing")

    monkeypatch.setattr(learner_module.ALGORITHMS["ppo"], "__init__", fail)
    with pytest.raises(TrainingError, match="cannot be built for Pendulum-v1 with these settings: no such thing"):
        pendulum()
    assert len(closed) == 1


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac"])
def test_every_step_and_every_episode_is_told_once(algo):
    told = []
    learner = pendulum(algo, num_envs=2, steps=800)
    learn(learner, on_step=lambda events: told.append(events) or True)
    assert [events.num_timesteps for events in told] == list(range(2, 801, 2))
    ended = [
        (events.num_timesteps, events.envs.tolist(), list(events.episodes())) for events in told if len(events.envs)
    ]
    assert [(at, envs) for at, envs, _ in ended] == [(400, [0, 1]), (800, [0, 1])]
    assert {length for _, _, episodes in ended for _, length in episodes} == {200}
    assert all(-2000.0 < value < 0.0 for _, _, episodes in ended for value, _ in episodes)
    assert all(events.infos is None and not events.reward_terms for events in told)


def test_a_rollout_ends_where_the_listener_asks_for_it():
    learner = pendulum(steps=100)
    assert not learner.collect(lambda events: events.num_timesteps < 5)
    assert learner.num_timesteps == 5


@pytest.mark.parametrize(("algo", "is_replaying"), [("ppo", False), ("a2c", False), ("sac", True)])
def test_only_an_off_policy_algorithm_has_a_replay_buffer(algo, is_replaying):
    assert bool(SB3Learner(tiny_config(algo, "Pendulum-v1")).replay_bytes) is is_replaying

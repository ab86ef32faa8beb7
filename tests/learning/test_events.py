"""The laps and episodes of a step, and those of a rollout of two processes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hotlap.envs.infos import REWARD_KEYS
from hotlap.learning.distributed.processes import Place, Processes
from hotlap.learning.events import RolloutEvents, step_events
from hotlap.sim.world import INFO_DTYPE

TERMS = np.arange(2.0 * len(REWARD_KEYS)).reshape(2, -1)  # the mean of each reward term in two steps


class Sender(Processes):
    """One of two processes; `sent` is what those of lower rank have sent."""

    def __init__(self, rank, sent):
        super().__init__(Place(rank, 2))
        self.average = lambda tensor: tensor.mul_(0.5)
        self.gather_bytes = lambda own: sent.append(own) or sent


def two_steps():
    """Of three cars: the second finishes a lap in the first step; the first and the last end in the second one."""
    infos = np.zeros((2, 3), INFO_DTYPE)
    infos["lapTime"], infos["stepCount"] = [[np.nan, 30.0, np.nan], [np.nan] * 3], [[1, 2, 3], [4, 5, 6]]
    for column, name in enumerate(REWARD_KEYS):
        infos[name] = TERMS[:, column, None] + [-1.0, 0.0, 1.0]
    return {
        "ended": torch.tensor([[False, False, False], [True, False, True]]),
        "infos": torch.from_numpy(infos.view(np.int32).reshape(2, 3, -1)),
        "episode_returns": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.1234567]], dtype=torch.float64),
        "episode_lengths": torch.tensor([[7, 8, 9], [10, 11, 12]]),
    }


def test_a_step_tells_the_cars_that_finished_a_lap_or_an_episode():
    steps = (SimpleNamespace(**{name: rows[step] for name, rows in two_steps().items()}) for step in (0, 1))
    lap, ends = (step_events(cars, 6) for cars in steps)
    assert (lap.envs.tolist(), lap.infos["lapTime"].tolist(), list(lap.episodes())) == ([1], [30.0], [])
    assert (ends.envs.tolist(), ends.infos["stepCount"].tolist()) == ([0, 2], [4, 6])
    assert list(ends.episodes()) == [(4.0, 10), (6.123457, 12)]
    assert ends.reward_terms == pytest.approx(dict(zip(REWARD_KEYS, TERMS[1], strict=True)))


def test_the_events_of_two_processes_are_sorted_by_step_and_number_all_cars():
    rollout, sent = SimpleNamespace(**two_steps(), reward_terms=torch.from_numpy(TERMS)), []
    RolloutEvents(rollout, Sender(0, sent))
    events = RolloutEvents(rollout, Sender(1, sent))
    lap, ends = events.at(0, 6), events.at(1, 12)
    assert (lap.num_timesteps, lap.envs.tolist(), lap.has_ended.tolist()) == (6, [1, 4], [False, False])
    assert (ends.envs.tolist(), ends.infos["stepCount"].tolist()) == ([0, 2, 3, 5], [4, 6, 4, 6])
    assert list(ends.episodes()) == [(4.0, 10), (6.123457, 12)] * 2
    assert list(ends.reward_terms.values()) == (0.5 * TERMS[1]).tolist()

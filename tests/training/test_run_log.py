"""Episodes, steps and losses reach the metrics collector."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from hotlap.training.callbacks.run_metrics import MetricsCallback, find_loss
from hotlap.training.metrics_collector import MetricsCollector


def make_callback(values):
    collector = MetricsCollector("x", "ppo", "e", 0, recording_interval=1)
    callback = MetricsCallback(collector)
    callback.model = SimpleNamespace(logger=SimpleNamespace(name_to_value=values), num_timesteps=0)
    return callback, collector


def test_finished_episodes_are_collected():
    callback, collector = make_callback({})
    stale = {"episode": {"r": 99.0, "l": 1}}
    callback.locals = {
        "infos": [{"episode": {"r": 1.0, "l": 10}}, stale, {}, {"episode": {"r": 3.0, "l": 20}}],
        "dones": np.array([True, False, True, True]),
    }
    callback.model.num_timesteps = 4
    assert callback.on_step() is True
    (point,) = collector.metrics().time_series
    assert (point.timestep, point.episode, point.reward, point.episode_length) == (4, 2, 2.0, 15.0)


def test_the_loss_of_the_last_update_is_collected_and_kept_after_a_dump():
    values = {}
    callback, collector = make_callback(values)
    for step, loss in enumerate([None, 0.5, None, 0.25], 1):
        values.clear()
        if loss is not None:
            values["train/loss"] = loss
        callback.on_rollout_start()
        collector.note_step(step)
    assert [point.loss for point in collector.metrics().time_series] == [None, 0.5, 0.5, 0.25]


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({"train/loss": 1.0, "train/value_loss": 5.0, "train/policy_loss": 7.0}, 1.0),
        ({"train/policy_loss": -0.5, "train/value_loss": 2.0}, 1.5),
        ({"train/actor_loss": -1.0, "train/critic_loss": 4.0, "train/ent_coef_loss": 9.0}, 3.0),
        ({"train/value_loss": 2.0}, None),
        ({"train/critic_loss": 2.0, "rollout/ep_rew_mean": 1.0}, None),
        ({}, None),
    ],
)
def test_the_loss_depends_on_what_the_algorithm_logs(values, loss):
    assert find_loss(values) == loss


@pytest.mark.parametrize("logger", [MagicMock(), SimpleNamespace()])
def test_a_logger_without_values_has_no_loss(logger):
    callback, collector = make_callback({})
    callback.model.logger = logger
    callback.on_rollout_start()
    collector.note_step(1)
    assert collector.metrics().time_series[0].loss is None

"""The callbacks in the hands of stable-baselines3's own algorithms, learning in a world that is known beforehand."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback
from hotlap.training.callbacks.run_metrics import MetricsCallback
from hotlap.training.metrics_collector import MetricsCollector

# The first optimizer of a process loads half of torch, which takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)


class Dumps(KVWriter):
    """Keeps each dump."""

    def __init__(self):
        self.dumps = []

    def write(self, key_values, key_excluded, step=0):
        self.dumps.append(dict(key_values))


class TinyRacer(gym.Env):
    """A world where every second step ends a lap of 2 s, every fourth an episode, and every step pays 1."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tick = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.tick += 1
        info = {"lap": 1 + self.tick // 2, "stepCount": 60 * self.tick, "progress": 0.5}
        return np.zeros(1, np.float32), 1.0, self.tick == 4, False, info


def learn(algorithm, num_envs, steps, log_interval, **settings):
    """The dumps and the points of a short run."""
    env = VecNormalize(DummyVecEnv([lambda: Monitor(TinyRacer())] * num_envs))
    collector = MetricsCollector("x", "a", "tiny", 0, recording_interval=10)
    model = algorithm("MlpPolicy", env, policy_kwargs={"net_arch": [2]}, device="cpu", **settings)
    out = Dumps()
    model.set_logger(Logger(None, [out]))
    callbacks = CallbackList([RacerMetricsCallback(), MetricsCallback(collector)])
    model.learn(steps, callback=callbacks, log_interval=log_interval)
    return out.dumps, collector.metrics()


def test_sac_loses_and_repeats_nothing_between_its_dumps():
    dumps, metrics = learn(SAC, 1, 26, log_interval=3, buffer_size=50, learning_starts=21, batch_size=2)
    assert [dump["racer/episodes_this_rollout"] for dump in dumps] == [3, 3]
    assert {dump["racer/mean_lap_time_sec"] for dump in dumps} == {2.0}
    assert {dump["reward/progress"] for dump in dumps} == {0.5}
    points = [(point.timestep, point.episode, point.reward, point.loss is None) for point in metrics.time_series]
    assert points == [(10, 2, 4.0, True), (20, 5, 4.0, True)]


@pytest.mark.parametrize(("algorithm", "settings"), [(PPO, {"batch_size": 4, "n_epochs": 1}), (A2C, {})])
def test_an_on_policy_algorithm_tells_each_rollouts_own(algorithm, settings):
    dumps, metrics = learn(algorithm, 2, 48, log_interval=1, n_steps=8, **settings)
    assert [dump["racer/episodes_this_rollout"] for dump in dumps] == [4, 4, 4]
    assert [dump["racer/completion_rate"] for dump in dumps] == [1.0, 1.0, 1.0]
    assert [dump["racer/best_lap_time_sec"] for dump in dumps] == [2.0, 2.0, 2.0]
    points = [(point.timestep, point.episode, point.reward, point.loss is None) for point in metrics.time_series]
    assert points == [(10, 2, 4.0, True), (20, 4, 4.0, False), (30, 6, 4.0, False), (40, 10, 4.0, False)]
    assert metrics.aggregated.total_timesteps == 48
    assert metrics.aggregated.episode_length_mean == 4.0

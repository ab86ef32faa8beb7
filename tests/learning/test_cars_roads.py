"""Cars on a stream of roads as tensors: what they and the normalizer forget when a road is replaced."""

import numpy as np
import torch

from hotlap.envs.settings import RacerSettings
from hotlap.envs.stream_fleet import StreamFleet, StreamPlan
from hotlap.hyperparameters import NormalizeSettings
from hotlap.learning.cars import Cars
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.rollout import Rollout
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.training import learners
from road_sources import ShippedRoads
from small_learners import learn, ours
from tiny_runs import tiny_config

REPLACED = [True, True, False, False]  # the cars of the first of two slots


def make_cars():
    settings = RacerSettings.load({"episode": {"start": "random"}})
    fleet = StreamFleet(ShippedRoads(), StreamPlan(2, 1, 4096, num_cars=4), settings, CpuEngine())
    cars = Cars(fleet, torch.device("cpu"), stack=3, lap_fourier=2)
    cars.reset(7)
    cars.actions[:, 1] = 1.0
    return cars


def test_cars_on_a_new_road_begin_with_its_first_observation_and_without_a_past():
    cars, begun = make_cars(), make_cars()
    for _ in range(5):
        cars.step()
    before = cars.obs.clone()
    restarted = cars.renew_roads()
    assert restarted.tolist() == REPLACED
    begun.fleet.renew_roads()
    begun._history.zero_()
    begun._history[:, -1] = torch.from_numpy(begun.fleet.batch.obs)
    begun._write_features(begun._history, begun.obs)
    np.testing.assert_array_equal(cars.obs[restarted], begun.obs[restarted])
    np.testing.assert_array_equal(cars.obs[~restarted], before[~restarted])
    assert cars._lengths.tolist() == [0, 0, 5, 5]
    assert (cars._returns != 0.0).tolist() == [False, False, True, True]


def test_cars_on_a_list_of_tracks_keep_them():
    cars = make_cars()
    cars.fleet.plan = StreamPlan(2, 0, 4096, num_cars=4)
    assert cars.renew_roads() is None


def test_ppo_begins_the_returns_of_restarted_cars_again(monkeypatch):
    monkeypatch.setattr(learners, "RoadWorkers", ShippedRoads)
    seen, begin = [], Rollout.begin

    def look(rollout):
        seen.append((rollout._normalizer._returns != 0.0).tolist())
        begin(rollout)

    monkeypatch.setattr(Rollout, "begin", look)
    racer = {"track": "generated", "roads": 2, "new_roads": 1, "rewards": {"speed_bonus": 1.0}}
    learner = ours(tiny_config(num_envs=4, steps=1000, racer=racer))
    learn(learner, 3)
    assert seen == [[False] * 4, [True, True, False, False], [False, False, True, True]]


def test_the_normalizer_forgets_only_what_it_is_told():
    normalizer = Normalizer(NormalizeSettings(obs=True, reward=True), 0.5, 4, 1, torch.device("cpu"))
    normalizer.add(torch.zeros(4, 1), torch.arange(1.0, 5.0), torch.zeros(4, dtype=torch.bool))
    normalizer.forget_returns(torch.tensor(REPLACED))
    assert normalizer.state_dict()["returns"].tolist() == [0.0, 0.0, 3.0, 4.0]

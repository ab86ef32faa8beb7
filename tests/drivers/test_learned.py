"""A driver of a model file takes the same actions as the learner, tick by tick and bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.learned import LearnedDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import DriverError
from hotlap.models.model_file import read_model
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.training.vec_envs.factory import make_cars

NUM_CARS = 5
SEED = 17
# No episode ends within a test, so that the fleet and the training environment stay in step.
ENDLESS = {"episode": {"start": "random", "maxSteps": 100_000, "stillnessTimeoutTicks": 100_000}}


def test_a_driver_is_bit_identical_to_the_learner_in_its_training_environment(any_racer):
    run, model = any_racer, read_model(any_racer.path)
    options = replace(run.config.racer, config=ENDLESS)
    env = make_cars(options, NUM_CARS)
    fleet = Fleet([options.track], RacerSettings.load(ENDLESS), NUM_CARS, CpuEngine())
    fleet.seed(np.arange(SEED, SEED + NUM_CARS, dtype=np.uint64))
    fleet.reset()
    env.seed(SEED)
    obs = env.reset()
    driver = LearnedDriver.from_file(model)
    driver.begin(fleet, seed=0)
    for decision in range(40):
        actions, _ = run.model.predict(run.normalize(obs), deterministic=True)
        obs, *_ = env.step(actions)
        for _ in range(options.action_repeat):
            fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        for column, values in env.fleet.get_state().items():
            np.testing.assert_array_equal(fleet.get_state()[column], values, f"{column} after decision {decision}")
    assert np.abs(fleet.states["forward_mps"]).max() > 1.0


def test_begin_clears_the_memory(racer):
    model = read_model(racer.path)
    driver = LearnedDriver.from_file(model)
    driven = []
    for num_ticks in (7, 6):  # 7 is no multiple of the action repeat
        fleet = Fleet(["track-01"], RacerSettings.load(ENDLESS), 2, CpuEngine())
        fleet.seed(np.arange(2, dtype=np.uint64))
        fleet.reset()
        driver.begin(fleet, seed=0)
        actions = []
        for _ in range(num_ticks):
            actions.append(driver.act(fleet.batch.obs).copy())
            fleet.step(actions[-1], autoreset=False)
        driven.append(np.stack(actions))
    np.testing.assert_array_equal(driven[0][:6], driven[1])
    # An action is held for three ticks.
    np.testing.assert_array_equal(driven[0][0], driven[0][2])
    assert (driven[0][2] != driven[0][3]).any()


def test_a_driver_is_named_after_its_file(racer):
    assert LearnedDriver.from_file(read_model(racer.path)).name == "ppo_seed42_model"


def test_a_model_of_another_environment_is_refused(cartpole):
    with pytest.raises(DriverError, match="is a model of CartPole-v1; it cannot drive"):
        LearnedDriver.from_file(read_model(cartpole.path))

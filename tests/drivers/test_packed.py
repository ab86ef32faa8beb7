"""A driver of a model file takes the learner's actions, tick by tick, to within 1e-5."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.observations import ObservationStack, stacked_observation_space
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import action_space
from hotlap.errors import DriverError
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import ModelFile, PolicySettings, read_model
from hotlap.models.policy import LearnedPolicy, policy_arguments
from hotlap.models.space_data import space_data
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.training.sb3.vec_envs.factory import make_cars

NUM_CARS = 5
SEED = 17
TOLERANCE = 1e-5  # the kernel sums in another order than torch
# No episode ends within a test, so that the fleet and the training environment stay in step.
ENDLESS = {"episode": {"start": "random", "maxSteps": 100_000, "stillnessTimeoutTicks": 100_000}}


def test_a_driver_takes_the_learners_actions_in_its_training_environment(any_racer):
    run, model = any_racer, read_model(any_racer.path)
    options = replace(run.config.racer, episode=RacerSettings.load(ENDLESS).episode)
    env = make_cars(options, NUM_CARS)
    fleet = Fleet([options.track], RacerSettings.load(ENDLESS), NUM_CARS, CpuEngine())
    fleet.seed(np.arange(SEED, SEED + NUM_CARS, dtype=np.uint64))
    fleet.reset()
    env.seed(SEED)
    obs = env.reset()
    driver = PackedDriver.from_model(model)
    driver.begin(fleet, seed=0)
    for decision in range(40):
        actions, _ = run.model.predict(run.normalize(obs), deterministic=True)
        obs, *_ = env.step(actions)
        for _ in range(options.action_repeat):
            np.testing.assert_allclose(driver.act(fleet.batch.obs), actions, rtol=0.0, atol=TOLERANCE)
            fleet.step(actions, autoreset=False)
        for column, values in env.fleet.get_state().items():
            np.testing.assert_array_equal(fleet.get_state()[column], values, f"{column} after decision {decision}")
    assert np.abs(fleet.states["forward_mps"]).max() > 1.0


def drive_casually(num_cars: int, num_ticks: int) -> np.ndarray:
    """Observations (num_ticks, num_cars, 14) of real driving from random starts."""
    fleet = Fleet(["track-01", "track-02", "track-03"], RacerSettings.load(ENDLESS), num_cars, CpuEngine())
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset()
    driver = CasualDriver()
    driver.begin(fleet, seed=0)
    seen = []
    for _ in range(num_ticks):
        seen.append(fleet.batch.obs.copy())
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
    return np.stack(seen)


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", None])
@pytest.mark.parametrize("has_normalizer", [True, False])
def test_the_kernel_agrees_with_torch_on_thousands_of_real_observations(racer, algorithm, activation, has_normalizer):
    settings = PolicySettings(net_arch=(64, 64), activation=activation)
    space = stacked_observation_space(3, 8)
    clip_obs = 10.0 if has_normalizer else None
    card = replace(
        read_model(racer.path).card, algorithm=algorithm, policy=settings, stack=3, lap_fourier=8, clip_obs=clip_obs,
        observation_space=space_data(space),
    )  # fmt: skip
    torch.manual_seed(5)
    network = ALGORITHMS[algorithm].policies["MlpPolicy"](
        space, action_space(), lambda _: 0.0, **policy_arguments(settings, algorithm)
    )
    for name, weights in network.state_dict().items():  # as large as after training: the actions reach their bounds
        weights.mul_(60.0 if name.startswith("action_net") else 2.0)
    observations = drive_casually(num_cars=48, num_ticks=100)
    stack = ObservationStack(48, 3, observations.shape[2], 8)
    rows = []
    for obs in observations:
        stack.push(obs)
        rows.append(stack.value)
    seen = np.concatenate(rows).astype(np.float64)
    policy = LearnedPolicy(network, clip_obs, {"obs_mean": seen.mean(axis=0), "obs_var": seen.var(axis=0)})
    model = ModelFile(Path("oracle.zip"), replace(card, action_repeat=1), policy.weights, policy.normalizer)
    driver = PackedDriver.from_model(model)
    driver.begin(Fleet(["track-01"], RacerSettings.load(ENDLESS), 48, CpuEngine()), seed=0)
    found = np.stack([driver.act(obs) for obs in observations])
    expected = np.stack([policy.act(row) for row in rows])
    assert found.shape[:2] == (100, 48)
    assert np.abs(found - expected).max() < TOLERANCE
    assert expected[..., 0].std() > 0.05
    assert ((expected > 0.0) & (expected < 1.0)).mean() > 0.1


def test_begin_clears_the_memory(racer):
    model = read_model(racer.path)
    driver = PackedDriver.from_model(model)
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


def test_a_driver_is_named_after_its_file_unless_it_has_a_name(racer):
    model = read_model(racer.path)
    assert PackedDriver.from_model(model).name == "ppo_seed42_model"
    assert PackedDriver.from_model(model, "champion").name == "champion"


def test_a_model_of_another_environment_is_refused(cartpole):
    with pytest.raises(DriverError, match="is a model of CartPole-v1; it cannot drive"):
        PackedDriver.from_model(read_model(cartpole.path))

"""TensorPPO on a real GPU: the same bits from run to run and after a resume; its cars are the CPU's."""

import numpy as np
import pytest
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from hotlap.runs.recipe import resolve_config
from hotlap.training.algorithms.registry import build_learner
from hotlap.training.state.learner_state import capture, restore, restore_generators
from hotlap.training.vec_envs.factory import TrainingEnvs
from training.algorithms.small_learners import weights

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
NUM_CARS, NUM_STEPS = 4096, 32
ROLLOUT = NUM_CARS * NUM_STEPS


def build(seed=1):
    asked = {"device": "cuda", "seed": seed, "num_envs": NUM_CARS, "steps": 10**9}
    asked |= {"ppo.n_steps": NUM_STEPS, "ppo.batch_size": 16_384, "racer.episode.max_ticks": 200}
    asked |= {"ppo.final_lr_fraction": 1.0}  # `learn` in two parts would decay it twice
    config = resolve_config("racer-ppo", asked)
    set_random_seed(config.seed, using_cuda=True)
    envs = TrainingEnvs(config)
    learner = build_learner(config, envs.env)
    learner.set_logger(Logger(None, []))
    return envs, learner


def test_two_runs_give_the_same_bits_and_another_seed_does_not():
    first, second, other = (weights(build(seed)[1].learn(5 * ROLLOUT)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_a_resumed_run_gives_the_bits_of_one_that_was_not_interrupted():
    whole = weights(build()[1].learn(6 * ROLLOUT))
    envs, learner = build()
    learner.learn(3 * ROLLOUT)
    learner.store_state()
    snapshot = capture(learner, envs.capture(), {})
    envs, learner = build()
    learner._setup_learn(1, None)
    saved, _ = restore(learner, snapshot)
    assert envs.restore(saved)
    restore_generators(learner, snapshot)
    np.testing.assert_array_equal(weights(learner.learn(3 * ROLLOUT, reset_num_timesteps=False)), whole)


def test_the_cars_go_back_to_the_cpu_with_the_same_observations():
    _, learner = build()
    learner.learn(2 * ROLLOUT)
    learner.store_state()
    env = learner._cars_env()
    env.set_state(env.get_state())  # observes on the CPU
    observed = env.fleet.batch.obs
    on_gpu = learner._parts.cars.obs[:, : observed.shape[1]].cpu().numpy()  # without the waves of the lap's progress
    np.testing.assert_array_equal(observed, on_gpu)
    assert (env.fleet.states["episode"] > 0).all()

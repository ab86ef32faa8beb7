"""PPO on a real GPU: the same bits from run to run and after a resume; its cars are the CPU's."""

import numpy as np
import pytest

from hotlap.runs.recipe import resolve_config
from small_learners import learn, ours, weights

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
NUM_CARS, NUM_STEPS = 4096, 32


def build(seed=1):
    asked = {"device": "cuda", "seed": seed, "num_envs": NUM_CARS, "steps": 10**9}
    asked |= {"ppo.n_steps": NUM_STEPS, "ppo.batch_size": 16_384, "racer.episode.max_ticks": 200}
    return ours(resolve_config("racer-ppo", asked))


def test_two_runs_give_the_same_bits_and_another_seed_does_not():
    first, second, other = (weights(learn(build(seed), 5)[0]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_a_resumed_run_gives_the_bits_of_one_that_was_not_interrupted():
    whole = weights(learn(build(), 6)[0])
    first, _ = learn(build(), 3)
    resumed = build()
    resumed.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(weights(learn(resumed, 3)[0]), whole)


def test_the_cars_go_back_to_the_cpu_with_the_same_observations():
    learner, _ = learn(build(), 2)
    cars = learner._cars
    on_gpu = cars.obs.cpu().numpy()
    cars.state_dict()  # brings the states to main memory
    fleet = cars.fleet
    fleet.set_state(fleet.get_state())  # observes on the CPU
    observed = fleet.batch.obs
    np.testing.assert_array_equal(observed, on_gpu[:, : observed.shape[1]])  # without the Fourier features
    assert (fleet.states["episode"] > 0).all()

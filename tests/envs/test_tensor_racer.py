"""Cars as tensors: the bits of the vector environments, without copies."""

import numpy as np
import pytest
import torch

import hotlap
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.race import MAX_CARS_PER_RACE
from sim.kernels import F

CONFIG = {"episode": {"start": "random", "maxSteps": 60}}


def drive(env, racer, num_steps, num_rows, keys):
    """Compare every step of a vector environment and the tensors, through episodes that end."""
    rng = np.random.default_rng(0)
    num_ends = 0
    for _ in range(num_steps):
        actions = rng.uniform([-0.4, 0.2, -1.0], [0.4, 1.0, 0.3], (num_rows, 3)).astype(F)
        obs, rewards, terminated, truncated, info = env.step(actions)
        found = racer.step(torch.from_numpy(actions))
        for mine, other in zip((obs, rewards, terminated, truncated), found[:4], strict=True):
            assert mine.tobytes() == other.numpy().tobytes()
        ended = terminated | truncated
        num_ends += int(ended.sum())
        if ended.any():
            assert (found[4]["final_obs"].numpy()[ended] == info["final_obs"][ended]).all()
        for name in keys:
            assert (found[4][name].numpy()[~ended] == info[name][~ended]).all(), name
    return num_ends


@pytest.mark.parametrize("observation", ["rays", "road", "road-2"])
def test_cars_have_the_bits_of_the_vector_environment(observation):
    env = hotlap.RacerVectorEnv(5, ["track-01", "track-03"], CONFIG, observation=observation)
    racer = hotlap.TensorRacer(5, ["track-01", "track-03"], observation=observation, config=CONFIG)
    first, infos = racer.reset(seed=3)
    assert (env.reset(seed=3)[0] == first.numpy()).all()
    assert infos["rawSpeed"].dtype == torch.float32
    assert racer.num_observations == first.shape[1]
    assert drive(env, racer, 150, 5, ("rawSpeed", "lap", "wallContact", "offTrack")) >= 10


def test_races_have_the_bits_of_theirs():
    env = hotlap.RaceVectorEnv(num_races=3, num_cars=4, start="rolling")
    racer = hotlap.TensorRacer(num_races=3, num_cars=4, start="rolling")
    assert (env.reset(seed=8)[0] == racer.reset(seed=8)[0].numpy()).all()
    drive(env, racer, 120, 12, ("position", "contact", "atFault", "overtakes", "slipstream", "rawSpeed"))
    assert racer.num_envs == 12


def test_an_action_is_held_for_its_ticks():
    once, repeated = hotlap.TensorRacer(2), hotlap.TensorRacer(2, action_repeat=4)
    once.reset(seed=0)
    repeated.reset(seed=0)
    repeated.actions[:] = torch.tensor([0.0, 1.0, 0.0])
    held = repeated.step()[0]
    for _ in range(4):
        obs = once.step(repeated.actions)[0]
    assert (held == obs).all()


def test_results_share_the_simulators_memory():
    racer = hotlap.TensorRacer(3)
    obs, infos = racer.reset(seed=0)
    assert obs.data_ptr() == racer.fleet.batch.obs.ctypes.data
    again, rewards, _, _, later = racer.step(torch.ones(3, 3))
    assert again.data_ptr() == obs.data_ptr()
    assert rewards.data_ptr() == racer.fleet.batch.rewards.ctypes.data
    assert later["rawSpeed"].data_ptr() == infos["rawSpeed"].data_ptr()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "num_envs"),
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 3, "device": "tpu"}, "device"),
        ({"num_envs": 3, "observation": "race"}, "needs other cars"),
        ({"num_envs": 3, "observation": "radar"}, "observation"),
        ({"num_envs": 3, "action_repeat": 0}, "action_repeat"),
        ({"num_envs": 3, "num_races": 2, "num_cars": 4}, "2 races of 4 cars are 8 cars, got 3"),
        ({"num_races": 1, "num_cars": MAX_CARS_PER_RACE + 1}, "num_cars"),
    ],
)
def test_bad_arguments_get_one_line(arguments, fault):
    with pytest.raises(ConfigError, match=fault):
        hotlap.TensorRacer(**arguments)


def test_bad_actions_are_refused_and_nothing_moves():
    racer = hotlap.TensorRacer(2)
    with pytest.raises(ConfigError, match="reset"):
        racer.step(torch.zeros(2, 3))
    racer.reset(seed=0)
    with pytest.raises(ActionError, match="shape"):
        racer.step(torch.zeros(3, 2))
    before = racer.fleet.states.copy()
    with pytest.raises(ActionError, match="car 1 must be finite"):
        racer.step(torch.tensor([[0.0, 1.0, 0.0], [0.0, float("nan"), 0.0]]))
    assert (racer.fleet.states == before).all()

"""Groups of cars: what they share, what sets them apart, and advantages against the others, worked out by hand."""

import numpy as np
import pytest
import torch

from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError
from hotlap.learning.cars import Cars
from hotlap.learning.groups import compare_in_groups
from hotlap.runs.recipe import resolve_config
from hotlap.sim.batch_cpu import CpuEngine
from small_learners import learn, ours
from tiny_runs import tiny_config


def make_cars(num_cars: int = 6, group_size: int = 3) -> Cars:
    settings = RacerSettings.load({"episode": {"start": "random"}})
    tracks = [track for track in ("track-01", "track-02") for _ in range(group_size)]
    fleet = Fleet(tracks, settings, num_cars, CpuEngine(), "road")
    cars = Cars(fleet, torch.device("cpu"), group_size=group_size)
    cars.reset(7)
    cars.actions[:, 1] = 1.0
    return cars


def test_the_cars_of_a_group_begin_at_the_same_place_and_groups_do_not():
    obs = make_cars().obs
    assert (obs[:3] == obs[0]).all()
    assert (obs[3:] == obs[3]).all()
    assert (obs[0] != obs[3]).any()


def test_a_car_out_of_step_is_put_where_the_first_of_its_group_is():
    cars = make_cars()
    cars.actions[:, 0] = torch.tensor([-0.3, 0.0, 0.3, -0.3, 0.0, 0.3])
    for _ in range(20):
        cars.step()
    cars.fleet.states["episode"][4] += 1  # as after an episode that ended before the others'
    before = cars.fleet.states.copy()
    assert cars.gather_groups().tolist() == [False, False, False, False, True, False]
    after, obs = cars.fleet.states, cars.obs
    assert after[4] == before[3]
    assert [after[car] == before[car] for car in (0, 1, 2, 3, 5)] == [True] * 5
    assert (obs[4] == obs[3]).all()
    cars.step()
    assert (cars.obs[4] != cars.obs[3]).any()  # they steer unlike each other
    assert not cars.gather_groups().any()


def test_an_advantage_is_counted_against_the_mean_of_the_others_until_an_episode_terminates():
    advantages = torch.tensor([[1.0, 2.0, 6.0, 5.0, 5.0, 5.0], [1.0, 2.0, 6.0, 0.0, 3.0, 9.0]])
    terminated = torch.zeros(2, 6, dtype=torch.bool)
    terminated[0, 1] = True  # is in step at the first decision, and elsewhere at the second
    compare_in_groups(advantages, terminated, 3)
    assert advantages.tolist() == [[-3.0, -1.5, 4.5, 0.0, 0.0, 0.0], [-5.0, 2.0, 5.0, -6.0, -1.5, 7.5]]


def test_one_car_in_step_keeps_its_advantage():
    advantages = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    terminated = torch.tensor([[True, False], [False, False]])
    compare_in_groups(advantages, terminated, 2)
    assert advantages.tolist() == [[-1.0, 1.0], [3.0, 4.0]]


def test_groups_do_not_change_what_values_are_fitted_to():
    """Returns are the same with and without the comparison."""
    learner = ours(tiny_config("ppo", num_envs=8, ppo={"group_size": 4}))
    learn(learner, 1)
    rollout = learner._parts.rollout
    found = rollout.returns.clone()
    raw = rollout.returns - rollout.values[:-1]
    compare_in_groups(raw, rollout.ended & ~rollout._cuts.any(0), 4)
    torch.testing.assert_close(rollout.advantages, raw, atol=1e-5, rtol=1e-4)
    assert np.isfinite(found.numpy()).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ppo.group_size": 5, "num_envs": 512}, "num_envs: 512 cars do not fill groups of 5. Give a multiple."),
        ({"ppo.group_size": 4, "ppo.target_kl": 0.02}, "ppo.group_size: groups are for PPO on hotlap/Racer-v0"),
        ({"ppo.group_size": 0}, "group_size must be from 1 to 1024, got 0"),
    ],
)
def test_groups_that_cannot_be_made_are_refused_in_one_line(settings, message):
    with pytest.raises(ConfigError, match=message):
        resolve_config("racer-ppo", settings)


def test_groups_are_refused_for_other_environments():
    with pytest.raises(ConfigError, match=r"ppo\.group_size: groups are for PPO on hotlap/Racer-v0"):
        resolve_config("lunar-ppo", {"ppo.group_size": 2, "num_envs": 2})

"""A run in races: which cars learn, who else drives, exact resume, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.errors import ConfigError
from hotlap.runs.recipe import resolve_config
from hotlap.sim.race import START_MIXED
from hotlap.training.race_cars import find_opponents
from hotlap.training.start_model import load_start_model
from race_runs import RACE, race_config
from small_learners import learn, ours, weights


def test_only_cars_that_learn_have_rows():
    learner = ours(race_config(num_envs=16))
    cars = learner._cars
    assert learner.total_envs == len(cars.obs) == 10  # of four races 4, 1, 4 and 1
    assert cars.fleet.num_cars == 16
    assert cars.fleet.race_rules["start"][0] == START_MIXED
    learner, _ = learn(learner, 2)
    assert learner.num_timesteps == 2 * 8 * 10


def test_a_champion_drives_on_its_own_track_only():
    found = find_opponents(race_config(), ["track-01", "test-000"])
    assert [(one.name, one.tracks) for one in found] == [
        ("champion track-01", frozenset({0})),
        ("generalist", None),
    ]


@pytest.mark.parametrize("observation", ["race", "race-2"])
def test_a_run_in_races_resumes_to_the_bit(observation):
    plain = race_config()
    config = replace(plain, racer=replace(plain.racer, observation=observation))
    first, _ = learn(ours(config), 3)
    saved = first.state_dict()
    second = ours(config)
    second.load_state_dict(saved)
    np.testing.assert_array_equal(weights(learn(first, 3)[0]), weights(learn(second, 3)[0]))


def test_the_recipe_starts_from_a_driver_that_has_seen_no_cars():
    config = resolve_config("race-ppo", {"num_envs": 8})
    learner = ours(config)
    load_start_model(config, learner)
    found = learner.policy()
    first = found.weights["mlp_extractor.policy_net.0.weight"]
    assert first.shape[1] == 90
    assert (first[:, 58:] == 0.0).all()
    assert (first[:, :58] != 0.0).any()
    assert found.normalizer["obs_var"][58:66].tolist() == [0.25, *[0.04] * 6, 0.25]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"race": {**RACE, "learners": [5]}}, "a race has 4 cars, got 5"),
        ({"race": {**RACE, "learners": [0]}}, r"learners\[0\] must be from 1 to 32, got 0"),
        ({"race": {"num_cars": 4, "learners": [1]}}, "nobody drives the other cars"),
        ({"num_envs": 6}, "6 cars do not fill races of 4"),
        ({"racer": {"observation": "road"}}, 'needs racer.observation = "race"'),
        ({"race": {"gain": 1.0}}, "this table is for several cars"),
        (
            {"racer": {"observation": "race", "rewards": {"progress_time_s": 20.0}}},
            r"progress_time_s: races count metres gained on others",
        ),
    ],
)
def test_settings_that_make_no_race_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        race_config(**changes)


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        ("nobody", "race.opponents: driver 'nobody' is not known"),
        ("casual", "casual has no weights"),
        ("champion", "decides every 4 ticks, this run every 2"),
    ],
)
def test_drivers_that_cannot_drive_here_are_refused(driver, message):
    config = race_config(
        race={**RACE, "opponents": [driver]},
        racer={"observation": "race", "action_repeat": 2, "episode": {"max_ticks": 60, "start": "random"}},
    )
    with pytest.raises(ConfigError, match=message):
        find_opponents(config, ["track-01"])

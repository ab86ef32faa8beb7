"""The settings of the algorithms: their bounds, and what races need."""

import pytest

from hotlap.errors import ConfigError
from hotlap.hyperparameters import A2CSettings, NormalizeSettings, PPOSettings, RaceSettings, SACSettings


@pytest.mark.parametrize("kind", [PPOSettings, A2CSettings, SACSettings, NormalizeSettings, RaceSettings])
def test_the_defaults_are_within_their_bounds(kind):
    assert kind() == kind()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (PPOSettings, {"learning_rate": 0.0}), (PPOSettings, {"batch_size": 1}), (PPOSettings, {"gamma": 1.1}),
        (A2CSettings, {"n_steps": 0}), (SACSettings, {"buffer_size": 0}), (SACSettings, {"gamma": -0.1}),
        (NormalizeSettings, {"clip_obs": 0.0}), (RaceSettings, {"num_cars": 33}), (RaceSettings, {"overtake": -1.0}),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_refused_by_its_name(kind, values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        kind(**values)


def test_a_single_decision_has_no_advantages_to_normalize():
    assert (PPOSettings(n_steps=1).min_num_envs, PPOSettings(n_steps=2).min_num_envs) == (2, 1)


def test_normalization_is_on_with_either_part():
    assert [NormalizeSettings(*parts).is_on for parts in ((False, False), (True, False), (False, True))] == [
        False, True, True,
    ]  # fmt: skip


def test_somebody_drives_every_car_of_a_race():
    assert not RaceSettings().is_on
    assert RaceSettings(num_cars=4).is_on
    assert RaceSettings(num_cars=4, learners=(1, 4), opponents=("champion",)).learners == (1, 4)
    RaceSettings(num_cars=4, learners=(2,), league_size=1)
    with pytest.raises(ConfigError, match="nobody drives the other cars"):
        RaceSettings(num_cars=4, learners=(4, 2))
    with pytest.raises(ConfigError, match="a race has 4 cars, got 5"):
        RaceSettings(num_cars=4, learners=(1, 5), opponents=("casual",))

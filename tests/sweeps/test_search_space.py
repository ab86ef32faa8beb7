"""The table `[space]` of a sweep file: its values, its combinations, and what is refused."""

import pytest

from hotlap.errors import ConfigError
from hotlap.sweeps.search_space import end_points, grid_points, grid_size, read_space

RATE = "ppo.learning_rate"


def test_a_range_of_a_float_setting_is_of_floats_even_if_written_as_whole_numbers():
    space = {"ppo.gamma": {"low": 0, "high": 1}, "ppo.n_epochs": {"low": 1, "high": 9, "step": 2}}
    gamma, epochs = read_space(space, "s.toml")
    assert (gamma.is_whole, epochs.is_whole) == (False, True)
    assert epochs.grid() == [1, 3, 5, 7, 9]


def test_a_grid_has_every_combination_and_the_ends_every_value_beside_the_first_ones():
    space = read_space({RATE: {"choices": [0.1, 0.2]}, "ppo.n_epochs": {"low": 1, "high": 4}}, "s.toml")
    assert grid_size(space) == 8
    pairs = [tuple(point.values()) for point in grid_points(space)]
    assert pairs == [(rate, epochs) for rate in (0.1, 0.2) for epochs in (1, 2, 3, 4)]
    assert [tuple(point.values()) for point in end_points(space)] == [(0.1, 1), (0.2, 1), (0.1, 4)]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({RATE: {"low": 1e-3, "high": 1e-4}}, "range is empty: low is 0.001 and high is 0.0001"),
        ({RATE: {"low": 0.0, "high": 1.0, "log": True}}, "log range must start above 0"),
        ({RATE: {"low": 0.1, "high": 1.0, "log": True, "step": 0.1}}, "a log range has no step"),
        ({RATE: {"low": 0.1, "high": 1.0, "step": 2.0}}, "step must be above 0 and fit"),
        ({RATE: {"low": 0.1}}, "a range needs low and high"),
        ({RATE: {"low": "x", "high": 1}}, "low must be a finite number, got 'x'"),
        ({RATE: {"low": 0.1, "high": 1.0, "lg": True}}, "unknown key 'lg'"),
        ({RATE: {"choices": []}}, "choices is empty"),
        ({RATE: {"choices": [1e-3, 1e-3]}}, "the choice 0.001 is given twice"),
        ({RATE: {"choices": 3}}, "choices must be a list"),
        ({RATE: 3}, "must be a range or choices, got 3"),
        ({"ppo.learning_rat": {"choices": [1]}}, "Did you mean 'ppo.learning_rate'"),
        ({"ppo": {"choices": [1]}}, "is a table"),
        ({"seed": {"choices": [1]}}, "every trial runs all seeds"),
        ({"ppo.n_epochs": {"low": 1.0, "high": 2.0}}, "takes whole numbers"),
        ({"env": {"low": 1, "high": 2}}, "takes no numbers from a range"),
    ],
)
def test_what_is_no_range_and_no_choice_is_refused_with_its_place(space, message):
    with pytest.raises(ConfigError, match=message) as refusal:
        read_space(space, "s.toml")
    assert str(refusal.value).startswith("s.toml: space: ")
    assert "\n" not in str(refusal.value)

"""The drivers of a race as a person writes them."""

import pytest

from hotlap.errors import ConfigError, DriverError
from hotlap.runs.race_entries import find_entries, read_entry


@pytest.mark.parametrize(
    ("text", "name", "num_cars", "throttle", "label"),
    [
        ("champion", "champion", 1, 1.0, "champion"),
        ("champion*4", "champion", 4, 1.0, "champion"),
        ("champion@0.9", "champion", 1, 0.9, "champion@0.9"),
        ("champion@0.9*2", "champion", 2, 0.9, "champion@0.9"),
        ("results/me@home.zip", "results/me@home.zip", 1, 1.0, "results/me@home.zip"),
        ("results/me@home.zip@.5*3", "results/me@home.zip", 3, 0.5, "results/me@home.zip@0.5"),
        ("champion@1", "champion", 1, 1.0, "champion"),
    ],
)
def test_what_an_argument_means(text, name, num_cars, throttle, label):
    found = read_entry(text)
    assert (found.name, found.num_cars, found.max_throttle, found.label) == (name, num_cars, throttle, label)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("champion*0", "from 1 to 32, got '0'"),
        ("champion*33", "from 1 to 32, got '33'"),
        ("champion*", "from 1 to 32, got ''"),
        ("champion*two", "from 1 to 32, got 'two'"),
        ("champion*1e3", "from 1 to 32"),
        ("champion*99999999999999999999", "from 1 to 32"),
        ("champion@0", "more than 0 and at most 1, got '0'"),
        ("champion@1.1", "more than 0 and at most 1"),
        ("champion@-1", "more than 0 and at most 1"),
        ("champion@1.2.3", "more than 0 and at most 1"),
    ],
)
def test_numbers_that_make_no_sense_get_one_line(text, fault):
    with pytest.raises(ConfigError, match=fault) as error:
        read_entry(text)
    assert "\n" not in str(error.value)


def test_each_argument_has_a_driver_of_its_own():
    one, two = find_entries(["champion*2", "champion"], "track-01")
    assert one.driver is not two.driver
    assert (one.num_cars, two.num_cars) == (2, 1)


@pytest.mark.parametrize("texts", [["champion*32", "casual"], ["nobody"], ["champion@0.9x"], [""]])
def test_unknown_drivers_and_too_many_cars_are_refused(texts):
    with pytest.raises((ConfigError, DriverError)):
        find_entries(texts, "track-01")


def test_a_champion_of_another_track_is_refused():
    with pytest.raises(DriverError, match="track-01, track-02, track-03"):
        find_entries(["champion"], "test-100")

"""What a reset asks for, and what contradicts itself."""

import json

import pytest

from hotlap.bridge.protocol import MAX_STEP_TICKS, decode_single
from hotlap.bridge.simulation_plan import plan_simulation, settings_from
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError


def plan(**asked):
    return plan_simulation(decode_single(json.dumps({"type": "reset", **asked}).encode()))


def test_an_empty_reset_is_one_car_on_the_default_track():
    found = plan()
    assert (found.track_ids, found.settings, found.race) == (["track-01"], RacerSettings(), None)
    assert found.num_cars == 1


def test_equal_settings_are_parsed_once():
    text = b'{"episode": {"maxSteps": 77}}'
    assert settings_from(text) is settings_from(bytes(bytearray(text)))
    assert settings_from(b"null") == settings_from(b"") == RacerSettings()


def test_a_race_has_its_laps_and_its_start():
    assert plan(numEnvs=4, race={"laps": 2, "start": "rolling"}).race == (2, "rolling")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"trackId": ["track-01", "track-02"]}, "a list of tracks needs numEnvs"),
        ({"observation": "race"}, "needs other cars"),
        ({"numEnvs": 2, "seed": [1]}, "one seed for each of the numEnvs cars, got 1"),
        ({"seed": -1}, "seed must be zero or more"),
        ({"numEnvs": 1000, "actionRepeat": MAX_STEP_TICKS // 1000 + 1}, "actionRepeat times numEnvs must be at most"),
        ({"race": {}}, "needs numEnvs, the number of its cars"),
        ({"race": {}, "numEnvs": 2, "trackId": ["track-01", "track-02"]}, "share one road, got 2 tracks"),
        ({"race": {}, "numEnvs": 2, "start": "line"}, "a race starts from a grid"),
        ({"race": {}, "numEnvs": 2, "observation": "road"}, "observation of a race must be 'race'"),
        ({"race": {}, "numEnvs": 2, "seed": [1, 2]}, "a race has one for all its cars"),
        ({"race": {"grid": [0, 0]}, "numEnvs": 2}, "must name each car from 0 to 1 once"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_line(asked, words):
    with pytest.raises(ConfigError) as caught:
        plan(**asked)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()

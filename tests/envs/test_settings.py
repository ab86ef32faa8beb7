"""The environment's settings: defaults and limits."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from hotlap.config import camel_case
from hotlap.envs.settings import EpisodeRules, RacerSettings, RewardWeights, start_code
from hotlap.errors import ConfigError
from hotlap.sim.rewards import START_ANYWHERE, START_ON_LINE, START_RANDOM

# Written out here instead of imported: a changed default breaks trained models.
DEFAULTS = {
    "weights": {
        "progress": 1.0,
        "speedBonus": 0.0,
        "wallPenalty": -0.002,
        "offTrackPenalty": -0.001,
        "backwardPenalty": 0.0,
        "stillnessPenalty": -0.001,
        "stillnessSpeedThreshold": 2.0,
    },
    "episode": {"maxSteps": 3000, "stillnessTimeoutTicks": 180},
}


def as_written(settings: RacerSettings) -> dict[str, dict[str, object]]:
    return {part: {camel_case(k): v for k, v in values.items()} for part, values in asdict(settings).items()}


def test_the_defaults():
    written = as_written(RacerSettings.load(None))
    assert written["weights"] == DEFAULTS["weights"]
    assert {key: written["episode"][key] for key in DEFAULTS["episode"]} == DEFAULTS["episode"]
    assert written["episode"]["start"] == "line"
    assert written["episode"]["numGates"] == 30


def test_the_documented_file_is_the_defaults(tmp_path):
    path = tmp_path / "ai-config.json"
    path.write_text(json.dumps(DEFAULTS))
    assert RacerSettings.load(path) == RacerSettings.load(str(path)) == RacerSettings.load(DEFAULTS) == RacerSettings()


@pytest.mark.parametrize(("part", "key"), [(part, key) for part, keys in DEFAULTS.items() for key in keys])
def test_every_key_can_be_set_without_changing_the_others(part, key):
    value = 17 if part == "episode" else 0.5
    written = as_written(RacerSettings.load({part: {key: value}}))
    expected = as_written(RacerSettings())
    expected[part][key] = value
    assert written == expected


@pytest.mark.parametrize(("part", "key"), [(part, key) for part, keys in DEFAULTS.items() for key in keys])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True, [1], 1e30])
def test_every_key_refuses_invalid_values(part, key, value):
    with pytest.raises(ConfigError, match=key):
        RacerSettings.load({part: {key: value}})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"weigths": {}}, "'weigths'.*Did you mean 'weights'"),
        ({"weights": {"progres": 1.0}}, "'progres'.*Did you mean 'progress'"),
        ({"episode": {"maxsteps": 1}}, "'maxsteps'.*Did you mean 'maxSteps'"),
        ({"episode": {"maxSteps": 0}}, "maxSteps must be from 1"),
        ({"episode": {"maxSteps": -5}}, "maxSteps must be from 1"),
        ({"episode": {"maxSteps": 2**31}}, "maxSteps must be from 1"),
        ({"episode": {"stillnessTimeoutTicks": 0}}, "stillnessTimeoutTicks must be from 1"),
        ({"episode": {"numGates": 2}}, "numGates must be from 3"),
        ({"episode": {"numGates": 101}}, "numGates must be from 3"),
        ({"episode": {"start": "pit"}}, "start must be one of 'line', 'random'"),
        ({"weights": {"stillnessSpeedThreshold": -1.0}}, "stillnessSpeedThreshold must be zero or more"),
        ({"episode": {"stillnessPedals": 1.5}}, "stillnessPedals must be from 0 to 1, got 1.5"),
        ({"episode": {"penaltyMinSpeed": 101.0}}, "penaltyMinSpeed must be from 0 to 100 m/s, got 101"),
        ({"episode": {"progressLength": -1.0}}, "progressLength must be from 0 to"),
        ({"episode": {"spunShare": 1.5}}, "spunShare must be from 0 to 1, got 1.5"),
        ({"episode": {"edgeMargin": -0.1}}, "edgeMargin must be from 0 to 5 m, got -0.1"),
        ({"weights": {"wallPenalty": -1e7}}, "wallPenalty must be at most"),
    ],
)
def test_the_error_names_the_key(data, words):
    with pytest.raises(ConfigError, match=words):
        RacerSettings.load(data)


def test_the_record_of_the_simulator_has_every_value():
    weights = RewardWeights(1.5, 2.5, -3.5, -4.5, -5.5, -6.5, 7.5)
    record = RacerSettings(weights, EpisodeRules(11, 12, "random", 13, 14.5, 0.75, 0.25, 8.5, 0.625)).rules()
    assert record.shape == (1,)
    assert [float(value) for value in record[0].item()] == [
        1.5, 2.5, -3.5, -4.5, -5.5, -6.5, 7.5, 0.625, 8.5, 14.5, 0.25, 0.75, 11, 12, 13, START_RANDOM
    ]  # fmt: skip
    assert record.dtype["progress"] == np.float32


def test_start_codes():
    assert (start_code("line"), start_code("random")) == (START_ON_LINE, START_RANDOM)
    assert start_code("anywhere") == START_ANYWHERE
    for start in ("LINE", "", None, 1, ["line"]):
        with pytest.raises(ConfigError, match="start must be 'line', 'random' or 'anywhere'"):
            start_code(start)

"""The environment's settings: defaults and limits."""

import json
from dataclasses import fields

import numpy as np
import pytest

from hotlap.config import as_plain, camel_case
from hotlap.envs.domain import DomainRules
from hotlap.envs.settings import EpisodeRules, RacerSettings, RewardRules, start_code
from hotlap.errors import ConfigError
from hotlap.sim.rewards import RULES_DTYPE, START_ON_LINE, START_RANDOM

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
ADDITIONS = {
    "weights": {"progressLength": 0.0, "progressTime": 0.0, "penaltyMinSpeed": 0.0},
    "episode": {"start": "line", "spunFraction": 0.0, "numGates": 30},
    "domain": {
        **{f"{name}{end}": 1.0 for name in ("grip", "mass", "power") for end in ("Low", "High")},
        "delayLow": 0,
        "delayHigh": 0,
        "observationNoise": 0.0,
    },
}


def as_written(settings: RacerSettings) -> dict[str, dict[str, object]]:
    return as_plain(settings, camel_case)


def test_the_defaults():
    written = as_written(RacerSettings.load(None))
    assert written == {part: {**DEFAULTS.get(part, {}), **ADDITIONS[part]} for part in ADDITIONS}


@pytest.mark.parametrize("kind", [RacerSettings, RewardRules, EpisodeRules, DomainRules])
def test_every_setting_declares_what_it_means(kind):
    for field in fields(kind):
        assert field.metadata["meaning"].endswith(".")
        if field.type in (float, int):
            assert field.metadata["allowed"] is not None


@pytest.mark.parametrize(("suffix", "unit"), [("_mps", "m/s"), ("_m", "m"), ("_ticks", "ticks")])
def test_the_unit_of_a_setting_is_the_one_in_its_name(suffix, unit):
    settings = [*fields(RewardRules), *fields(EpisodeRules)]
    named = {field.name for field in settings if field.name.endswith(suffix)}
    assert named == {field.name for field in settings if field.metadata["unit"] == unit} != set()


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
        ({"episode": {"start": "anywhere"}}, "start must be one of 'line', 'random', got 'anywhere'"),
        ({"episode": {"max_ticks": 9}}, "unknown key 'max_ticks'. Did you mean 'maxSteps'"),
        ({"weights": {"stillnessSpeedThreshold": -1.0}}, "stillnessSpeedThreshold must be from 0 to 1000000 m/s"),
        ({"weights": {"penaltyMinSpeed": 101.0}}, "penaltyMinSpeed must be from 0 to 100 m/s, got 101"),
        ({"weights": {"progressLength": -1.0}}, "progressLength must be from 0 to 1000000 m, got -1"),
        ({"episode": {"spunFraction": 1.5}}, "spunFraction must be from 0 to 1, got 1.5"),
        ({"weights": {"wallPenalty": -1e7}}, "wallPenalty must be from -1000000 to 1000000, got -1"),
    ],
)
def test_the_error_names_the_key(data, words):
    with pytest.raises(ConfigError, match=words):
        RacerSettings.load(data)


def test_the_record_of_the_simulator_has_every_value():
    rewards = RewardRules(1.5, 2.5, -3.5, -4.5, -5.5, -6.5, 7.5, 14.5, 15.5, 8.5)
    domain = DomainRules(0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 3, 4, 0.25)
    record = RacerSettings(rewards, EpisodeRules(11, 12, "random", 0.75, 13), domain).rules()
    assert record.shape == (1,)
    assert [float(value) for value in record[0].item()] == pytest.approx([
        1.5, 2.5, -3.5, -4.5, -5.5, -6.5, 7.5, 14.5, 15.5, 8.5, 11, 12, START_RANDOM, 0.75, 13,
        0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 3, 4, 0.25,
    ])  # fmt: skip
    assert record.dtype["progress"] == np.float32
    kinds = RewardRules, EpisodeRules, DomainRules
    assert list(RULES_DTYPE.names) == [field.name for kind in kinds for field in fields(kind)]


def test_start_codes():
    assert (start_code("line"), start_code("random")) == (START_ON_LINE, START_RANDOM)
    for start in ("LINE", "", "anywhere", None, 1, ["line"]):
        with pytest.raises(ConfigError, match="start must be one of 'line', 'random', got "):
            start_code(start)

"""Strict loading: known keys are accepted, everything else is refused with its key."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import pytest

from hotlap import config
from hotlap.config import Range, as_plain, build, camel_case, load_settings, setting, snake_case
from hotlap.errors import ConfigError, InputFileError


@dataclass(frozen=True)
class Inner:
    top_speed: float = 2.5
    num_laps: int = 3


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    mode: Literal["calm", "wild"] = "calm"
    is_loud: bool = False
    name: str = "x"


@dataclass(frozen=True)
class Wide:
    """What a run's settings need besides: an optional value, a list, a table of anything."""

    inner: Inner = field(default_factory=Inner)
    rate_limit: float | None = None
    mood: Literal["calm", "wild"] | None = None
    widths: tuple[int, ...] | None = None
    others: tuple[Inner, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def test_keys_are_camel_case_and_missing_ones_take_defaults():
    assert load_settings(Outer, None) == load_settings(Outer, {}) == Outer()
    settings = Outer(name="y")
    assert load_settings(Outer, settings) is settings
    assert load_settings(Outer, {"inner": {"topSpeed": 1}, "isLoud": True}) == Outer(Inner(1.0, 3), is_loud=True)
    assert list(map(camel_case, fields(Outer))) == ["inner", "mode", "isLoud", "name"]
    assert list(map(camel_case, fields(Ranged)))[-2:] == ["extra", "pitSpeedLimit"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"inner": {"topSped": 1.0}}, "inner.*'topSped'.*Did you mean 'topSpeed'"),
        ({"zzz": 1}, "'zzz'.*Known keys: inner, mode, isLoud, name"),
        ({"top_speed": 1}, "'top_speed'"),
        ({3: 1}, "unknown key 3"),
        ({"inner": 5}, "inner must be an object.*5"),
        ({"inner": None}, "inner must be an object"),
        *[({"inner": {"topSpeed": x}}, f"inner: topSpeed must be a number.*{x!r}") for x in ("fast", True, None)],
        *[({"inner": {"topSpeed": x}}, "topSpeed must be finite") for x in (math.nan, -math.inf, 10**400)],
        *[({"inner": {"numLaps": x}}, f"numLaps must be a whole number.*{x!r}") for x in (2.0, False)],
        ({"mode": "angry"}, "mode must be one of 'calm', 'wild'.*'angry'"),
        ({"mode": ["calm"]}, "mode must be one of"),
        ({"isLoud": 1}, "isLoud must be of type bool"),
        ({"name": 1}, "name must be of type str"),
        *[(source, "must be a mapping or a path") for source in (5, [], 1.5, object())],
    ],
)
def test_a_bad_value_is_refused_with_its_key(data, words):
    with pytest.raises(ConfigError, match=words):
        load_settings(Outer, data)


def test_json_and_toml_files_are_equivalent(tmp_path):
    as_json, as_toml = tmp_path / "a.json", tmp_path / "a.toml"
    as_json.write_text(json.dumps({"inner": {"numLaps": 7}, "mode": "wild"}))
    as_toml.write_text('mode = "wild"\n[inner]\nnumLaps = 7\n')
    expected = Outer(Inner(num_laps=7), mode="wild")
    assert load_settings(Outer, as_json) == load_settings(Outer, str(as_toml)) == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b'{"nam": "x"}', r"a\.json: unknown key 'nam'"),
        ("a.json", b"{", "not valid JSON"),
        ("a.toml", b"a = = 1", "not valid TOML"),
        ("a.json", b"[1]", "top level must be an object, got list"),
        ("a.json", b'{"inner": {"topSpeed": NaN}}', "topSpeed must be finite"),
        ("a.json", b'{"inner": {"topSpeed": 1e999}}', "topSpeed must be finite"),
        ("a.json", b"[" * 100_000, "not valid JSON"),
        ("a.json", b" " * ((1 << 20) + 1), "not a settings file"),
        ("a.json", b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        load_settings(Outer, path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such settings file"):
        load_settings(Outer, tmp_path / "none.json")
    with pytest.raises(ConfigError, match="not a plain file"):
        load_settings(Outer, tmp_path)


# --- snake_case, optional values, lists and ranges ---


def test_in_snake_case_keys_are_the_field_names():
    settings = load_settings(Outer, {"inner": {"top_speed": 1}, "is_loud": True}, "x", snake_case)
    assert settings == Outer(Inner(1.0, 3), is_loud=True)
    with pytest.raises(ConfigError, match=r"x: inner: unknown key 'topSpeed'\. Did you mean 'top_speed'"):
        load_settings(Outer, {"inner": {"topSpeed": 1}}, "x", snake_case)
    for key, spelling, wanted in (("pitSpeedLimit", snake_case, "pit_mps"), ("pit_mps", camel_case, "pitSpeedLimit")):
        with pytest.raises(ConfigError, match=f"x: unknown key '{key}'. Did you mean '{wanted}'"):
            build(Ranged, {key: 1}, "x", spelling)


def test_a_replaced_key_is_refused_with_what_to_write_instead():
    with pytest.raises(ConfigError) as caught:
        build(Ranged, {"portion": 1}, "x", snake_case)
    assert str(caught.value) == "x: unknown key 'portion'. Write share."


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"rate_limit": 3}, Wide(rate_limit=3.0)),
        ({"rate_limit": None, "mood": None, "widths": None}, Wide()),
        ({"mood": "wild"}, Wide(mood="wild")),
        ({"widths": [64, 32]}, Wide(widths=(64, 32))),
        ({"widths": []}, Wide(widths=())),
        ({"others": [{"num_laps": 1}, {}]}, Wide(others=(Inner(num_laps=1), Inner()))),
        ({"extra": {"a": [1, {"b": None}]}}, Wide(extra={"a": [1, {"b": None}]})),
    ],
)
def test_optional_values_lists_and_tables_are_accepted(data, expected):
    assert build(Wide, data, "x", snake_case) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"rate_limit": "fast"}, "x: rate_limit must be a number, got 'fast'"),
        ({"rate_limit": float("nan")}, "x: rate_limit must be finite"),
        ({"mood": "angry"}, "x: mood must be one of 'calm', 'wild', got 'angry'"),
        ({"widths": "64"}, "x: widths must be a list, got '64'"),
        ({"widths": [64, 2.5]}, r"x: widths\[1\] must be a whole number, got 2\.5"),
        ({"widths": [True]}, r"x: widths\[0\] must be a whole number"),
        ({"others": [{"num_lap": 1}]}, r"x: others\[0\]: unknown key 'num_lap'"),
        ({"extra": [1]}, "x: extra must be of type Mapping"),
        ({"k" * 500: 1}, "x: unknown key 'kkk"),
    ],
)
def test_a_bad_value_in_them_is_refused_with_its_position(data, words):
    with pytest.raises(ConfigError, match=words) as caught:
        build(Wide, data, "x", snake_case)
    assert len(str(caught.value)) < 200


def test_plain_data_leaves_out_none():
    plain = {"inner": {"top_speed": 2.5, "num_laps": 3}, "widths": [1, 2], "others": [], "extra": {"a": 1}}
    assert as_plain(Wide(widths=(1, 2), extra={"a": 1})) == plain
    assert as_plain(Outer(), camel_case) == {
        "inner": {"topSpeed": 2.5, "numLaps": 3}, "mode": "calm", "isLoud": False, "name": "x"
    }  # fmt: skip


@dataclass(frozen=True)
class Ranged:
    REPLACED_KEYS: ClassVar[Mapping[str, str]] = {"portion": "Write share."}

    share: float = setting(0.5, "A fraction.", config.FRACTION)
    rate: float | None = setting(None, "A rate.", config.POSITIVE)
    keep: int = setting(0, "A count.", config.NOT_NEGATIVE)
    widths: tuple[int, ...] = setting((1,), "Layers.", Range(1, 9))
    extra: Mapping[str, Any] = setting(dict, "Anything.")
    pit_mps: float = setting(20.0, "Speed limit in the pit.", Range(1, 30), unit="m/s", camel="pitSpeedLimit")

    def __post_init__(self) -> None:
        config.check_ranges(self)


def test_values_at_the_limits_of_their_ranges_are_accepted():
    assert Ranged(share=0, rate=1e-9, widths=(1, 9)) == Ranged(
        share=0.0, rate=1e-9, keep=0, widths=(1, 9), extra={}, pit_mps=20.0
    )
    assert Ranged(share=1.0, widths=()).rate is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"share": 1.5}, "share must be from 0 to 1, got 1.5."),
        ({"share": float("nan")}, "share must be from 0 to 1, got nan."),
        ({"rate": 0.0}, "rate must be more than 0, got 0.0."),
        ({"rate": float("-inf")}, "rate must be more than 0, got -inf."),
        ({"keep": -1}, "keep must be 0 or more, got -1."),
        ({"widths": (9, 10)}, "widths[1] must be from 1 to 9, got 10."),
        ({"pit_mps": 31.0}, "pit_mps must be from 1 to 30 m/s, got 31.0."),
    ],
)
def test_a_value_outside_its_range_is_refused(changes, words):
    with pytest.raises(ConfigError) as caught:
        Ranged(**changes)
    assert str(caught.value) == words


def test_a_value_outside_its_range_is_refused_by_the_key_that_was_written():
    for spelling, key in ((snake_case, "pit_mps"), (camel_case, "pitSpeedLimit")):
        with pytest.raises(ConfigError) as caught:
            build(Ranged, {key: 0.5}, "x", spelling)
        assert str(caught.value) == f"x: {key} must be from 1 to 30 m/s, got 0.5."

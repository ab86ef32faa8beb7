"""Strict loading: what is known is taken, everything else is refused by name."""

import json
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Literal

import pytest

from hotlap.config import camel_case, load_settings
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


def test_nothing_gives_the_defaults():
    assert load_settings(Outer, None) == Outer()
    assert load_settings(Outer, {}) == Outer()


def test_ready_made_settings_pass_through():
    settings = Outer(name="y")
    assert load_settings(Outer, settings) is settings


def test_keys_are_camel_case_and_missing_ones_take_defaults():
    assert load_settings(Outer, {"inner": {"topSpeed": 1}, "isLoud": True}) == Outer(Inner(1.0, 3), is_loud=True)


@pytest.mark.parametrize(("name", "key"), [("max_steps", "maxSteps"), ("progress", "progress"), ("a_b_c", "aBC")])
def test_camel_case(name, key):
    assert camel_case(name) == key


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"inner": {"topSped": 1.0}}, ["inner", "'topSped'", "Did you mean 'topSpeed'"]),
        ({"zzz": 1}, ["'zzz'", "Known keys: inner, mode, isLoud, name"]),
        ({"top_speed": 1}, ["'top_speed'"]),
        ({3: 1}, ["unknown key 3"]),
        ({"inner": 5}, ["inner must be an object", "5"]),
        ({"inner": None}, ["inner must be an object"]),
        ({"inner": {"topSpeed": "fast"}}, ["inner: topSpeed must be a number", "'fast'"]),
        ({"inner": {"topSpeed": True}}, ["topSpeed must be a number"]),
        ({"inner": {"topSpeed": None}}, ["topSpeed must be a number"]),
        ({"inner": {"topSpeed": float("nan")}}, ["topSpeed must be finite", "nan"]),
        ({"inner": {"topSpeed": float("-inf")}}, ["topSpeed must be finite", "-inf"]),
        ({"inner": {"topSpeed": 10**400}}, ["topSpeed must be finite"]),
        ({"inner": {"numLaps": 2.0}}, ["numLaps must be a whole number", "2.0"]),
        ({"inner": {"numLaps": False}}, ["numLaps must be a whole number"]),
        ({"mode": "angry"}, ["mode must be one of 'calm', 'wild'", "'angry'"]),
        ({"mode": ["calm"]}, ["mode must be one of"]),
        ({"isLoud": 1}, ["isLoud must be of type bool"]),
        ({"name": 1}, ["name must be of type str"]),
    ],
)
def test_a_bad_value_is_refused_by_its_key(data, words):
    with pytest.raises(ConfigError) as caught:
        load_settings(Outer, data)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("source", [5, [], 1.5, object()])
def test_what_is_no_settings_at_all_is_refused(source):
    with pytest.raises(ConfigError, match="must be a mapping or a path"):
        load_settings(Outer, source)


def test_json_and_toml_files_say_the_same(tmp_path):
    as_json, as_toml = tmp_path / "a.json", tmp_path / "a.toml"
    as_json.write_text(json.dumps({"inner": {"numLaps": 7}, "mode": "wild"}))
    as_toml.write_text('mode = "wild"\n[inner]\nnumLaps = 7\n')
    expected = Outer(Inner(num_laps=7), mode="wild")
    assert load_settings(Outer, as_json) == load_settings(Outer, str(as_toml)) == expected


def test_an_error_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"nam": "x"}')
    with pytest.raises(ConfigError, match=r"a\.json: unknown key 'nam'"):
        load_settings(Outer, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[1]", "top level must be an object, got list"),
        ('{"inner": {"topSpeed": NaN}}', "topSpeed must be finite"),
        ('{"inner": {"topSpeed": 1e999}}', "topSpeed must be finite"),
        ("[" * 100_000, "not valid JSON"),
        (" " * ((1 << 20) + 1), "no settings file"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_settings(Outer, path)


def test_a_broken_toml_file_is_refused(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("a = = 1")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(Outer, path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(Outer, path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such settings file"):
        load_settings(Outer, tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(Outer, tmp_path)


def test_settings_do_not_change_under_the_reader():
    with pytest.raises(FrozenInstanceError):
        load_settings(Outer, None).name = "z"  # type: ignore[misc]

"""Strict loading: what is known is taken, everything else is refused by name."""

import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hotlap.config import as_plain, build, camel_case, load_settings, read_mapping, snake_case, to_toml
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
    """What a run's settings need beside: a value that may be missing, a list, a table of anything."""

    inner: Inner = field(default_factory=Inner)
    rate_limit: float | None = None
    mood: Literal["calm", "wild"] | None = None
    widths: tuple[int, ...] | None = None
    others: tuple[Inner, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


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


# --- settings spelt as Python spells them, and written out again ---


def test_in_snake_case_keys_are_the_names_of_the_fields():
    assert load_settings(Outer, {"inner": {"top_speed": 1}, "is_loud": True}, "x", snake_case) == Outer(
        Inner(1.0, 3), is_loud=True
    )
    with pytest.raises(ConfigError, match=r"x: inner: unknown key 'topSpeed'\. Did you mean 'top_speed'"):
        load_settings(Outer, {"inner": {"topSpeed": 1}}, "x", snake_case)


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
def test_what_may_be_missing_lists_and_tables_are_taken(data, expected):
    assert build(Wide, data, "x", snake_case) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"rate_limit": "fast"}, "x: rate_limit must be a number, got 'fast'"),
        ({"rate_limit": float("nan")}, "x: rate_limit must be finite"),
        ({"mood": "angry"}, "x: mood must be one of 'calm', 'wild', got 'angry'"),
        ({"widths": 64}, "x: widths must be a list, got 64"),
        ({"widths": "64"}, "x: widths must be a list, got '64'"),
        ({"widths": [64, 2.5]}, r"x: widths\[1\] must be a whole number, got 2\.5"),
        ({"widths": [True]}, r"x: widths\[0\] must be a whole number"),
        ({"others": [{"num_lap": 1}]}, r"x: others\[0\]: unknown key 'num_lap'"),
        ({"extra": [1]}, "x: extra must be of type Mapping"),
        ({"k" * 500: 1}, "x: unknown key 'kkk"),
    ],
)
def test_what_does_not_fit_these_is_refused_by_its_place(data, words):
    with pytest.raises(ConfigError, match=words) as caught:
        build(Wide, data, "x", snake_case)
    assert len(str(caught.value)) < 200


def test_plain_data_leaves_out_what_is_not_there():
    assert as_plain(Wide(widths=(1, 2), extra={"a": 1})) == {
        "inner": {"top_speed": 2.5, "num_laps": 3},
        "widths": [1, 2],
        "others": [],
        "extra": {"a": 1},
    }


def test_toml_is_written_as_a_person_would():
    data = {"name": "x", "rate": 3e-4, "widths": [64, 32], "on": True, "world": {"track": "t", "config": {"a": 1}}}
    assert to_toml(data) == (
        'name = "x"\nrate = 0.0003\nwidths = [64, 32]\non = true\n\n[racer]\ntrack = "t"\n\n[racer.config]\na = 1\n'
    )


PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), PLAIN, max_size=4))
@example({"\x7f": "\x7f\\\n", "\U0001f3ce": {}, "": [{"a b": []}], "a": {"b": {"c": 1e300}}})
def test_what_is_written_as_toml_is_read_back_the_same(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "a.toml"
    path.write_text(to_toml(data), encoding="utf-8", newline="\n")
    # As JSON, which tells 1 from 1.0 and true, and -0.0 from 0.0.
    assert json.dumps(read_mapping(path), sort_keys=True) == json.dumps(data, sort_keys=True)


@pytest.mark.parametrize("value", [None, b"x", {1, 2}, object()])
def test_what_toml_has_no_word_for_is_refused(value):
    with pytest.raises(ConfigError, match="cannot be written"):
        to_toml({"a": {"b": [value]}})

"""Documents are written whole or not at all, and read back only as they were meant."""

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import ConfigError, InputFileError, ModelError, OutputFileError
from hotlap.training.run_files import json_documents as documents
from hotlap.training.run_files.json_documents import (
    build_record,
    check_utc,
    open_section,
    plain,
    read_document,
    utc_text,
    write_document,
)


@dataclass(frozen=True)
class Inner:
    num_laps: int
    share: float | None


@dataclass(frozen=True)
class Outer:
    name: str
    inners: tuple[Inner, ...]
    is_clean: bool | None = None


def test_a_document_comes_back_as_it_went(tmp_path):
    document = {"a": [1, 2.5, None, True, "ä\n"], "b": {"0.1": 0.1}}
    write_document(tmp_path / "a.json", document)
    assert read_document(tmp_path / "a.json") == document
    write_document(tmp_path / "a.json", {}, indent=2)
    assert read_document(tmp_path / "a.json") == {}


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (Path, "open")])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, owner, name):
    path = tmp_path / "a.json"
    write_document(path, {"old": 1})

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OutputFileError, match=r"a\.json: cannot be written \(No space left on device\)"):
        write_document(path, {"new": 2})
    monkeypatch.undo()
    assert read_document(path) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_no_draft(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_document(tmp_path / "a.json", {})
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    steps = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (steps.append("name"), replace(path, to)))
    write_document(tmp_path / "a.json", {})
    assert steps[:2] == ["sync", "name"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    for path in (tmp_path / "none" / "a.json", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(OutputFileError, match="cannot be written"):
            write_document(path, {})
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_none_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_document(tmp_path / "a.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": "\xff"}', "utf-8"),
        (b"[1]", "top level must be an object, got list"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}") as caught:
        read_document(path)
    assert "\n" not in str(caught.value)


def test_a_missing_a_huge_and_an_unreadable_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputFileError, match=r"none\.json: no such file"):
        read_document(tmp_path / "none.json")
    with pytest.raises(ModelError, match="cannot be read"):
        read_document(tmp_path)
    (tmp_path / "a.json").write_text("{ }")
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 2)
    with pytest.raises(ModelError, match="larger than 2 bytes"):
        read_document(tmp_path / "a.json")


def test_a_document_has_its_one_title():
    assert open_section({"title": {"a": 1}}, "title", "x.json") == {"a": 1}
    for wrong in ({}, {"other": {}}, {"title": {}, "more": 1}, {"title": [1]}):
        with pytest.raises(ModelError, match=r"x\.json: must be an object with the one key 'title'"):
            open_section(wrong, "title", "x.json")


def test_a_record_is_built_from_plain_data_and_becomes_it_again():
    record = Outer("x", (Inner(1, 0.5), Inner(2, None)))
    data = {"name": "x", "inners": [{"num_laps": 1, "share": 0.5}, {"num_laps": 2, "share": None}], "is_clean": None}
    assert plain(record) == data
    assert build_record(Outer, json.loads(json.dumps(data)), "x.json") == record


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "x.json must be an object, got None"),
        ({"name": "x"}, "x.json: incomplete .*inners"),
        ({"name": "x", "inners": [{"num_laps": 1}]}, "x.json: incomplete .*share"),
        ({"name": "x", "inners": [], "nam": 1}, "unknown key 'nam'. Did you mean 'name'"),
        ({"name": 1, "inners": []}, "name must be of type str, got 1"),
        ({"name": "x", "inners": {}}, "inners must be a list"),
        ({"name": "x", "inners": [{"num_laps": 1.5, "share": 0}]}, r"inners\[0\]: num_laps must be a whole number"),
        ({"name": "x", "inners": [{"num_laps": 1, "share": "0"}]}, "share must be a number"),
        ({"name": "x", "inners": [], "is_clean": 1}, "is_clean must be of type bool"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_by_its_key(data, words):
    with pytest.raises(ModelError, match=words):
        build_record(Outer, data, "x.json")


def test_numpys_numbers_become_plain_ones_and_none_where_they_are_none():
    values = [np.float32(0.5), np.float64("nan"), np.int64(3), np.bool_(True), float("inf"), (1, 2), {1: None}]
    assert plain(values) == [0.5, None, 3, True, None, [1, 2], {"1": None}]
    assert [type(value) for value in plain(values)[:4]] == [float, type(None), int, bool]


@pytest.mark.parametrize("value", [object(), {1, 2}, np.zeros(2), Outer])
def test_what_json_has_no_word_for_is_refused(value):
    with pytest.raises(ModelError, match=r"results: policy: .*JSON has no word for"):
        plain({"policy": value}, "results")


def test_times_are_utc():
    assert utc_text(0.0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(1_767_323_045.678) == "2026-01-02T03:04:05.678Z"
    check_utc("start", utc_text(1e9))
    check_utc("start", "2026-01-02T03:04:05Z")
    for text in ("2026-01-02T03:04:05", "2026-01-02T03:04:05+01:00", "yesterday", "", "2026-01-02T03:04:05Z\n"):
        with pytest.raises(ConfigError, match="start must be a time in UTC"):
            check_utc("start", text)

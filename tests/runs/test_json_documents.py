"""Documents are written whole or not at all, and read back with every key and type checked."""

import errno
import json
import os
from typing import ClassVar
from unittest.mock import Mock

import numpy as np
import pytest

from hotlap.errors import InputFileError, ModelError, OutputFileError
from hotlap.runs import json_documents as documents
from hotlap.runs.json_documents import Document, Record, UtcTime, build_record, to_plain, utc_text


class Inner(Record, frozen=True):
    num_laps: int
    share: float | None


class Outer(Document, frozen=True, omit_defaults=True):
    title: ClassVar[str] = "outer"

    name: str
    inners: tuple[Inner, ...]
    is_clean: bool | None = None


OUTER = Outer("ä\n", (Inner(1, 0.1), Inner(2, None)))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_saved_document_is_an_object_under_its_title_and_read_back_equal(tmp_path, monkeypatch, indent):
    monkeypatch.setattr(Outer, "indent", indent)
    OUTER.save(tmp_path / "a.json")
    assert Outer.load(tmp_path / "a.json") == Outer.from_dict(OUTER.to_dict()) == OUTER
    inners = [{"num_laps": 1, "share": 0.1}, {"num_laps": 2, "share": None}]
    assert OUTER.to_dict() == {"outer": {"name": "ä\n", "inners": inners}}  # no defaults
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == OUTER.to_dict()


def test_a_failed_write_leaves_the_old_document(tmp_path, monkeypatch):
    OUTER.save(tmp_path / "a.json")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OutputFileError, match=r"a\.json: cannot be written \(No space left on device\)"):
        Outer("new", ()).save(tmp_path / "a.json")
    assert Outer.load(tmp_path / "a.json") == OUTER
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": 1e999}', "Number out of range"),
        (b'{"a": "\xff"}', "utf-8"),
        (b"[1]", "top level must be an object, got list"),
        (b"[" * 100_000, "not valid JSON"),
        (b"{}", "one key 'outer', got ''"),
        (b'{"other": {}}', "one key 'outer', got 'other'"),
        (b'{"outer": {}, "more": 1}', "one key 'outer', got 'outer, more'"),
        (b'{"outer": {"name": "x", "inners": [{"num_laps": 1}]}}', r"missing .*`share` - at `\$\.inners\[0\]`"),
        (b'{"outer": {"name": "x", "inners": [], "nam": 1}}', "unknown field `nam`"),
        (b'{"outer": {"name": 1, "inners": []}}', r"Expected `str`, got `int` - at `\$\.name`"),
        (b'{"outer": {"name": "x", "inners": [{"num_laps": true, "share": 0}]}}', "Expected `int`, got `bool`"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_file_and_key(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}") as caught:
        Outer.load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_a_huge_and_an_unreadable_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputFileError, match=r"none\.json: no such file"):
        Outer.load(tmp_path / "none.json")
    with pytest.raises(ModelError, match="cannot be read"):
        Outer.load(tmp_path)
    (tmp_path / "a.json").write_text("{ }")
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 2)
    with pytest.raises(ModelError, match="larger than 2 bytes"):
        Outer.load(tmp_path / "a.json")


def test_numbers_become_plain_and_nan_and_infinity_null():
    values = [np.float32(0.5), np.float64("nan"), np.int64(3), np.bool_(True), float("inf"), (1, 2), {1: None}]
    assert to_plain(values) == [0.5, None, 3, True, None, [1, 2], {"1": None}]
    assert isinstance(build_record(Inner, {"num_laps": 1, "share": 1}, "x").share, float)


@pytest.mark.parametrize("value", [object(), np.zeros(2), Outer])
def test_values_that_json_cannot_hold_are_refused(value):
    with pytest.raises(ModelError, match="which JSON cannot hold"):
        to_plain({"policy": value})


def test_times_are_utc():
    assert utc_text(0.0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(1_767_323_045.678) == "2026-01-02T03:04:05.678Z"
    for text in (utc_text(1e9), "2026-01-02T03:04:05Z"):
        assert build_record(UtcTime, text, "start") == text
    for text in ("2026-01-02T03:04:05", "2026-01-02T03:04:05+01:00", "yesterday", "", "2026-01-02T03:04:05Z\n"):
        with pytest.raises(ModelError, match="start: Expected `str` matching regex"):
            build_record(UtcTime, text, "start")

"""JSON that comes back exactly as it went in, or is refused."""

import numpy as np
import pytest

from hotlap.errors import ArchiveError
from hotlap.models.strict_json import from_json, to_json


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"a": [1.0, float("nan")]}, r"config\.json\['a'\]\[1\] is nan; .* Use null"),
        ({"a": float("-inf")}, r"config\.json\['a'\] is -inf"),
        ({1: 2}, r"config\.json has the key 1\. Use text"),
        ({"a": {"\ud800": 1}}, r"config\.json\['a'\] has the key '\\ud800'"),
        ("\ud83d\ude00", r"config\.json is '\\ud83d\\ude00' \(str\)"),
        ({"a": np.float32(1.0)}, r"\(float32\)"),
        ({"a": {1, 2}}, r"\(set\)"),
        (10**5000, r"cannot be written as JSON"),
    ],
    ids=["NaN", "infinity", "number as key", "surrogate key", "surrogates", "NumPy number", "set", "huge integer"],
)
def test_data_that_json_would_change_is_refused(data, text):
    with pytest.raises(ArchiveError, match=text):
        to_json(data, "config.json")


def test_a_list_inside_itself_is_refused():
    circle: list = []
    circle.append(circle)
    with pytest.raises(ArchiveError, match="not nested as deep"):
        to_json(circle, "config.json")


BAD_JSON = [
    *(b"", b"{", b"{} {}", b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b"\xef\xbb\xbf{}", b'"\xff"'),
    *(b"NaN", b"-Infinity", b"1e999", b"01", b"9" * 5000, b'"\\ud800"', b'{"\\ud800":1}'),
    *(b"[" * 100_000, b"[" * 65 + b"]" * 65),
]


@pytest.mark.parametrize("text", BAD_JSON, ids=lambda text: repr(text[:16]))
def test_bad_json_is_refused_in_one_line(text):
    with pytest.raises(ArchiveError, match=r"^config\.json[^\n]*\.$"):
        from_json(text, "config.json")


def test_equal_data_give_equal_ascii():
    assert to_json({"b": "é", "a": (1, 2.5, None)}, "x") == b'{"a":[1,2.5,null],"b":"\\u00e9"}'
    assert from_json('{"b": "é", "a": [1, 2.5, null]}'.encode(), "x") == {"a": [1, 2.5, None], "b": "é"}

"""JSON that comes back exactly as it went in: finite numbers, text keys without duplicates, limited depth."""

import json
import math
from typing import Any

from hotlap.errors import ArchiveError

MAX_DEPTH = 64  # of nested lists and objects
_ALWAYS_FINE = (int, bool, type(None))


def to_json(data: Any, where: str) -> bytes:
    """Compact ASCII JSON with sorted keys; data that JSON would change or drop are refused."""
    if flaw := _find_flaw(data):
        raise ArchiveError(f"{where}{flaw}")
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError as error:  # an integer of thousands of digits
        raise ArchiveError(f"{where} cannot be written as JSON: {error}.") from None


def from_json(text: bytes, where: str) -> Any:
    """The data in a JSON text that `to_json` could have been given."""
    try:
        data = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ArchiveError(f"{where} is not valid JSON ({reason:.80}).") from None
    if flaw := _find_flaw(data):
        raise ArchiveError(f"{where}{flaw}")
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _find_flaw(value: Any, depth: int = 0) -> str:
    """What JSON would drop or change, and where: NaN, keys that are not text, unpaired surrogates."""
    if value is None or isinstance(value, int) or (isinstance(value, str) and _is_text(value)):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f" is {value}; JSON holds finite numbers only. Use null (None)."
    if not isinstance(value, dict | list | tuple) or depth == MAX_DEPTH:
        return f" is {value!a:.40} ({type(value).__name__}) at depth {depth}. Use plain JSON data, not nested as deep."
    is_object = isinstance(value, dict)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if is_object and not (isinstance(key, str) and _is_text(key)):
            return f" has the key {key!a:.40}. Use text for keys."
        if type(item) not in _ALWAYS_FINE and (flaw := _find_flaw(item, depth + 1)):
            return f"[{key!a:.40}]{flaw}"
    return ""


def _is_text(value: str) -> bool:
    """Whether the text has no unpaired surrogate, which UTF-8 cannot encode."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)

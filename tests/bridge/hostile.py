"""A seeded generator of invalid and hostile messages, with valid ones among them."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from hotlap.bridge.protocol import Frame

VALID = [
    {"type": "hello"},
    {"type": "hello", "binary": True},
    {"type": "reset"},
    {"type": "reset", "numEnvs": 3},
    {"type": "step", "action": [0.1, 1.0, 0.0]},
    {"type": "step", "action": [[0.1, 1.0, 0.0]] * 3},
    {"type": "get_state"},
    {"type": "set_state", "state": {"lap": [1]}, "first": 1},
    {"type": "reset", "numEnvs": 3, "actionRepeat": 4, "observation": "road"},
    {"type": "reset", "numEnvs": 3, "race": {"laps": 1, "grid": [2, 0, 1]}},
    {"type": "close"},
]
UNKNOWN_TYPES = ["", "jump", "RESET", "__init__", "step ", "x" * 5000, "\u0000"]
ODD_NUMBERS = ["NaN", "-NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "1e-400", "-0", "0x10", "1_0", "01",
               "9" * 400, "1." + "3" * 2000, "-1", "2.5", "1e", "+1", ".5", "18446744073709551616"]  # fmt: skip
PATTERNS = ['{"type":"step","action":[%s,0,0]}', '{"type":"step","action":[0,0,%s]}', '{"type":"reset","seed":%s}',
            '{"type":"reset","numEnvs":%s}', '{"type":"reset","config":{"weights":{"progress":%s}}}',
            '{"type":"reset","config":{"episode":{"maxSteps":%s}}}', '{"type":"reset","numEnvs":2,"race":{"laps":%s}}',
            '{"type":"reset","numEnvs":2,"race":{"grid":[0,%s]}}', '{"type":"step","action":[[0,0,0],[%s,0,0]]}',
            '{"type":%s}', "%s"]  # fmt: skip
ODD_VALUES: list[Any] = [None, True, [], {}, "", "a", 0, -1, 1.5, 2**70, [None], [[]], [[[]]], {"a": {}}, "\ud800",
                         "\0", "x" * 300, [0] * 300, [[0, 0]] * 5]  # fmt: skip
PATHS = ["../track-01", "/etc/passwd", "..\\..\\x", "track-01/../track-02", "file:///etc/passwd", "C:\\x", "~/.ssh/id",
         "track-01\0", "TRACK-01", " track-01", "%2e%2e", "con"]  # fmt: skip
CONFIGS: list[Any] = ["ai-config.json", "/etc/passwd", 5, [], [{}], True, {"weights": None}, {"weights": []}, {"a": 1},
                      {"weights": {"progress": "1"}}, {"weights": {"progress": 1e300}}, {"episode": {"maxSteps": 0}},
                      {"episode": {"maxSteps": 2**40}}, {"episode": {"start": "../x"}}, {"episode": {"numGates": 3}},
                      {"weights": {"progress": 2**2000}}, {"__class__": {}}, {"weights": {"__init__": 1}}]  # fmt: skip


def messages(seed: int, count: int) -> Iterator[Frame]:
    """Yield `count` messages, determined by `seed`."""
    rng = np.random.default_rng(seed)
    makers, fractions = zip(
        (_valid, 8.0),
        (_broken, 6.0),
        (_deep, 1.0),
        (_number, 6.0),
        (_wrong_type, 8.0),
        (lambda rng: _text({"type": "reset", "trackId": _pick(rng, PATHS)}), 3.0),
        (lambda rng: _text({"type": "reset", "config": _pick(rng, CONFIGS)}), 5.0),
        (lambda rng: _text({"type": _pick(rng, UNKNOWN_TYPES)}), 3.0),
        (lambda rng: Frame(rng.bytes(int(rng.integers(0, 200)))), 3.0),  # noise
        (lambda rng: Frame(rng.bytes(_pick(rng, [0, 1, 11, 12, 13, 36, 4096])), is_binary=True), 3.0),
        (lambda rng: Frame(b'{"type":"reset","x":"%s"}' % (b"x" * _pick(rng, [65_536, 100_000, 2_000_000]))), 0.1),
        strict=True,
    )
    for kind in rng.choice(len(makers), count, p=np.array(fractions) / sum(fractions)):
        yield makers[kind](rng)


def _pick(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[rng.integers(len(values))]


def _text(value: Any) -> Frame:
    return Frame(json.dumps(value).encode())


def _valid(rng: np.random.Generator) -> Frame:
    return _text(_pick(rng, VALID))


def _broken(rng: np.random.Generator) -> Frame:
    """A valid message cut, doubled, or with some bytes changed."""
    data = bytearray(_valid(rng).data)
    match rng.integers(3):
        case 0:
            return Frame(bytes(data[: rng.integers(len(data))]))
        case 1:
            return Frame(bytes(data + data))
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(len(data))] = rng.integers(256)
    return Frame(bytes(data))


def _deep(rng: np.random.Generator) -> Frame:
    depth = int(rng.integers(100, 10_000))
    opening, closing = _pick(rng, [("[", "]"), ('{"a":', "}")])
    inner = opening * depth + "1" + closing * (depth if rng.random() < 0.5 else 0)
    field = _pick(rng, ["config", "action", "trackId", "extra"])
    return Frame(f'{{"type":"{_pick(rng, ["reset", "step"])}","{field}":{inner}}}'.encode())


def _number(rng: np.random.Generator) -> Frame:
    number = _pick(rng, ODD_NUMBERS)
    return Frame((_pick(rng, PATTERNS) % number).encode())


def _wrong_type(rng: np.random.Generator) -> Frame:
    message = dict(_pick(rng, VALID))
    field = _pick(
        rng,
        [
            "type",
            "action",
            "trackId",
            "config",
            "seed",
            "numEnvs",
            "start",
            "binary",
            "observation",
            "actionRepeat",
            "race",
            "state",
            "first",
        ],
    )
    message[field] = _pick(rng, ODD_VALUES)
    return _text(message)

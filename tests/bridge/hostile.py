"""A seeded source of messages that no friendly client would send, with good ones among them."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from hotlap.bridge.protocol import Frame

GOOD = [
    {"type": "hello"},
    {"type": "hello", "binary": True},
    {"type": "reset"},
    {"type": "reset", "numEnvs": 3},
    {"type": "step", "action": [0.1, 1.0, 0.0]},
    {"type": "step", "action": [[0.1, 1.0, 0.0]] * 3},
    {"type": "close"},
]
ODD_NUMBERS = ["NaN", "-NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "1e-400", "-0", "0x10", "1_0", "01",
               "9" * 400, "1." + "3" * 2000, "-1", "2.5", "1e", "+1", ".5", "18446744073709551616"]  # fmt: skip
ODD_VALUES: list[Any] = [None, True, [], {}, "", "a", 0, -1, 1.5, 2**70, [None], [[]], [[[]]], {"a": {}}, "\ud800",
                         "\0", "x" * 300, [0] * 300, [[0, 0]] * 5]  # fmt: skip
PATHS = ["../track-01", "/etc/passwd", "..\\..\\x", "track-01/../track-02", "file:///etc/passwd", "C:\\x", "~/.ssh/id",
         "track-01\0", "TRACK-01", " track-01", "%2e%2e", "con"]  # fmt: skip
CONFIGS: list[Any] = ["ai-config.json", "/etc/passwd", 5, [], [{}], True, {"weights": None}, {"weights": []}, {"a": 1},
                      {"weights": {"progress": "1"}}, {"weights": {"progress": 1e300}}, {"episode": {"maxSteps": 0}},
                      {"episode": {"maxSteps": 2**40}}, {"episode": {"start": "../x"}}, {"episode": {"numGates": 3}},
                      {"weights": {"progress": 2**2000}}, {"__class__": {}}, {"weights": {"__init__": 1}}]  # fmt: skip


def messages(seed: int, count: int) -> Iterator[Frame]:
    """`count` messages, a function of `seed`."""
    rng = np.random.default_rng(seed)
    makers = [_good, _broken, _deep, _number, _wrong_type, _path, _config, _noise, _binary, _oversized, _unknown]
    shares = np.array([8, 6, 1, 6, 8, 3, 5, 3, 3, 0.1, 3])
    for kind in rng.choice(len(makers), count, p=shares / shares.sum()):
        yield makers[kind](rng)


def _pick(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[rng.integers(len(values))]


def _text(value: Any) -> Frame:
    return Frame(json.dumps(value).encode())


def _good(rng: np.random.Generator) -> Frame:
    return _text(_pick(rng, GOOD))


def _broken(rng: np.random.Generator) -> Frame:
    """A good message cut, doubled, or with some bytes changed."""
    data = bytearray(_good(rng).data)
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
    pattern = _pick(
        rng,
        [
            '{"type":"step","action":[%s,0,0]}',
            '{"type":"step","action":[0,0,%s]}',
            '{"type":"reset","seed":%s}',
            '{"type":"reset","numEnvs":%s}',
            '{"type":"reset","config":{"weights":{"progress":%s}}}',
            '{"type":"reset","config":{"episode":{"maxSteps":%s}}}',
            '{"type":%s}',
            "%s",
        ],
    )
    return Frame((pattern % number).encode())


def _wrong_type(rng: np.random.Generator) -> Frame:
    message = dict(_pick(rng, GOOD))
    field = _pick(rng, ["type", "action", "trackId", "config", "seed", "numEnvs", "start", "binary"])
    message[field] = _pick(rng, ODD_VALUES)
    return _text(message)


def _path(rng: np.random.Generator) -> Frame:
    return _text({"type": "reset", "trackId": _pick(rng, PATHS)})


def _config(rng: np.random.Generator) -> Frame:
    return _text({"type": "reset", "config": _pick(rng, CONFIGS)})


def _noise(rng: np.random.Generator) -> Frame:
    return Frame(rng.bytes(int(rng.integers(0, 200))))


def _binary(rng: np.random.Generator) -> Frame:
    data = rng.bytes(int(_pick(rng, [0, 1, 11, 12, 13, 36, 4096])))
    return Frame(data, is_binary=True)


def _oversized(rng: np.random.Generator) -> Frame:
    return Frame(b'{"type":"reset","x":"' + b"x" * int(_pick(rng, [65_536, 100_000, 2_000_000])) + b'"}')


def _unknown(rng: np.random.Generator) -> Frame:
    return _text({"type": _pick(rng, ["", "jump", "RESET", "__init__", "step ", "x" * 5000, "\u0000"])})

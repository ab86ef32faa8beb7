"""A seeded generator of hostile HTTP requests, with harmless ones among them. None of them may change anything."""

import base64
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotlap.web.replay_format import Replay

NAMES = ["..", "../..", "../server.py", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "....//", "/etc/passwd", "%00", "a%00b",
         "~", "con", "C:%5cx", "..%5c..%5cx", "%ff%fe", "%c0%ae%c0%ae", "x" * 3000, "%25%32%65", ";ls", "'", "%22", "*",
         "-1", "1e9", "0x10", "99999999999999999999", "NaN", "link", "linked-run", "secret.txt", "%E2%80%AE", ".",
         "track-01%2f..%2ftrack-02", "run:..%2f..", "run:link@1", "run:linked-run", "run:a@-1", "__init__.py",
         "track-01.track%00", "board.sqlite3", "..%2fboard.sqlite3"]  # fmt: skip
ROUTES = ["/", "/{}", "/data/{}", "/js/{}", "/api/{}", "/api/tracks/{}", "/api/tracks/{}/centreline.csv",
          "/api/tracks/{}/optimal", "/api/drivers/{}/policy", "/api/drivers/{}/replay?track={}", "/api/replays/{}",
          "/api/runs/{}", "/api/runs/{}/events", "/api/runs/{}/checkpoints/{}/policy", "/api/board?track={}",
          "/api/drivers?track={}", "/api/replays/1?form={}", "/api/board/{}",
          "/api/board?track=track-01&day={}", "/api/replays/AAAAAAAAAAAAAAAA?form={}", "/../{}", "//{}"]  # fmt: skip
HARMLESS = ["/api/status", "/api/tracks", "/api/board?track=track-01", "/api/drivers?track=track-01", "/api/runs",
            "/data/tracks.json", "/sim.json", "/api/tracks/track-01/optimal", "/api/replays/1"]  # fmt: skip
POSTS = ["/api/board", "/api/board/name", "/api/replays", "/api/tracks", "/api/drawings/check",
         "/api/replays/check", "/api/runs", "/api/runs/x/stop",
         "/api/runs/x/resume", "/api/tracks/nowhere/optimal", "/api/track-files", "/api/status",
         "/api/nothing", "/"]  # fmt: skip
ODD: list[Any] = [None, True, False, 0, -1, 1.5, 2**70, 1e308, "", "x", "../x", "\0", "\ud800", "\u202e", "x" * 500, [],
                  {}, [[]], [None], {"a": {}}, [[0, 0]] * 30, ["track-01"], "__class__"]  # fmt: skip
FIELDS = ["track", "driver", "replay", "driver_id", "id", "points", "width_m", "centreline", "replace", "name",
          "content", "steps", "seed", "recipe", "device", "__proto__"]  # fmt: skip
METHODS = ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "GETT", "post"]
ORIGINS = ["http://example.org", "null", "file://", "http://127.0.0.1", "https://localhost:1", "http://[bad", "\x00"]
HOSTS = [
    "example.org",
    "example.org:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost.example.org:{port}",
    "",
    "[",
    "a b",
]


LAP_TIME_AT = 34  # in the bytes of a replay


@dataclass(frozen=True)
class HostileRequest:
    """One request; `headers` may hold {port}."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


class Attacker:
    """Makes requests from a seed and a real replay."""

    def __init__(self, seed: int, replay: Replay) -> None:
        self._rng = np.random.default_rng(seed)
        self._replay, self._content, self._text = replay, replay.to_bytes(), replay.to_text()

    def requests(self, count: int) -> Iterator[HostileRequest]:
        """Yield `count` requests."""
        makers: list[tuple[Callable[[], HostileRequest], float]] = [
            (self._harmless, 2.0),
            (self._path, 6.0),
            (self._odd_body, 5.0),
            (self._noise_body, 3.0),
            (self._forged_replay, 5.0),
            (self._forged_track, 2.0),
            (self._foreign, 4.0),
            (self._wrong_method, 2.0),
            (self._wrong_size, 1.0),
            (self._deep, 0.5),
        ]
        fractions = np.array([fraction for _, fraction in makers])
        for kind in self._rng.choice(len(makers), count, p=fractions / fractions.sum()):
            yield makers[kind][0]()

    def _pick(self, values: list[Any]) -> Any:
        return values[self._rng.integers(len(values))]

    def _harmless(self) -> HostileRequest:
        return HostileRequest("GET", self._pick(HARMLESS), {})

    def _path(self) -> HostileRequest:
        route = self._pick(ROUTES)
        return HostileRequest("GET", route.format(*(self._pick(NAMES) for _ in range(2))), {})

    def _post(self, target: str, body: bytes) -> HostileRequest:
        return HostileRequest("POST", target, {"Content-Type": "application/json"}, body)

    def _odd_body(self) -> HostileRequest:
        body = {self._pick(FIELDS): self._pick(ODD) for _ in range(self._rng.integers(0, 6))}
        return self._post(self._pick(POSTS), json.dumps(body).encode())

    def _noise_body(self) -> HostileRequest:
        match self._rng.integers(3):
            case 0:
                body = self._rng.bytes(int(self._rng.integers(0, 300)))
            case 1:
                body = self._pick(
                    [b"", b"{", b"[1,2", b'{"track":', b"NaN", b'{"points":[[1e999,0]]}', b"\xef\xbb\xbf{}"]
                )
            case _:
                good = bytearray(json.dumps({"track": "nowhere", "replay": "SExSMQ", "driver": "x"}).encode())
                for _ in range(self._rng.integers(1, 5)):
                    good[self._rng.integers(len(good))] = self._rng.integers(256)
                body = bytes(good)
        return self._post(self._pick(POSTS), body)

    def _forged_replay(self) -> HostileRequest:
        text = base64.urlsafe_b64encode(self._forge()).rstrip(b"=").decode()
        if self._rng.random() < 0.1:
            text = text[: self._rng.integers(len(text))] + self._pick(["", "=", "+", " ", "\0", "é"])
        if self._rng.random() < 0.3:
            return self._post("/api/replays/check", json.dumps({"replay": text}).encode())
        body = {"track": self._pick(["track-01", "track-02", "nowhere"]), "driver": "Eve", "replay": text}
        return self._post("/api/board", json.dumps(body).encode())

    def _forge(self) -> bytes:
        """Bytes that are almost the replay of a real lap, but claim what was not driven."""
        content = bytearray(self._content)
        match self._rng.integers(6):
            case 0:  # another time
                faster = self._replay.lap_time_s * np.float32(self._rng.uniform(0.5, 0.999))
                return self._claiming(np.float32(faster))
            case 1:  # a changed header; the seed is left alone, since a standing start does not depend on it
                place = int(self._pick([*range(4, 22), *range(30, 40)]))
                content[place] ^= int(self._rng.integers(1, 256))
                return bytes(content)
            case 2:  # changed inputs, and a time that they do not drive
                content = bytearray(self._claiming(np.float32(20.0)))
                for _ in range(self._rng.integers(1, 20)):
                    content[self._rng.integers(40, len(content))] = self._rng.integers(256)
                return bytes(content)
            case 3:  # cut off
                return bytes(content[: self._rng.integers(len(content))])
            case 4:  # a bomb
                compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
                body = compressor.compress(bytes(int(self._rng.integers(1, 2_000_000)))) + compressor.flush()
                return bytes(content[:30]) + struct.pack("<IfH", 36_000, 20.0, 1) + body
            case _:
                return b"HLR1" + self._rng.bytes(int(self._rng.integers(0, 400)))

    def _claiming(self, lap_time_s: np.float32) -> bytes:
        """The real replay with another lap time: it stands in the header, so nothing is compressed again."""
        content = bytearray(self._content)
        struct.pack_into("<f", content, LAP_TIME_AT, lap_time_s)
        return bytes(content)

    def _forged_track(self) -> HostileRequest:
        num_points = int(self._rng.integers(0, 60))
        points: list[Any] = self._rng.normal(0.0, self._pick([0.0, 1.0, 1e4, 1e300]), (num_points, 2)).tolist()
        if points and self._rng.random() < 0.3:
            points[self._rng.integers(num_points)] = self._pick(ODD)
        body: dict[str, Any] = {"points": points, "width_m": self._pick([12.0, 12.0, -1, 0, 1e9, "x", None])}
        if self._rng.random() < 0.5:
            body["id"] = self._pick(["../x", "track-01", "", "x/y", "A", None, "train-000"])
            return self._post("/api/tracks", json.dumps(body).encode())
        return self._post("/api/drawings/check", json.dumps(body).encode())

    def _foreign(self) -> HostileRequest:
        """A good request of a foreign page; if it were let in, it would start a run or enter a lap."""
        headers = {"Content-Type": "application/json"}
        if self._rng.random() < 0.5:
            headers["Origin"] = self._pick(ORIGINS)
        else:
            headers["Host"] = self._pick(HOSTS)
        body = {"track": "track-01", "driver": "Eve", "replay": self._text}
        if self._rng.random() < 0.3:
            return HostileRequest("POST", "/api/runs", headers, b'{"track":"track-01"}')
        return HostileRequest("POST", "/api/board", headers, json.dumps(body).encode())

    def _wrong_method(self) -> HostileRequest:
        return HostileRequest(self._pick(METHODS), self._pick([*HARMLESS, *POSTS]), {}, b"{}")

    def _wrong_size(self) -> HostileRequest:
        size = int(self._pick([5_000, 140_000, 600_000]))
        return self._post(self._pick(POSTS), b'{"replay":"' + b"A" * size + b'"}')

    def _deep(self) -> HostileRequest:
        opening = self._pick([b"[", b'{"a":', b'{"points":['])
        return self._post(self._pick(POSTS), opening * int(self._rng.integers(10, 900)))

"""The replay format: inputs tick by tick with the road, the physics and the lap they claim, as bytes and as text.

`docs/web-api.md` describes it byte by byte.
"""

import base64
import binascii
import re
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ReplayError
from hotlap.sim.version import PHYSICS_VERSION

MAGIC = b"HLR1"
QUANTISED, EXACT = 0, 1  # encodings
LINK_ENCODINGS = (2, 3)  # of links that hold a replay, which only the page reads
MAX_TICKS = 36_000  # ten minutes
MAX_REPLAY_BYTES = 1 << 18
MAX_TEXT_CHARS = (MAX_REPLAY_BYTES * 4 + 2) // 3
STEER_STEPS = 127
PEDAL_STEPS = 255

_SCALE = np.array([STEER_STEPS, PEDAL_STEPS, PEDAL_STEPS], np.float32)
_HEAD = struct.Struct("<4sBBH6s8sQIfH")
_START_ON_LINE = 0
_MAX_RUN = 255
_RUN_BYTES = {QUANTISED: 4, EXACT: 13}
_PHYSICS = re.compile(r"(\d{1,5})-([0-9a-f]{12})", re.ASCII)
_TRACK_DIGEST = re.compile(r"[0-9a-f]{16}", re.ASCII)

Actions = NDArray[np.float32]  # (num_ticks, 3): steer, throttle, brake


@dataclass(frozen=True, eq=False)
class Replay:
    """The inputs of a drive from the start line, and the lap that it claims.

    `actions` has one row per tick. With `is_quantised` every value is one that `quantise` gives.
    """

    track_digest: str  # as `tracks.digest` gives it
    actions: Actions
    lap: int  # the claimed lap; 1 is the first from the line
    lap_time_s: np.float32
    seed: int = 0
    physics: str = PHYSICS_VERSION
    is_quantised: bool = True

    @property
    def num_ticks(self) -> int:
        """The number of ticks."""
        return len(self.actions)

    def to_bytes(self) -> bytes:
        """The replay as a file."""
        physics = _PHYSICS.fullmatch(self.physics)
        if not physics or not _TRACK_DIGEST.fullmatch(self.track_digest):
            raise ReplayError(
                f"replay: physics {self.physics!r:.40} or road {self.track_digest!r:.40} is not a digest."
            )
        if not 1 <= self.num_ticks <= MAX_TICKS:
            raise ReplayError(f"replay: it must have 1 to {MAX_TICKS} ticks, got {self.num_ticks}.")
        head = _HEAD.pack(
            MAGIC,
            QUANTISED if self.is_quantised else EXACT,
            _START_ON_LINE,
            int(physics[1]),
            bytes.fromhex(physics[2]),
            bytes.fromhex(self.track_digest),
            self.seed,
            self.num_ticks,
            float(self.lap_time_s),
            self.lap,
        )
        return head + pack_inputs(self.actions, self.is_quantised)

    def to_text(self) -> str:
        """The replay as text for a link."""
        return to_text(self.to_bytes())

    @classmethod
    def from_bytes(cls, content: bytes) -> "Replay":
        """The replay in a file; a ReplayError if any byte of it is not as the format says."""
        if len(content) < _HEAD.size or content[: len(MAGIC)] != MAGIC:
            raise ReplayError("replay: it does not begin like one (HLR1). Is it another file?")
        if len(content) > MAX_REPLAY_BYTES:
            raise ReplayError(f"replay: it has at most {MAX_REPLAY_BYTES} bytes, this has {len(content)}.")
        _, encoding, start, edition, physics, digest, seed, num_ticks, time_s, lap = _HEAD.unpack_from(content)
        check_encoding(encoding)
        if start != _START_ON_LINE:
            raise ReplayError(f"replay: start {start} is not known. Use a newer version.")
        if not 1 <= num_ticks <= MAX_TICKS:
            raise ReplayError(f"replay: it must have 1 to {MAX_TICKS} ticks, got {num_ticks}.")
        if not (np.isfinite(time_s) and time_s > 0.0 and lap >= 1):
            raise ReplayError(f"replay: it claims lap {lap} in {time_s:g} s, which no lap takes.")
        actions = unpack_inputs(content[_HEAD.size :], encoding, num_ticks)
        physics_version = f"{edition}-{physics.hex()}"
        return cls(digest.hex(), actions, lap, np.float32(time_s), seed, physics_version, encoding == QUANTISED)

    @classmethod
    def from_text(cls, text: str) -> "Replay":
        """The replay in text."""
        return cls.from_bytes(from_text(text))


def to_text(content: bytes) -> str:
    """A file as text for a link: base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes:
    """The file in a text; a ReplayError if it is none."""
    if len(text) > MAX_TEXT_CHARS:
        raise ReplayError(f"replay: its text has at most {MAX_TEXT_CHARS} characters, this has {len(text)}.")
    try:
        # The standard decoder skips characters that are not of its alphabet; here they are an error.
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ReplayError("replay: its text is not base64url. Was the link cut off?") from None


def check_encoding(encoding: int) -> None:
    """Refuse inputs that are not coded as here."""
    if encoding in LINK_ENCODINGS:
        raise ReplayError("replay: its inputs are packed for a link. Open the link in the page, and share it there.")
    if encoding not in _RUN_BYTES:
        raise ReplayError(f"replay: encoding {encoding} is not known. Use a newer version.")


def pack_inputs(actions: Actions, is_quantised: bool) -> bytes:
    """The inputs as the body of a replay."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(_encode(actions, is_quantised)) + compressor.flush()


def unpack_inputs(body: bytes, encoding: int, num_ticks: int) -> Actions:
    """The inputs in the body of a replay; a ReplayError if any byte of it is not as the format says."""
    return _decode(_inflate(body, _RUN_BYTES[encoding] * num_ticks), encoding, num_ticks)


def quantise(actions: Actions) -> Actions:
    """The nearest actions that a replay of a person holds: steer in steps of 1/127, pedals in steps of 1/255."""
    low = np.array([-1.0, 0.0, 0.0], np.float32)
    return _from_steps(np.rint(np.clip(actions, low, np.float32(1.0)) * _SCALE).astype(np.int16))


def _from_steps(steps: NDArray[np.int16]) -> Actions:
    """Float32 actions of whole steps: one division each, correctly rounded."""
    actions: Actions = np.divide(steps, _SCALE, dtype=np.float32)
    return actions


def _encode(actions: Actions, is_quantised: bool) -> bytes:
    """The inflated body: run lengths, then the columns."""
    actions = np.asarray(actions, np.float32)
    bits = actions.view(np.int32)  # by bits: -0.0 and 0.0 are different inputs
    is_new = np.ones(len(actions), np.bool_)
    is_new[1:] = (bits[1:] != bits[:-1]).any(axis=1)
    firsts = np.flatnonzero(is_new)
    ends = np.append(firsts[1:], len(actions))
    starts = np.concatenate([np.arange(first, end, _MAX_RUN) for first, end in zip(firsts, ends, strict=True)])
    lengths = np.diff(np.append(starts, len(actions))).astype(np.uint8)
    rows = actions[starts]
    if not is_quantised:
        return lengths.tobytes() + np.ascontiguousarray(rows.T, "<f4").tobytes()
    steps = np.rint(rows * _SCALE).astype(np.int16)
    if (_from_steps(steps).view(np.int32) != rows.view(np.int32)).any():
        raise ReplayError("replay: its inputs are not quantised. Store them exactly.")
    differences = np.diff(steps, axis=0, prepend=np.zeros((1, 3), np.int16))
    columns: bytes = (differences.T % 256).astype(np.uint8).tobytes()
    return lengths.tobytes() + columns


def _inflate(compressed: bytes, limit: int) -> bytes:
    """The inflated body, of at most `limit` bytes, which ends where the compressed bytes end."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        body = inflater.decompress(compressed, limit + 1)
    except zlib.error:
        raise ReplayError("replay: its inputs are damaged.") from None
    if len(body) > limit:
        raise ReplayError("replay: it has more inputs than ticks.")
    if not inflater.eof or inflater.unused_data:
        raise ReplayError("replay: it is cut off, or has bytes after its end.")
    return body


def _decode(body: bytes, encoding: int, num_ticks: int) -> Actions:
    num_runs, rest = divmod(len(body), _RUN_BYTES[encoding])
    lengths = np.frombuffer(body, np.uint8, num_runs)
    if rest or not num_runs or (lengths == 0).any() or int(lengths.sum(dtype=np.int64)) != num_ticks:
        raise ReplayError("replay: its inputs do not fit its number of ticks.")
    if encoding == EXACT:
        rows = np.frombuffer(body, "<f4", 3 * num_runs, num_runs).reshape(3, num_runs).T.astype(np.float32)
        if not np.isfinite(rows).all():
            raise ReplayError("replay: an input is not finite.")
    else:
        columns = np.frombuffer(body, np.uint8, 3 * num_runs, num_runs).reshape(3, num_runs)
        steps = np.cumsum(columns, axis=1, dtype=np.uint8).astype(np.int16).T
        steps[:, 0] -= np.where(steps[:, 0] > STEER_STEPS, 256, 0).astype(np.int16)  # two's complement
        if (steps[:, 0] < -STEER_STEPS).any():
            raise ReplayError(f"replay: steer must be from -{STEER_STEPS} to {STEER_STEPS} steps.")
        rows = _from_steps(steps)
    return np.ascontiguousarray(np.repeat(rows, lengths, axis=0))

"""The bridge's messages: requests, replies, and how both are written as JSON."""

import json
import math
import os
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from hotlap.envs.infos import Info
from hotlap.envs.settings import StartName
from hotlap.envs.spaces import ObservationName
from hotlap.errors import BridgeError
from hotlap.sim.world import NUM_ACTIONS

PROTOCOL = 1
MAX_REQUEST_BYTES = 65_536
MAX_ENVS = 1_024
MAX_STEP_TICKS = 16_384  # of all cars in one step: other clients wait for it

LOOPBACK_HOST = "127.0.0.1"
DEFAULT_PORT = 9876
DEFAULT_URL = f"ws://{LOOPBACK_HOST}:{DEFAULT_PORT}"
PORT_VARIABLE = "BRIDGE_PORT"
TOKEN_VARIABLE = "HOTLAP_BRIDGE_TOKEN"  # noqa: S105 (the name of the variable, not the token)

RACE_OBSERVATION: Literal["race"] = "race"  # the layout of cars that share a road

MAX_ERROR_CHARS = 400
MAX_DEPTH = 64  # objects and arrays inside each other

_TrackId: TypeAlias = Annotated[str, Meta(max_length=64)]
Action: TypeAlias = tuple[float, float, float]  # steer, throttle, brake


class Request(Struct, tag_field="type", rename="camel", omit_defaults=True, frozen=True):
    """A message of a client; unknown fields are ignored."""


class Hello(Request, tag="hello", frozen=True):
    """Ask for the protocol, physics version and tracks. With `binary`, binary frames are steps from now on."""

    binary: bool | None = None


class Reset(Request, tag="reset", frozen=True):
    """Begin an episode. A field that is absent or null takes its default, not its last value."""

    track_id: _TrackId | Annotated[list[_TrackId], Meta(min_length=1, max_length=MAX_ENVS)] | None = None
    config: Raw = Raw()  # an object, kept as bytes: equal bytes need no parsing
    seed: int | Annotated[list[int], Meta(max_length=MAX_ENVS)] | None = None
    num_envs: int | None = None
    start: StartName | None = None
    observation: ObservationName | Literal["race"] | None = None
    action_repeat: int | None = None
    race: Raw = Raw()  # an object: the cars of the batch share one road


class Step(Request, tag="step", frozen=True):
    """One step of one car."""

    action: Action


class StepBatch(Request, tag="step", frozen=True):
    """One step of every car of a batch."""

    action: list[Action]


class GetState(Request, tag="get_state", frozen=True):
    """Ask for the complete state of every car."""


class SetState(Request, tag="set_state", frozen=True):
    """Continue the cars from number `first` on from a state; its columns may be those of some of the cars only."""

    state: dict[str, Annotated[list[int | float | None], Meta(max_length=MAX_ENVS)]]
    first: Annotated[int, Meta(ge=0, lt=MAX_ENVS)] = 0


class Close(Request, tag="close", frozen=True):
    """Drop the simulation; the connection stays open."""


class Reply(Struct, tag_field="type", omit_defaults=True):
    """A message of the bridge."""


class HelloResult(Reply, tag="hello_result"):
    """Describes the bridge; `binary` is present only if the client asked for it."""

    protocol: int
    physics: str
    tracks: list[str]
    binary: bool = False


class ResetResult(Reply, tag="reset_result"):
    """The first observation of one car."""

    observation: list[float]
    info: Info


class BatchResetResult(Reply, tag="reset_result"):
    """The first observations, one row per car; info as columns of N."""

    observation: list[list[float]]
    info: dict[str, list[Any]]


class StepResult(Reply, tag="step_result"):
    """The result of one car's step."""

    observation: list[float]
    reward: float
    terminated: bool
    truncated: bool
    info: Any  # an object; the server writes it from a struct, a client reads a dict


class Final(Struct):
    """The last observation and info of an ended episode, whose car has already been reset."""

    observation: list[float]
    info: Info


class BatchStepResult(Reply, tag="step_result"):
    """The result of a step of N cars; info as columns of N, `finals` for the cars that ended."""

    observation: list[list[float]]
    reward: list[float]
    terminated: list[bool]
    truncated: list[bool]
    info: dict[str, list[Any]]
    finals: dict[int, Final]


class GetStateResult(Reply, tag="get_state_result"):
    """The state of N cars, as columns of N."""

    state: dict[str, list[int | float | None]]


class SetStateResult(Reply, tag="set_state_result"):
    """What the cars that got a state observe now, one row per car."""

    observation: list[list[float]]


class CloseResult(Reply, tag="close_result"):
    """The simulation was dropped."""


class ErrorResult(Reply, tag="error"):
    """The request was refused and changed nothing."""

    message: str


class Frame(NamedTuple):
    """One WebSocket message."""

    data: bytes
    is_binary: bool = False


encode = msgspec.json.Encoder().encode

# `action` has another type for one car than for a batch, so the decoder depends on the last reset.
SingleRequest: TypeAlias = Hello | Reset | Step | GetState | SetState | Close
BatchRequest: TypeAlias = Hello | Reset | StepBatch | GetState | SetState | Close
_decode_single: Callable[[bytes], SingleRequest] = msgspec.json.Decoder(SingleRequest).decode
_decode_batch: Callable[[bytes], BatchRequest] = msgspec.json.Decoder(BatchRequest).decode
decode_config = msgspec.json.Decoder(dict[str, Any]).decode  # of a request that `decode_*` accepted

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

# Everything that `decode_*` may raise.
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_single(data: bytes) -> SingleRequest:
    """The request of a client that drives one car."""
    check_depth(data)
    return _decode_single(data)


def decode_batch(data: bytes) -> BatchRequest:
    """The request of a client that drives a batch."""
    check_depth(data)
    return _decode_batch(data)


def check_depth(data: bytes) -> None:
    """Raise BridgeError for JSON that is nested too deeply, before it is parsed.

    The parser is limited only by the interpreter's recursion limit, which differs between versions of Python.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:  # by far the most common case
        return
    # Without escapes every other quote ends a string, which is several times as fast to find.
    outside = _STRING.sub(b"", data) if b"\\" in data else b"".join(data.split(b'"')[::2])
    brackets = outside.translate(_AS_BRACKETS, _NO_BRACKETS)
    depth = 0
    # Each round removes the innermost level. What is left in the end belongs to no pair, so it is not JSON.
    while depth <= MAX_DEPTH and b"[]" in brackets:
        brackets = brackets.replace(b"[]", b"")
        depth += 1
    if depth + brackets.count(b"[") > MAX_DEPTH:
        raise BridgeError(f"request: nested too deeply; at most {MAX_DEPTH} levels. Send a flatter message.")


def printable(text: str) -> str:
    r"""What the other side sent, safe to log: control characters and terminal escapes written as `\x1b`."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def describe_decode_error(error: Exception) -> str:
    """Why a message is not a valid request, in one sentence."""
    if isinstance(error, RecursionError):
        return "request: nested too deeply."
    hint = (
        " Known types: hello, reset, step, close, get_state, set_state."
        if "$.type" in str(error) or "field `type`" in str(error)
        else ""
    )
    return f"request: {error}.{hint}"


def find_bad_action(data: bytes) -> tuple[int, str] | None:
    """The first car without three finite numbers in a step of a batch that was refused, and what it has instead.

    JSON has no NaN; where a client writes it nevertheless, this says for which car.
    """
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    rows = message.get("action") if isinstance(message, dict) and message.get("type") == "step" else None
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        if not isinstance(row, list) or len(row) != NUM_ACTIONS or not all(map(_is_finite, row)):
            return number, f"{row!r:.60}"
    return None


def _is_finite(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def error_frame(message: str) -> Frame:
    """An error reply: one line of limited length and valid UTF-8."""
    line = " ".join(message.split())
    if len(line) > MAX_ERROR_CHARS:
        line = line[:MAX_ERROR_CHARS] + "…"
    # A message that quotes the client may hold half a surrogate pair, which UTF-8 cannot encode.
    return Frame(encode(ErrorResult(line.encode("utf-8", "replace").decode("utf-8"))))


def default_port() -> int:
    """The port if none is given: BRIDGE_PORT, else 9876."""
    text = os.environ.get(PORT_VARIABLE)
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise BridgeError(f"{PORT_VARIABLE}: a port is a whole number from 0 to 65535, got {text!r:.40}.")
    return int(text)


def default_token() -> str | None:
    """The token in HOTLAP_BRIDGE_TOKEN, if it is set."""
    return os.environ.get(TOKEN_VARIABLE) or None

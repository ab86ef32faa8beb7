"""The bridge's messages: what a client may ask, what it is answered, and how both are written as JSON."""

import os
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from hotlap.errors import BridgeError

PROTOCOL = 1
MAX_REQUEST_BYTES = 65_536
MAX_ENVS = 1_024

LOOPBACK_HOST = "127.0.0.1"
DEFAULT_PORT = 9876
DEFAULT_URL = f"ws://{LOOPBACK_HOST}:{DEFAULT_PORT}"
PORT_VARIABLE = "BRIDGE_PORT"
TOKEN_VARIABLE = "HOTLAP_BRIDGE_TOKEN"  # noqa: S105 (the name of the variable, not the token)

MAX_ERROR_CHARS = 400

_TrackId: TypeAlias = Annotated[str, Meta(max_length=64)]
Action: TypeAlias = tuple[float, float, float]  # steer, throttle, brake
Info: TypeAlias = dict[str, Any]


class Request(Struct, tag_field="type", rename="camel", omit_defaults=True, frozen=True):
    """What a client may send; further fields are ignored."""


class Hello(Request, tag="hello", frozen=True):
    """Who are you? With `binary`, binary frames are steps from now on."""

    binary: bool | None = None


class Reset(Request, tag="reset", frozen=True):
    """Begin an episode. What is absent or null takes its default, not the last value."""

    track_id: _TrackId | Annotated[list[_TrackId], Meta(min_length=1, max_length=MAX_ENVS)] | None = None
    config: Raw = Raw()  # an object, kept as bytes until it is known to be new
    seed: int | Annotated[list[int], Meta(max_length=MAX_ENVS)] | None = None
    num_envs: Annotated[int, Meta(ge=1, le=MAX_ENVS)] | None = None
    start: Literal["line", "random"] | None = None


class Step(Request, tag="step", frozen=True):
    """One tick of one car."""

    action: Action


class BatchStep(Request, tag="step", frozen=True):
    """One tick of every car of a batch."""

    action: list[Action]


class Close(Request, tag="close", frozen=True):
    """Forget the world; the connection stays."""


class Reply(Struct, tag_field="type", omit_defaults=True):
    """What the bridge sends."""


class HelloResult(Reply, tag="hello_result"):
    """What serves here; `binary` only when it was asked for."""

    protocol: int
    physics: str
    tracks: list[str]
    binary: bool = False


class ResetResult(Reply, tag="reset_result"):
    """The first observation, of one car."""

    observation: list[float]
    info: Info


class BatchResetResult(Reply, tag="reset_result"):
    """The first observations, (N, 14); info as columns of N."""

    observation: list[list[float]]
    info: dict[str, list[Any]]


class StepResult(Reply, tag="step_result"):
    """What one car's tick led to."""

    observation: list[float]
    reward: float
    terminated: bool
    truncated: bool
    info: Any  # an object; the server writes it from a struct, a client reads a dict


class Final(Struct):
    """How the episode of a car that has already begun the next one ended."""

    observation: list[float]
    info: Info


class BatchStepResult(Reply, tag="step_result"):
    """What a tick of N cars led to; info as columns of N, `finals` for the cars that ended."""

    observation: list[list[float]]
    reward: list[float]
    terminated: list[bool]
    truncated: list[bool]
    info: dict[str, list[Any]]
    finals: dict[int, Final]


class CloseResult(Reply, tag="close_result"):
    """The world is forgotten."""


class ErrorResult(Reply, tag="error"):
    """The request was refused and changed nothing."""

    message: str


class Frame(NamedTuple):
    """One WebSocket message."""

    data: bytes
    is_binary: bool = False


encode = msgspec.json.Encoder().encode

# `action` of one car and of a batch are different types, so which requests are right depends on the world.
decode_single = msgspec.json.Decoder(Hello | Reset | Step | Close).decode
decode_batch = msgspec.json.Decoder(Hello | Reset | BatchStep | Close).decode
decode_config = msgspec.json.Decoder(dict[str, Any]).decode

# All that `decode_*` raises on what is no request.
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def describe_decode_error(error: Exception) -> str:
    """Why a message is no request, in one sentence."""
    if isinstance(error, RecursionError):
        return "request: nested too deeply."
    hint = " Known types: hello, reset, step, close." if "$.type" in str(error) or "field `type`" in str(error) else ""
    return f"request: {error}.{hint}"


def error_frame(message: str) -> Frame:
    """An error reply: one line of bounded length that any JSON parser reads."""
    line = " ".join(message.split())
    if len(line) > MAX_ERROR_CHARS:
        line = line[:MAX_ERROR_CHARS] + "…"
    # A text that quotes the client may hold half a surrogate pair, which UTF-8 cannot.
    return Frame(encode(ErrorResult(line.encode("utf-8", "replace").decode("utf-8"))))


def default_port() -> int:
    """The port where none is named: BRIDGE_PORT, else 9876."""
    text = os.environ.get(PORT_VARIABLE)
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise BridgeError(f"{PORT_VARIABLE}: a port is a whole number from 0 to 65535, got {text!r:.40}.")
    return int(text)


def default_token() -> str | None:
    """The token of the environment, if there is one."""
    return os.environ.get(TOKEN_VARIABLE) or None

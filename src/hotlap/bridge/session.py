"""One connection's side of the conversation: a message in, the reply out; knows no sockets."""

import logging
from collections.abc import Callable

import numpy as np

from hotlap.bridge.protocol import (
    DECODE_ERRORS,
    MAX_REQUEST_BYTES,
    PROTOCOL,
    BatchStep,
    CloseResult,
    Frame,
    Hello,
    HelloResult,
    Reply,
    Request,
    Reset,
    Step,
    decode_batch,
    decode_single,
    describe_decode_error,
    encode,
    error_frame,
)
from hotlap.bridge.simulation import Simulation, simulation_for
from hotlap.errors import BridgeError, HotlapError
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import list_tracks

logger = logging.getLogger(__name__)

_CLOSED = Frame(encode(CloseResult()))


class Session:
    """The world of one client and the form it is spoken to in. Every message gets exactly one reply."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._world: Simulation | None = None
        self._is_binary_welcome = False
        self._decode: Callable[[bytes], Request] = decode_single

    def answer(self, data: bytes, is_binary: bool = False) -> Frame:
        """The reply to a message; a refused one gets an error and changes nothing."""
        try:
            if len(data) > MAX_REQUEST_BYTES:
                raise too_large(len(data))
            return self._answer_binary(data) if is_binary else self._answer_text(data)
        except HotlapError as error:
            return self._refuse(str(error))
        except DECODE_ERRORS as error:
            return self._refuse(describe_decode_error(error))
        except Exception as error:  # a bug of ours must cost one client one request, not everyone the server
            logger.error("internal error: %s: %s", type(error).__name__, " ".join(str(error).split())[:400])
            return error_frame("bridge: internal error; the request was not served. The bridge's log names it.")

    def _refuse(self, message: str) -> Frame:
        logger.info("refused: %.200s", message)
        return error_frame(message)

    def _answer_text(self, data: bytes) -> Frame:
        request = self._decode(data)
        if isinstance(request, Step):
            return Frame(encode(self._need_world().step(request.action)))
        if isinstance(request, BatchStep):
            return Frame(encode(self._need_world().step_batch(request.action)))
        if isinstance(request, Reset):
            return Frame(encode(self._reset(request)))
        if isinstance(request, Hello):
            return Frame(encode(self._greet(request)))
        self._world, self._decode = None, decode_single  # what is left is `close`
        return _CLOSED

    def _answer_binary(self, data: bytes) -> Frame:
        if not self._is_binary_welcome:
            raise BridgeError('request: binary frames must be asked for. Send {"type":"hello","binary":true} first.')
        return Frame(self._need_world().step_binary(data), is_binary=True)

    def _need_world(self) -> Simulation:
        if self._world is None:
            raise BridgeError('step: there is no world yet. Send {"type":"reset"} first.')
        return self._world

    def _reset(self, request: Reset) -> Reply:
        self._world = simulation_for(request, self._world, self._rng)
        self._decode = decode_batch if self._world.is_batch else decode_single
        return self._world.reset(request)

    def _greet(self, request: Hello) -> Reply:
        self._is_binary_welcome = bool(request.binary)
        tracks = [entry.track_id for entry in list_tracks()]
        return HelloResult(PROTOCOL, PHYSICS_VERSION, tracks, self._is_binary_welcome)


def too_large(num_bytes: int) -> BridgeError:
    """What a request over the limit is told."""
    return BridgeError(f"request: at most {MAX_REQUEST_BYTES} bytes, got {num_bytes}.")

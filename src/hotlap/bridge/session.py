"""The protocol logic of one connection: a message in, its reply out; no sockets."""

import logging
from collections.abc import Callable

import numpy as np

from hotlap.bridge.building import Building
from hotlap.bridge.protocol import (
    DECODE_ERRORS,
    PROTOCOL,
    CloseResult,
    Frame,
    GetState,
    Hello,
    HelloResult,
    Reply,
    Request,
    Reset,
    SetState,
    Step,
    StepBatch,
    decode_batch,
    decode_single,
    describe_decode_error,
    encode,
    error_frame,
    find_bad_action,
    printable,
)
from hotlap.bridge.simulation import Simulation
from hotlap.bridge.simulation_plan import plan_simulation
from hotlap.errors import ActionError, BridgeError, HotlapError
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import list_tracks

logger = logging.getLogger(__name__)

_CLOSED = Frame(encode(CloseResult()))


class Session:
    """One client's simulation and message format. Every message gets exactly one reply."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._simulation: Simulation | None = None
        self._resetting: Reset | None = None  # waits for its simulation
        self._allows_binary = False
        self._decode: Callable[[bytes], Request] = decode_single

    def answer(self, data: bytes, is_binary: bool = False) -> Frame:
        """The reply to a message; a refused message gets an error reply and changes nothing."""
        reply = self.begin(data, is_binary)
        if isinstance(reply, Frame):
            return reply
        while not reply.work():
            pass
        return self.finish(reply)

    def begin(self, data: bytes, is_binary: bool = False) -> Frame | Building:
        """The reply to a message, or a simulation that has to be built first: the caller `finish`es it."""
        try:
            return self._answer_binary(data) if is_binary else self._answer_text(data)
        except Exception as error:  # a bug must fail one request, not stop the server
            return self._error_reply(error)

    def finish(self, building: Building) -> Frame:
        """The reply to the reset whose simulation is built by now."""
        request, self._resetting = self._resetting, None
        if request is None:
            raise RuntimeError("no reset is waiting for a simulation")
        try:
            return self._reset(request, building.result())
        except Exception as error:
            return self._error_reply(error)

    def _error_reply(self, error: Exception) -> Frame:
        if isinstance(error, HotlapError):
            return self._refuse(str(error))
        if isinstance(error, DECODE_ERRORS):
            return self._refuse(describe_decode_error(error))
        logger.error("internal error: %s: %.400s", type(error).__name__, printable(str(error)))
        return error_frame("bridge: internal error; the request failed. See the bridge's log.")

    def _refuse(self, message: str) -> Frame:
        logger.info("refused: %.200s", printable(message))
        return error_frame(message)

    def _answer_text(self, data: bytes) -> Frame | Building:
        request = self._read(data)
        if isinstance(request, Step):
            return Frame(encode(self._require_simulation().step(request.action)))
        if isinstance(request, StepBatch):
            return Frame(encode(self._require_simulation().step_batch(request.action)))
        if isinstance(request, Reset):
            return self._begin_reset(request)
        if isinstance(request, Hello):
            return Frame(encode(self._greet(request)))
        if isinstance(request, GetState):
            return Frame(encode(self._require_simulation("get_state").get_state()))
        if isinstance(request, SetState):
            return Frame(encode(self._require_simulation("set_state").set_state(request)))
        self._simulation, self._decode = None, decode_single  # only `close` is left
        return _CLOSED

    def _read(self, data: bytes) -> Request:
        try:
            return self._decode(data)
        except DECODE_ERRORS:
            simulation = self._simulation
            bad = find_bad_action(data) if simulation is not None and simulation.is_batch else None
            if simulation is None or bad is None:
                raise
            name = simulation.car_name(bad[0])
            raise ActionError(f"action of {name} must be three finite numbers, got {bad[1]}; nothing moved.") from None

    def _answer_binary(self, data: bytes) -> Frame:
        if not self._allows_binary:
            raise BridgeError('request: binary frames are not enabled. Send {"type":"hello","binary":true} first.')
        return Frame(self._require_simulation().step_binary(data), is_binary=True)

    def _require_simulation(self, what: str = "step") -> Simulation:
        if self._simulation is None:
            raise BridgeError(f'{what}: no episode has begun. Send {{"type":"reset"}} first.')
        return self._simulation

    def _begin_reset(self, request: Reset) -> Frame | Building:
        plan = plan_simulation(request)
        if self._simulation is not None and self._simulation.fits(plan):
            return self._reset(request, self._simulation)
        plan.refuse_unknown_tracks()
        self._resetting = request
        return Building(plan, self._rng)

    def _reset(self, request: Reset, simulation: Simulation) -> Frame:
        self._simulation = simulation
        self._decode = decode_batch if simulation.is_batch else decode_single
        return Frame(encode(simulation.reset(request)))

    def _greet(self, request: Hello) -> Reply:
        self._allows_binary = bool(request.binary)
        tracks = [entry.track_id for entry in list_tracks()]
        return HelloResult(PROTOCOL, PHYSICS_VERSION, tracks, self._allows_binary)

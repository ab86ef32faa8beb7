"""What the routes share: board, runs, solver, and the threads that work for them."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import Request

from hotlap.bridge.access import RateLimit
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import DriverError, HotlapError
from hotlap.evaluation.baseline import CASUAL_EPISODES
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, load_track
from hotlap.web.answers import ApiError
from hotlap.web.board import Board, BoardEntry
from hotlap.web.drivers import kind_of, make_model_driver, shipped_model_ids
from hotlap.web.optimum import OptimumJobs
from hotlap.web.page_data import recorded_drive
from hotlap.web.replays import Replay, find_recorded, record_drive, record_typical_drive, verify
from hotlap.web.run_processes import RunProcesses

MAX_WAITING = 32  # requests for the simulator's thread
NUM_DRIVER_LAPS = 2  # a standing and a flying one
_log = logging.getLogger(__name__)
T = TypeVar("T")


class PageServices:
    """The server's parts, made when it starts. Work is done on two threads: the simulator's, and one for files."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.runs = RunProcesses()
        self.optimum = OptimumJobs(self.enter_optimal)
        self.computing = RateLimit(per_s=20.0, burst=40)
        self.starting = RateLimit(per_s=1.0, burst=5)
        self.num_streams = 0
        self.is_closing = False
        self._simulator = ThreadPoolExecutor(1, "simulator")
        self._files = ThreadPoolExecutor(1, "files")
        self._num_waiting = 0
        self._recording = threading.Lock()
        self._failed: set[tuple[str, str]] = set()  # driver and road: not tried again

    def close(self) -> None:
        """Stop solving and working. Training goes on in its own processes."""
        self.is_closing = True
        self.optimum.close()
        for pool in (self._simulator, self._files):
            pool.shutdown(wait=True, cancel_futures=True)
        self.board.close()

    async def compute(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something on the simulator's thread; an ApiError where too much waits for it."""
        if self._num_waiting >= MAX_WAITING:
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "the server is busy. Try again in a moment.", 1.0)
        self._num_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._simulator, work, *arguments)
        finally:
            self._num_waiting -= 1

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Read files on their thread."""
        return await asyncio.get_running_loop().run_in_executor(self._files, work, *arguments)

    # --- drivers on the board; called on the simulator's thread ---

    def enter_driver(self, driver_id: str, track_id: str) -> tuple[BoardEntry, bool]:
        """Let a driver drive, and enter its best lap; its entry of before, if its drive is the same."""
        kind = kind_of(driver_id)
        if kind in ("casual", "optimal"):
            track = load_track(track_id)
            known = self.board.find_driver(driver_id, track_digest(track.nodes))
            if known is not None:
                return known, False
            replay = find_recorded(driver_id, track)
            if replay is None and kind == "optimal":
                raise ApiError(HTTPStatus.CONFLICT, f"{track_id}: its optimal lap is not solved yet. Solve it first.")
            replay = replay or self._record_casual(track_id)
            board_kind: Any = kind
        else:
            replay = record_drive(make_model_driver(driver_id, track_id), track_id, NUM_DRIVER_LAPS)
            board_kind = "model"
        lap = verify(replay, track_id)
        name = driver_id.removeprefix("run:")
        return self.board.add(track_id, replay, lap, driver=name, kind=board_kind, driver_id=driver_id)

    @staticmethod
    def _record_casual(track_id: str) -> Replay:
        """The casual driver's laps; where it drives no clean flying lap, its best."""
        try:
            return record_typical_drive(CasualDriver(), track_id, CASUAL_EPISODES)
        except DriverError:
            return record_drive(CasualDriver(), track_id, NUM_DRIVER_LAPS, is_quantised=True)

    def enter_optimal(self, track_id: str, content: bytes) -> None:
        """Enter the laps of the optimal driver that were just solved."""
        replay = Replay.from_bytes(content)
        lap = verify(replay, track_id)
        self.board.add(track_id, replay, lap, driver="optimal", kind="optimal", driver_id="optimal")

    def enter_known_drivers(self, track: Track) -> None:
        """Enter the drivers that ship with the package: recorded laps, and policies, which are driven once."""
        road = track_digest(track.nodes)
        recorded = [name for name in ("casual", "optimal") if recorded_drive(name, track.track_id) is not None]
        for driver_id in (*recorded, *shipped_model_ids(track.track_id)):
            if (driver_id, road) in self._failed or self.board.find_driver(driver_id, road) is not None:
                continue
            try:
                self.enter_driver(driver_id, track.track_id)
            except (HotlapError, ApiError) as error:
                self._failed.add((driver_id, road))
                _log.warning("%s is not on the board of %s: %s", driver_id, track.track_id, error)

    def record_casual_later(self, track_id: str) -> None:
        """Let the casual driver drive a track after the requests that wait; one at a time."""
        if not self._recording.acquire(blocking=False):
            return

        def work() -> None:
            try:
                self.enter_driver("casual", track_id)
            except HotlapError as error:
                _log.warning("%s", error)
            finally:
                self._recording.release()

        self._simulator.submit(work)


def services_of(request: Request) -> PageServices:
    """The services of the server that got a request."""
    services: PageServices = request.app.state.services
    return services


def limit(rate: RateLimit) -> None:
    """Count a request; an ApiError where there were too many."""
    wait_s = rate.take()
    if wait_s is not None:
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, "too many requests. Wait a moment.", wait_s)

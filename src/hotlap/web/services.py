"""What the routes share: leaderboard, runs, solver, and the threads that work for them."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import Request

from hotlap.bridge.access import RateLimit
from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.errors import DriverError, HotlapError
from hotlap.evaluation.baseline import CASUAL_EPISODES
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import Track, load_track
from hotlap.web.answers import ApiError
from hotlap.web.drivers import kind_of, make_model_driver, shipped_model_ids
from hotlap.web.leaderboard import Kind, Leaderboard, LeaderboardEntry
from hotlap.web.optimum import OptimumJobs
from hotlap.web.page_data import recorded_drive
from hotlap.web.replays import Replay, find_recorded, record_drive, record_typical_drive, verify_drive
from hotlap.web.run_processes import RunProcesses
from hotlap.web.shared_replays import SHARED_REPLAYS_FILE, SharedReplays

MAX_WAITING = 32  # requests for the simulator's thread
NUM_DRIVER_LAPS = 2  # a standing and a flying one
MAX_CACHED_DRIVE_BYTES = 4 << 20
CAREFUL_GRIP_SHARES = (0.63, 0.56)  # of the casual driver on a road where it leaves the track otherwise
ENTERING_WAIT_S = 30.0  # for the drivers that ship to be on a leaderboard that is asked for
QUIET_S = 4.0  # for the page to ask for the track of a file, its drivers and their policies
_log = logging.getLogger(__name__)
T = TypeVar("T")


class PageServices:
    """The server's parts, made when it starts. Work is done on two threads: the simulator's, and one for files."""

    def __init__(self, leaderboard: Leaderboard) -> None:
        self.leaderboard = leaderboard
        self.shared_replays = SharedReplays(leaderboard.path.with_name(SHARED_REPLAYS_FILE))
        self.runs = RunProcesses()
        self.optimum = OptimumJobs(self.enter_optimal)
        self.computing = RateLimit(per_s=20.0, burst=40)
        self.starting = RateLimit(per_s=1.0, burst=5)
        self.racing = RateLimit(per_s=0.5, burst=8)  # a race against rivals takes a second or more
        self.num_streams = 0
        self._is_reading_file = False
        self._quiet_until_s = 0.0  # no driver is entered before
        self.is_closing = False
        self._simulator = ThreadPoolExecutor(1, "simulator")
        self._files = ThreadPoolExecutor(1, "files")
        self._num_waiting = 0
        self._entering: dict[str, Future[None]] = {}  # by track
        # Drives of the casual driver, by track digest.
        self._drives: ByteLimitedCache[str, bytes] = ByteLimitedCache(MAX_CACHED_DRIVE_BYTES)
        self._failed: set[tuple[str, str]] = set()  # driver and track digest: not tried again

    def close(self) -> None:
        """Stop solving and working. Training goes on in its own processes."""
        self.is_closing = True
        self.optimum.close()
        for pool in (self._simulator, self._files):
            pool.shutdown(wait=True, cancel_futures=True)
        self.leaderboard.close()
        self.shared_replays.close()

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

    @contextmanager
    def only_file(self) -> Iterator[None]:
        """While a file of the user's is received and read, another is refused: each may take much memory.

        Nor are drivers entered then and shortly after: whoever sent it waits to see it driven.
        """
        if self._is_reading_file:
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "another file is being read. Try again in a moment.", 1.0)
        self._is_reading_file, self._quiet_until_s = True, time.monotonic() + QUIET_S
        try:
            yield
        finally:
            self._is_reading_file = False

    # --- drivers on the leaderboard; called on the simulator's thread ---

    def enter_driver(self, driver_id: str, track_id: str) -> tuple[LeaderboardEntry, bool]:
        """Let a driver drive, and enter its best lap; its entry of before, if its drive is the same."""
        kind = kind_of(driver_id)
        if kind in ("casual", "optimal"):
            track = load_track(track_id)
            known = self.leaderboard.find_driver(driver_id, track_digest(track.nodes))
            if known is not None:
                return known, False
            replay = Replay.from_bytes(self._drive_of(driver_id, track))
            entry_kind: Kind = kind
        else:
            replay = record_drive(make_model_driver(driver_id, track_id), track_id, NUM_DRIVER_LAPS)
            entry_kind = "model"
        return self._enter(track_id, replay, entry_kind, driver_id)

    @staticmethod
    def _record_casual(track_id: str) -> Replay:
        """The casual driver's laps; where it drives no clean flying lap, more careful ones, then its best."""
        for grip_share in (CasualHabits.grip_share, *CAREFUL_GRIP_SHARES):
            driver = CasualDriver(CasualHabits(grip_share=grip_share))
            with suppress(DriverError):
                return record_typical_drive(driver, track_id, CASUAL_EPISODES)
        return record_drive(CasualDriver(), track_id, NUM_DRIVER_LAPS, is_quantised=True)

    def enter_optimal(self, track_id: str, content: bytes) -> None:
        """Enter the laps of the optimal driver that were just solved."""
        replay = Replay.from_bytes(content)
        self._enter(track_id, replay, "optimal", "optimal")

    def _enter(self, track_id: str, replay: Replay, kind: Kind, driver_id: str) -> tuple[LeaderboardEntry, bool]:
        lap, num_ticks = verify_drive(replay, track_id)
        name = driver_id.removeprefix("run:")
        return self.leaderboard.add(
            track_id, replay, lap, driver=name, kind=kind, driver_id=driver_id, num_ticks=num_ticks
        )

    def driver_replay(self, driver_id: str, track_id: str) -> bytes:
        """The laps of the casual or the optimal driver. Nothing is entered for whoever asks."""
        track = load_track(track_id)
        known = self.leaderboard.find_driver(driver_id, track_digest(track.nodes))
        return (self.leaderboard.replay(known.id) if known else None) or self._drive_of(driver_id, track)

    def enter_known_drivers(self, track: Track) -> None:
        """Enter the drivers that ship with the package, unless they are on the leaderboard."""
        for _ in self._enter_each(track):
            pass

    def enter_later(self, track_ids: Sequence[str]) -> None:
        """Enter the drivers that ship on leaderboards, one driver at a time between the requests that wait."""
        entering: dict[str, Future[None]] = {track_id: Future() for track_id in track_ids}
        self._entering |= entering

        def steps() -> Iterator[None]:
            for track_id, done in entering.items():
                try:
                    yield from self._enter_each(load_track(track_id))
                except HotlapError as error:
                    _log.warning("%s", error)
                finally:
                    done.set_result(None)
                    if self._entering.get(track_id) is done:  # not where it was asked for again meanwhile
                        del self._entering[track_id]

        self._step_later(steps())

    async def wait_until_entered(self, track_id: str) -> None:
        """Wait until the drivers that `enter_later` was told to enter for a track are on its leaderboard."""
        waiting = self._entering.get(track_id)
        if waiting is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(waiting)), ENTERING_WAIT_S)

    def _step_later(self, steps: Iterator[None]) -> None:
        def step() -> None:
            wait_s = self._quiet_until_s - time.monotonic()
            if wait_s > 0.0:
                timer = threading.Timer(wait_s, self._step_later, [steps])
                timer.daemon = True
                timer.start()
            elif not self.is_closing and next(steps, self) is not self:
                self._step_later(steps)

        with suppress(RuntimeError):  # the server ends
            self._simulator.submit(step)

    def _enter_each(self, track: Track) -> Iterator[None]:
        digest = track_digest(track.nodes)
        optimal = ["optimal"] if recorded_drive("optimal", track.track_id) is not None else []
        for driver_id in ("casual", *optimal, *shipped_model_ids(track.track_id)):
            if (driver_id, digest) in self._failed or self.leaderboard.find_driver(driver_id, digest) is not None:
                continue
            try:
                self.enter_driver(driver_id, track.track_id)
            except (HotlapError, ApiError) as error:
                self._failed.add((driver_id, digest))
                _log.warning("%s is not on the board of %s: %s", driver_id, track.track_id, error)
            yield

    def _drive_of(self, driver_id: str, track: Track) -> bytes:
        """The replay of the casual or the optimal driver: recorded, or, the casual driver's, driven."""
        replay, digest = find_recorded(driver_id, track), track_digest(track.nodes)
        if replay is not None:
            return replay.to_bytes()
        if driver_id == "optimal":
            raise ApiError(HTTPStatus.CONFLICT, f"{track.track_id}: its optimal lap is not solved yet. Solve it first.")
        content = self._drives.get(digest)
        if content is None:
            content = self._record_casual(track.track_id).to_bytes()
            self._drives.put(digest, content, len(content))
        return content


def services_of(request: Request) -> PageServices:
    """The services of the server that got a request."""
    services: PageServices = request.app.state.services
    return services


def limit(rate: RateLimit) -> None:
    """Count a request; an ApiError where there were too many."""
    wait_s = rate.take()
    if wait_s is not None:
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, "too many requests. Wait a moment.", wait_s)

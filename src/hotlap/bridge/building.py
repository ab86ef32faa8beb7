"""Builds simulations on a thread of its own, a track at a time, so that no client waits for the tracks of another."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hotlap.bridge.simulation import Simulation, SimulationPlan
from hotlap.bridge.simulation_plan import build_simulation
from hotlap.envs.fleet import needs_guide, ribbon_of
from hotlap.tracks.registry import Track, load_track


class Building:
    """A simulation in the making. `work` may be called on any thread; `result` when it says that it is done."""

    def __init__(self, plan: SimulationPlan, rng: np.random.Generator) -> None:
        self._plan, self._rng = plan, rng
        self._left = plan.driven_ids
        self._tracks: list[Track] = []  # kept alive, so that none is built twice
        self._result: Simulation | None = None
        self._error: Exception | None = None
        self.is_cancelled = False

    def work(self) -> bool:
        """Build one track or, when all are there, the simulation; returns whether it is done."""
        try:
            if self.is_cancelled:
                return True
            if self._left:
                track = load_track(self._left.pop(0))
                ribbon_of(track, needs_guide(self._plan.observation, self._plan.settings))
                self._tracks.append(track)
                return False
            self._result = build_simulation(self._plan, self._rng)
        except Exception as error:  # raised again by `result`, where it becomes a reply
            self._error = error
        return True

    def result(self) -> Simulation:
        """The simulation; raises what went wrong."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RuntimeError("the simulation is not built yet")
        return self._result


class Builder:
    """One thread for all buildings, which take turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(1, "builder")
        self._is_stopped = False

    def submit(self, building: Building, on_done: Callable[[], None]) -> None:
        """Build it; `on_done` is called on the event loop."""
        if self._is_stopped:
            return

        def go_on(turn: "asyncio.Future[bool]") -> None:
            if turn.cancelled():
                return
            if turn.result():
                on_done()
            else:
                self.submit(building, on_done)

        self._loop.run_in_executor(self._pool, building.work).add_done_callback(go_on)

    def stop(self) -> None:
        """Wait for the track that is being built, and build nothing more."""
        self._is_stopped = True
        self._pool.shutdown(cancel_futures=True)

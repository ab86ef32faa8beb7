"""Simulations are built a track at a time; several take turns, and a cancelled one is dropped."""

import asyncio

import numpy as np
import pytest

from hotlap.bridge.building import Builder, Building
from hotlap.bridge.protocol import Reset
from hotlap.bridge.simulation_plan import plan_simulation
from hotlap.errors import TrackError

RNG = np.random.default_rng(0)


def building_of(*track_ids: str) -> Building:
    return Building(plan_simulation(Reset(track_id=list(track_ids), num_envs=2 * len(track_ids))), RNG)


def test_it_builds_a_track_at_a_time_and_then_the_simulation():
    building = building_of("track-02", "track-01", "track-02")
    assert [building.work() for _ in range(3)] == [False, False, True]
    assert [track.track_id for track in building.result().fleet.tracks] == ["track-02", "track-01"]


def test_an_error_is_raised_by_the_result(monkeypatch):
    def fail(track_id: str) -> None:
        raise TrackError("gone")

    monkeypatch.setattr("hotlap.bridge.building.load_track", fail)
    building = building_of("track-01")
    assert building.work()
    with pytest.raises(TrackError, match="gone"):
        building.result()


def test_two_buildings_take_turns_and_a_cancelled_one_is_not_built_on():
    async def build() -> list[str]:
        order: list[str] = []
        builder = Builder(asyncio.get_running_loop())
        both_done = asyncio.Event()
        buildings = {"long": building_of("track-01", "track-02", "track-03"), "short": building_of("track-01")}
        buildings["cancelled"] = building_of("track-01", "track-02")
        buildings["cancelled"].is_cancelled = True
        for name, building in buildings.items():

            def on_done(name: str = name) -> None:
                order.append(name)
                if len(order) == len(buildings):
                    both_done.set()

            builder.submit(building, on_done)
        await both_done.wait()
        builder.stop()
        builder.submit(building_of("track-01"), lambda: order.append("after the stop"))
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="not built yet"):
            buildings["cancelled"].result()
        return order

    assert asyncio.run(build()) == ["cancelled", "short", "long"]

"""The CPU engine: bad actions, resets, action repeat, threads."""

import threading

import numpy as np
import pytest

from hotlap.sim import batch_cpu
from hotlap.sim.rewards import START_RANDOM
from sim.kernels import F
from sim.worlds import World, nodes_of


def racing_world(num_cars: int = 12, **rules) -> World:
    tracks = [nodes_of("track-01"), nodes_of("track-03"), nodes_of("oval")]
    return World(tracks, num_cars, start=START_RANDOM, **rules)


def actions_at(tick: int, num_cars: int) -> np.ndarray:
    return np.random.default_rng(tick).uniform([-1, 0, 0], [1, 1, 0.3], (num_cars, 3)).astype(F)


def everything(world: World) -> list[bytes]:
    return [array.tobytes() for array in world.batch]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_bad_action_is_reported_and_no_car_moves(bad, column, num_threads):
    world = racing_world()
    world.step(actions_at(0, 12))
    before = everything(world)
    actions = actions_at(1, 12)
    actions[7, column] = bad
    actions[9, column] = bad
    engine = batch_cpu.CpuEngine(num_threads)
    assert engine.step(actions, world.scenario, world.batch, autoreset=True, repeat=1) == 7
    assert everything(world) == before


def test_cars_drive_their_own_tracks_as_if_alone():
    together = racing_world()
    names = ("track-01", "track-03", "oval")
    alone = [World([nodes_of(names[car % 3])], start=START_RANDOM) for car in range(12)]
    for car, world in enumerate(alone):
        world.states["seed"] = car
        world.reset()
    for tick in range(300):
        actions = actions_at(tick, 12)
        together.step(actions)
        for car, world in enumerate(alone):
            world.step(actions[car])
    for car, world in enumerate(alone):
        assert np.array_equal(world.batch.obs[0], together.batch.obs[car])
        assert world.batch.rewards[0] == together.batch.rewards[car]
        mine, theirs = world.states[0].copy(), together.states[car].copy()
        mine["track"] = theirs["track"] = 0
        assert mine == theirs


def test_autoreset_restarts_a_car_and_keeps_its_final_observation():
    world = racing_world(max_ticks=50)
    others = racing_world(max_ticks=50)
    for tick in range(50):
        assert not world.batch.truncated.any()
        world.step(actions_at(tick, 12), autoreset=True)
        others.step(actions_at(tick, 12))
    assert world.batch.truncated.all()
    assert np.array_equal(world.batch.final_obs, others.batch.obs)
    assert np.array_equal(world.batch.rewards, others.batch.rewards)
    assert (world.batch.final_infos["tick"] == 50).all()
    assert (world.infos["tick"] == 0).all()
    assert (world.states["episode"] == 1).all()
    # Without autoreset a car drives on after its end.
    others.step(actions_at(50, 12))
    assert others.batch.truncated.all()
    assert (others.states["tick"] == 51).all()
    assert (others.states["episode"] == 0).all()
    others.states["episode"] += 1
    others.reset()
    assert np.array_equal(world.states, others.states)
    assert np.array_equal(world.batch.obs, others.batch.obs)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_repeated_action_equals_single_ticks(num_threads):
    held, others = racing_world(), racing_world()
    for step in range(60):
        actions = actions_at(step, 12)
        held.step(actions, num_threads=num_threads, repeat=4)
        earned = np.zeros(12)
        for _ in range(4):
            others.step(actions)
            earned += others.batch.rewards
        assert np.array_equal(held.states, others.states)
        assert np.array_equal(held.batch.obs, others.batch.obs)
        np.testing.assert_allclose(held.batch.rewards, earned, rtol=1e-5, atol=1e-8)
        terms = sum(held.infos[name] for name in ("progress", "speed", "wall", "offTrack", "backward", "stillness"))
        np.testing.assert_allclose(held.batch.rewards, terms, rtol=1e-5, atol=1e-8)


def test_an_action_is_not_repeated_past_the_end_of_an_episode():
    world = racing_world(max_ticks=10)
    ticks = []
    for step in range(5):
        world.step(actions_at(step, 12), autoreset=True, repeat=4)
        ticks.append(int(np.where(world.batch.truncated, world.batch.final_infos["tick"], world.infos["tick"])[0]))
    assert ticks == [4, 8, 10, 4, 8]
    assert (world.states["episode"] == 1).all()


def test_observing_again_sees_the_same_and_a_reset_changes_only_the_cars_in_the_mask():
    world = racing_world()
    for tick in range(20):
        world.step(actions_at(tick, 12))
    before, seen = world.states.copy(), world.batch.obs.copy()
    world.batch.obs[:] = -1.0
    batch_cpu.observe_cars(*world.scenario, world.batch)
    assert np.array_equal(world.batch.obs, seen)
    mask = np.arange(12) % 3 == 0
    batch_cpu.reset_cars(mask, world.ribbons, world.cars, world.rules, world.batch)
    assert np.array_equal(world.states[~mask], before[~mask])
    assert (world.states["tick"][mask] == 0).all()
    assert (world.infos["tick"][mask] == 0).all()
    assert np.isnan(world.infos["lapTime"][mask]).all()


def test_two_python_threads_may_step_batches_at_the_same_time():
    worlds = [racing_world(num_cars=64) for _ in range(2)]

    def drive(world: World) -> None:
        for tick in range(100):
            world.step(actions_at(tick, 64), num_threads=2)

    threads = [threading.Thread(target=drive, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert everything(worlds[0]) == everything(worlds[1])


def test_an_empty_batch_can_be_stepped():
    world = World([nodes_of("oval")], num_cars=0)
    world.step(np.zeros((0, 3)))
    assert world.batch.obs.shape == (0, 14)

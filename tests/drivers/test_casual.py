"""The casual driver completes its laps, stays well below the limit, and is deterministic."""

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver, CasualHabits, SmoothNoise
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.evaluation.evaluate import LapCounter, drive, make_evaluation_fleet
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import GRAVITY_MPS2, TICKS_PER_SECOND, CarParameters
from hotlap.tracks.registry import split_ids

# Whole laps of many cars, on a machine that may be busy.
pytestmark = pytest.mark.timeout(60)

REACTION_TICKS = round(0.25 * TICKS_PER_SECOND)


def line_up(track_ids: str | list[str], num_cars: int, seed: int = 0, habits: CasualHabits | None = None):
    """A casual driver and its fleet on the start line."""
    if isinstance(track_ids, str):
        fleet = make_evaluation_fleet(track_ids, num_cars)
    else:
        fleet = Fleet(track_ids, RacerSettings.load({"episode": {"maxSteps": 2**31 - 1}}), num_cars, CpuEngine())
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset(start="line")
    driver = CasualDriver(habits)
    driver.begin(fleet, seed)
    return driver, fleet


@pytest.fixture(scope="module")
def built_in_laps() -> LapCounter:
    """A standing and a flying lap of 8 cars on each built-in track; car i drives track i modulo 3."""
    driver, fleet = line_up(["track-01", "track-02", "track-03"], 24)
    return drive(driver, fleet, num_laps=2)


def test_it_laps_the_built_in_tracks_without_touching_a_wall(built_in_laps):
    assert len(built_in_laps.laps) == 48
    assert built_in_laps.wall_contacts == 0
    assert all(lap.is_clean for lap in built_in_laps.laps)


def test_its_standing_lap_of_the_first_track_fits_into_an_episode(built_in_laps):
    times_s = [lap.time_s for lap in built_in_laps.laps if lap.car % 3 == 0 and lap.number == 1]
    assert len(times_s) == 8
    assert max(times_s) < 45.0


def test_it_laps_generated_tracks():
    ids = split_ids("train")[:15]
    driver, fleet = line_up(ids, len(ids))
    counter = drive(driver, fleet, num_laps=1)
    assert sorted(lap.car for lap in counter.laps) == list(range(15))
    assert counter.wall_contacts == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("split", "at_least"), [("train", 95), ("test", 24)])
def test_it_laps_almost_every_generated_track(split, at_least):
    ids = split_ids(split)
    driver, fleet = line_up(ids, len(ids))
    touched = np.zeros(len(ids), bool)
    running = np.ones(len(ids), bool)
    for _ in range(300 * TICKS_PER_SECOND):
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        touched |= fleet.batch.infos["wallContact"] & running
        running &= (fleet.states["lap"] == 1) & ~fleet.batch.terminated
        if not running.any():
            break
    good = (fleet.states["lap"] > 1) & ~touched
    assert good.sum() >= at_least, [ids[k] for k in np.flatnonzero(~good)]


def test_it_uses_about_seventy_percent_of_the_grip():
    driver, fleet = line_up("track-01", 1)
    sideways_mps2 = []
    while fleet.states["lap"][0] < 3:
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        if fleet.states["lap"][0] == 2:
            sideways_mps2.append(abs(float(fleet.states["forward_mps"][0]) * float(fleet.states["yaw_radps"][0])))
    fraction = np.percentile(sideways_mps2, 95) / (CarParameters().friction * GRAVITY_MPS2)
    assert 0.55 < fraction < 0.85


def test_a_bolder_driver_is_faster():
    times_s = []
    for grip_share in (0.60, 0.75):
        driver, fleet = line_up("track-01", 1, habits=CasualHabits(grip_share=grip_share))
        times_s.append(drive(driver, fleet, num_laps=1).laps[0].time_s)
    assert times_s == sorted(times_s, reverse=True)


def record(num_cars: int, seed: int, num_ticks: int = 400) -> np.ndarray:
    """Actions (num_ticks, num_cars, 3)."""
    driver, fleet = line_up("track-01", num_cars, seed)
    actions = []
    for _ in range(num_ticks):
        actions.append(driver.act(fleet.batch.obs))
        fleet.step(actions[-1], autoreset=False)
    return np.stack(actions)


def test_the_same_seed_gives_the_same_drive():
    np.testing.assert_array_equal(record(2, seed=7), record(2, seed=7))


def test_seeds_and_cars_have_different_noise():
    one, other = record(2, seed=7), record(2, seed=8)
    assert (one != other).any(axis=(1, 2)).mean() > 0.9
    assert (one[:, 0] != one[:, 1]).any(axis=1).mean() > 0.9


def test_a_car_does_not_depend_on_the_number_of_cars():
    np.testing.assert_array_equal(record(1, seed=3)[:, 0], record(5, seed=3)[:, 0])


def test_a_seed_may_be_any_whole_number():
    for seed in (-1, 2**64, 2**200):
        assert np.isfinite(record(1, seed, num_ticks=3)).all()


def test_begin_clears_the_memory():
    driver, fleet = line_up("track-01", 1, seed=1)
    for _ in range(100):
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
    fleet.reset(start="line")
    driver.begin(fleet, 1)
    np.testing.assert_array_equal(driver.act(fleet.batch.obs), record(1, seed=1, num_ticks=1)[0])


def test_actions_are_in_the_space():
    actions = record(4, seed=0, num_ticks=1500)
    assert actions.dtype == np.float32
    assert (actions >= [-1, 0, 0]).all()
    assert (actions <= [1, 1, 1]).all()
    assert (actions[..., 1] * actions[..., 2] == 0.0).all()  # never both pedals


def test_its_reaction_takes_a_quarter_of_a_second():
    """Two cars are the same until one is turned; its actions change 15 ticks later, not before."""
    habits = CasualHabits(steer_noise=0.0, pedal_noise=0.0)
    (driver, fleet), (moved_driver, moved_fleet) = (line_up("track-01", 1, habits=habits) for _ in range(2))
    for _ in range(120):
        for one, cars in ((driver, fleet), (moved_driver, moved_fleet)):
            cars.step(one.act(cars.batch.obs), autoreset=False)
    moved_fleet.states["yaw_rad"] += 0.1
    same = []
    for _ in range(REACTION_TICKS + 3):
        # The fleets are not stepped, so that only the observed state differs.
        same.append(np.array_equal(driver.act(fleet.batch.obs), moved_driver.act(moved_fleet.batch.obs)))
    assert same == [True] * REACTION_TICKS + [False] * 3


def test_the_noise_has_unit_variance_zero_mean_and_the_given_correlation_time():
    noise = SmoothNoise(num_cars=50, seed=0, memory_s=0.3)
    values = np.stack([noise.next().copy() for _ in range(2000)])[200:]
    assert values.shape == (1800, 50, 2)
    assert values.std() == pytest.approx(1.0, abs=0.05)
    assert abs(values.mean()) < 0.05
    lagged = (values[1:] * values[:-1]).mean() / (values**2).mean()
    assert lagged == pytest.approx(np.exp(-1.0 / 18.0), abs=0.01)
    assert abs(np.corrcoef(values[..., 0].ravel(), values[..., 1].ravel())[0, 1]) < 0.1


def test_the_noise_does_not_depend_on_the_block_size(monkeypatch):
    def drawn() -> np.ndarray:
        noise = SmoothNoise(2, seed=1, memory_s=0.3)
        return np.stack([noise.next().copy() for _ in range(150)])

    before = drawn()
    monkeypatch.setattr(SmoothNoise, "BLOCK_TICKS", 7)
    np.testing.assert_array_equal(drawn(), before)

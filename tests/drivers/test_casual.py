"""The casual driver: it gets round, it is no hero, and it is the same every time."""

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver, CasualHabits, Tremble
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.evaluation.evaluate import LapCounter, drive, measuring_fleet
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import GRAVITY_MPS2, TICKS_PER_SECOND, CarParameters
from hotlap.tracks.registry import split_ids

# Whole laps of many cars, on a machine that may be busy with other things.
pytestmark = pytest.mark.timeout(60)

REACTION_TICKS = round(0.25 * TICKS_PER_SECOND)


def line_up(track_ids: str | list[str], num_cars: int, seed: int = 0, habits: CasualHabits | None = None):
    """A fleet on the line with a casual driver at every wheel."""
    if isinstance(track_ids, str):
        fleet = measuring_fleet(track_ids, num_cars)
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
    return drive(driver, fleet, laps_wanted=2)


def test_it_laps_the_built_in_tracks_without_touching_a_wall(built_in_laps):
    assert len(built_in_laps.laps) == 48
    assert built_in_laps.wall_contacts == 0
    assert all(lap.is_clean for lap in built_in_laps.laps)


def test_its_standing_lap_of_the_first_track_fits_into_an_episode(built_in_laps):
    times_s = [lap.time_s for lap in built_in_laps.laps if lap.car % 3 == 0 and lap.number == 1]
    assert len(times_s) == 8
    assert max(times_s) < 45.0


def test_it_laps_tracks_it_was_not_made_for():
    ids = split_ids("train")[:15]
    driver, fleet = line_up(ids, len(ids))
    counter = drive(driver, fleet, laps_wanted=1)
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
    share = np.percentile(sideways_mps2, 95) / (CarParameters().friction * GRAVITY_MPS2)
    assert 0.55 < share < 0.85


def test_a_bolder_driver_is_faster():
    times_s = []
    for grip_share in (0.60, 0.75):
        driver, fleet = line_up("track-01", 1, habits=CasualHabits(grip_share=grip_share))
        times_s.append(drive(driver, fleet, laps_wanted=1).laps[0].time_s)
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


def test_other_seeds_and_other_cars_tremble_otherwise():
    one, other = record(2, seed=7), record(2, seed=8)
    assert (one != other).any(axis=(1, 2)).mean() > 0.9
    assert (one[:, 0] != one[:, 1]).any(axis=1).mean() > 0.9


def test_a_car_does_not_depend_on_how_many_others_there_are():
    np.testing.assert_array_equal(record(1, seed=3)[:, 0], record(5, seed=3)[:, 0])


def test_a_seed_may_be_any_whole_number():
    for seed in (-1, 2**64, 2**200):
        assert np.isfinite(record(1, seed, num_ticks=3)).all()


def test_begin_forgets_the_last_drive():
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
    """Two cars that are the same until one is moved: the hands learn of it 15 ticks later, not before."""
    calm = CasualHabits(steer_tremble=0.0, pedal_tremble=0.0)
    (driver, fleet), (moved_driver, moved_fleet) = (line_up("track-01", 1, habits=calm) for _ in range(2))
    for _ in range(120):
        for one, cars in ((driver, fleet), (moved_driver, moved_fleet)):
            cars.step(one.act(cars.batch.obs), autoreset=False)
    moved_fleet.states["yaw_rad"] += 0.1
    same = []
    for _ in range(REACTION_TICKS + 3):
        # The worlds stand still, so that nothing but what was seen differs.
        same.append(np.array_equal(driver.act(fleet.batch.obs), moved_driver.act(moved_fleet.batch.obs)))
    assert same == [True] * REACTION_TICKS + [False] * 3


def test_the_tremble_is_smooth_of_unit_size_and_without_drift():
    tremble = Tremble(num_cars=50, seed=0, memory_s=0.3)
    values = np.stack([tremble.next().copy() for _ in range(2000)])[200:]
    assert values.shape == (1800, 50, 2)
    assert values.std() == pytest.approx(1.0, abs=0.05)
    assert abs(values.mean()) < 0.05
    lagged = (values[1:] * values[:-1]).mean() / (values**2).mean()
    assert lagged == pytest.approx(np.exp(-1.0 / 18.0), abs=0.01)
    assert abs(np.corrcoef(values[..., 0].ravel(), values[..., 1].ravel())[0, 1]) < 0.1


def test_the_tremble_does_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    def drawn() -> np.ndarray:
        tremble = Tremble(2, seed=1, memory_s=0.3)
        return np.stack([tremble.next().copy() for _ in range(150)])

    before = drawn()
    monkeypatch.setattr(Tremble, "BLOCK_TICKS", 7)
    np.testing.assert_array_equal(drawn(), before)

"""The figures of an evaluation, with drivers whose figures are known."""

import json
import math
from dataclasses import fields

import numpy as np
import pytest

from evaluation.statue import Statue
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ConfigError, UnknownTrackError
from hotlap.evaluation import evaluate as evaluate_module
from hotlap.evaluation.evaluate import (
    Evaluation,
    Lap,
    LapCounter,
    StuckDetector,
    compute_figures,
    drive,
    evaluate,
    make_evaluation_fleet,
)

FIGURES = [
    "episodes", "laps", "completion_rate", "clean_lap_rate", "mean_lap_time_sec", "best_lap_time_sec",
    "std_lap_time_sec", "standing_lap_time_sec", "gap_to_optimal", "wall_contacts_per_lap", "mean_reward",
]  # fmt: skip


class Circler(Statue):
    """Full lock and a little throttle: it drives in circles."""

    name = "circler"

    def act(self, obs):
        return np.tile(np.array([1.0, 0.15, 0.0], np.float32), (self._num_cars, 1))


class Stopper(CasualDriver):
    """Every other car stops after its first lap."""

    name = "stopper"

    def act(self, obs):
        actions = super().act(obs)
        is_stopped = (self._fleet.states["lap"] > 1) & (np.arange(self._fleet.num_cars) % 2 == 1)
        actions[is_stopped] = [0.0, 0.0, 1.0]
        return actions


def drive_from_the_line(driver, num_cars, num_laps, seed=0):
    """The fleet after the drive, and what was counted."""
    fleet = make_evaluation_fleet("track-01", num_cars)
    fleet.seed(np.arange(seed, seed + num_cars, dtype=np.uint64))
    fleet.reset(start="line")
    driver.begin(fleet, seed)
    return fleet, drive(driver, fleet, num_laps=num_laps)


@pytest.fixture(scope="module")
def casual() -> Evaluation:
    return evaluate(CasualDriver(), "track-01", episodes=4, seed=5)


def test_the_times_of_all_laps_standing_and_flying_are_there(casual):
    assert len(casual.lap_times_s) == casual.laps == 8
    assert casual.best_lap_time_sec in casual.lap_times_s
    assert max(casual.lap_times_s) >= casual.standing_lap_time_sec


def test_all_figures_can_be_written_as_json():
    result = evaluate(Statue(), "track-01", episodes=2)
    written = json.loads(json.dumps(result.as_dict()))
    assert [name for name in written if name in FIGURES] == FIGURES
    details = {"lap_times_s", "failed_cars", "car"}  # the standard car needs no name
    assert list(written) == [field.name for field in fields(Evaluation) if field.name not in details]
    assert {key: written[key] for key in ("driver", "track", "start", "seed")} == {
        "driver": "statue", "track": "track-01", "start": "line", "seed": 0
    }  # fmt: skip


@pytest.mark.parametrize("start", ["line", "random"])
def test_without_a_lap_there_are_no_times(start):
    result = evaluate(Statue() if start == "line" else Circler(), "track-01", episodes=3, start=start)
    assert (result.episodes, result.laps, result.completion_rate) == (3, 0, 0.0)
    for name in FIGURES[3:-1]:
        assert getattr(result, name) is None, name


def test_a_statue_is_stopped_by_the_stillness_rule():
    fleet, counter = drive_from_the_line(Statue(), 2, num_laps=2)
    assert fleet.states["tick"].tolist() == [180, 180]
    # 180 ticks of the stillness penalty and not a metre of progress.
    np.testing.assert_allclose(counter.returns, -0.180, rtol=1e-4)


def test_a_car_that_drives_in_circles_is_stopped(monkeypatch):
    monkeypatch.setattr(evaluate_module, "STUCK_AFTER_S", 5)
    fleet, _ = drive_from_the_line(Circler(), 1, num_laps=1)
    assert 5 * 60 < fleet.states["tick"][0] <= 10 * 60


def test_a_long_way_to_the_line_does_not_count_as_stuck():
    """Seed 17 starts just after the line of track-03; the casual driver needs 80 s to reach it."""
    assert evaluate(CasualDriver(), "track-03", episodes=1, start="random", seed=17).completion_rate == 1.0


def test_a_car_that_gets_no_further_is_stuck_after_a_minute():
    """Both cars go back and forth over the line, 100 m each way; the second moves on by 120 m once."""
    fleet = make_evaluation_fleet("track-01", 2)
    fleet.reset(start="line")
    stuck = StuckDetector(fleet)
    lap_m = fleet.tracks[0].nodes.length_m
    stuck_at = [0, 0]
    for tick in range(1, 7500):
        swing_m = 100.0 * math.sin(tick / 50.0)
        fleet.states["arc_m"] = [swing_m % lap_m, (swing_m + (120.0 if tick > 1800 else 0.0)) % lap_m]
        for car in np.flatnonzero(stuck.is_stuck(tick)):
            stuck_at[car] = stuck_at[car] or tick
    assert stuck_at[0] == 3601
    assert 3601 + 1800 < stuck_at[1] < 3601 + 2400


def test_the_figures_of_the_casual_driver(casual):
    result = casual
    assert (result.laps, result.completion_rate, result.clean_lap_rate) == (8, 1.0, 1.0)
    assert result.wall_contacts_per_lap == 0.0
    assert result.gap_to_optimal is None
    assert result.best_lap_time_sec <= result.mean_lap_time_sec < result.standing_lap_time_sec < 45.0
    assert 0.0 < result.std_lap_time_sec < 1.0
    # Two laps of progress, less the stillness penalty of the first moments.
    assert result.mean_reward == pytest.approx(2.0, abs=0.03)


def test_the_figures_are_those_of_the_single_laps(casual):
    _, counter = drive_from_the_line(CasualDriver(), 4, num_laps=2, seed=5)
    flying = [lap.time_s for lap in counter.laps if lap.number == 2]
    standing = [lap.time_s for lap in counter.laps if lap.number == 1]
    assert len(flying) == len(standing) == 4
    assert casual.mean_lap_time_sec == pytest.approx(np.mean(flying))
    assert casual.best_lap_time_sec == min(flying)
    assert casual.std_lap_time_sec == pytest.approx(np.std(flying))
    assert casual.standing_lap_time_sec == pytest.approx(np.mean(standing))
    # The same seed gives the same drive.
    assert casual.mean_reward == pytest.approx(counter.returns.mean(), rel=1e-12)


def test_half_the_cars_complete_their_laps():
    result = evaluate(Stopper(), "track-01", episodes=4, seed=5)
    assert result.completion_rate == 0.5
    assert result.laps == 6
    assert result.clean_lap_rate == 1.0


def test_from_a_random_start_there_is_no_standing_lap(casual):
    result = evaluate(CasualDriver(), "track-01", episodes=3, start="random", seed=2)
    assert (result.laps, result.completion_rate, result.start) == (3, 1.0, "random")
    assert result.standing_lap_time_sec is None
    assert result.mean_lap_time_sec == pytest.approx(casual.mean_lap_time_sec, rel=0.02)


def test_there_is_no_time_limit(casual):
    assert 60.0 * (casual.standing_lap_time_sec + casual.mean_lap_time_sec) > 3000
    assert make_evaluation_fleet("track-01", 1).settings.episode.max_ticks > 10**9


def test_only_clean_laps_count_for_the_times():
    counter = LapCounter(4)
    counter.laps = [
        Lap(0, 1, 50.0, True), Lap(1, 1, 60.0, False), Lap(0, 2, 40.0, True), Lap(1, 2, 30.0, False),
        Lap(2, 1, 54.0, True), Lap(2, 2, 44.0, True),
    ]  # fmt: skip
    counter.wall_contacts = 3
    counter.returns[:] = [1.0, 2.0, 3.0, 6.0]
    measured = compute_figures(counter, episodes=4, num_laps=2)
    result = Evaluation(driver="x", track="track-01", start="line", seed=0, episodes=4, **measured)
    assert (result.mean_lap_time_sec, result.best_lap_time_sec, result.std_lap_time_sec) == (42.0, 40.0, 2.0)
    assert result.median_lap_time_sec == 42.0
    assert result.standing_lap_time_sec == 52.0
    assert result.completion_rate == 0.75
    assert result.clean_lap_rate == pytest.approx(4 / 6)
    assert result.wall_contacts_per_lap == 0.5
    assert result.mean_reward == 3.0
    assert result.gap_to_optimal is None
    assert result.against(35.0).gap_to_optimal == pytest.approx(0.2)


def test_a_contact_is_counted_when_it_begins():
    fleet = make_evaluation_fleet("track-01", 2)
    counter = LapCounter(2)
    running = np.array([True, True])
    infos = fleet.batch.infos
    infos["lapTime"] = np.nan
    for touching in ([False, False], [True, False], [True, True], [False, True], [True, True]):
        infos["wallContact"] = touching
        counter.add_tick(fleet, running)
    assert counter.wall_contacts == 3


def test_cars_that_are_done_are_not_counted():
    fleet = make_evaluation_fleet("track-01", 2)
    fleet.batch.infos["lapTime"] = [31.0, 32.0]
    fleet.batch.infos["lap"] = 2
    fleet.batch.infos["wallContact"] = True
    fleet.batch.rewards[:] = 1.0
    counter = LapCounter(2)
    counter.add_tick(fleet, np.array([False, True]))
    assert counter.laps == [Lap(1, 1, 32.0, False)]
    assert counter.returns.tolist() == [0.0, 1.0]
    assert counter.wall_contacts == 1


def test_progress_rises_to_the_end():
    fractions: list[float] = []
    evaluate(CasualDriver(), "track-01", episodes=2, start="random", progress=fractions.append)
    assert len(fractions) > 40
    assert all(0.0 <= fraction <= 1.0 for fraction in fractions)
    assert fractions[-1] > 0.95
    assert (np.diff(fractions) > -0.02).all()


@pytest.mark.parametrize("episodes", [0, -1, 10**9])
def test_a_number_of_episodes_out_of_range_is_refused(episodes):
    with pytest.raises(ConfigError, match="episodes must be from 1 to 100000"):
        evaluate(Statue(), "track-01", episodes=episodes)


def test_an_unknown_start_or_track_is_refused():
    with pytest.raises(ConfigError, match="start must be one of 'line', 'random', got 'pit'"):
        evaluate(Statue(), "track-01", episodes=1, start="pit")
    with pytest.raises(UnknownTrackError, match="'nope'"):
        evaluate(Statue(), "nope", episodes=1)

"""Drivers that the server itself drives and enters on the board."""

import numpy as np
import pytest

from hotlap.drivers.packed import PackedDriver
from hotlap.errors import DriverError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from hotlap.web import services as services_module
from hotlap.web.answers import ApiError
from hotlap.web.leaderboard import Leaderboard
from hotlap.web.page_data import recorded_run
from hotlap.web.replays import Replay, verify
from hotlap.web.services import PageServices


@pytest.fixture
def services(tmp_path):
    made = PageServices(Leaderboard(tmp_path / "board.sqlite3"))
    yield made
    made.close()


def digest_of(track_id: str) -> str:
    return track_digest(load_track(track_id).nodes)


def test_the_recorded_model_is_on_the_board_of_its_track_with_the_lap_of_its_policy(services):
    run = recorded_run()
    if run is None:
        pytest.skip("no run ships")
    track_id = run["track"]
    services.enter_known_drivers(load_track(track_id))
    entry = services.leaderboard.find_driver("recorded", digest_of(track_id))
    assert entry.kind == "model"
    replay = Replay.from_bytes(services.leaderboard.replay(entry.id))
    assert not replay.is_quantised
    assert verify(replay, track_id).time_s == entry.lap_time_s
    # Entered once, however often the board is looked at.
    services.enter_known_drivers(load_track(track_id))
    kinds = [one.kind for one in services.leaderboard.entries(track_id, digest_of(track_id))]
    assert sorted(kinds) == ["casual", "model", "model", "model", "optimal"]


def test_a_model_lap_is_to_the_bit_the_lap_of_an_evaluation(services, racer, monkeypatch):
    from hotlap.evaluation.evaluate import drive_compiled, make_evaluation_fleet
    from hotlap.models.actor import pack_model
    from hotlap.models.model_file import read_model

    run = recorded_run()
    if run is None:
        pytest.skip("no run ships")
    from hotlap.web.drivers import make_model_driver

    driver = make_model_driver("recorded", run["track"])
    fleet = make_evaluation_fleet(run["track"], 1, driver.observation)
    fleet.seed(np.zeros(1, np.uint64))
    fleet.reset(start="line")
    laps = drive_compiled(driver, fleet, 2).laps
    entry, is_new = services.enter_driver("recorded", run["track"])
    assert is_new
    assert entry.lap_time_s in [lap.time_s for lap in laps]
    # A model that was trained for a few hundred steps completes no lap, which is said and entered nowhere.
    model = read_model(racer.path)
    monkeypatch.setattr(services_module, "make_model_driver", lambda *_: PackedDriver(pack_model(model), 3, "beginner"))
    with pytest.raises(DriverError, match="completed no lap of track-01"):
        services.enter_driver("run:beginner", "track-01")


def test_a_driver_that_fails_is_not_driven_again_on_every_look(services, monkeypatch):
    calls = []

    def fail(driver_id, track_id):
        calls.append(driver_id)
        raise DriverError("no lap.")

    monkeypatch.setattr(services, "enter_driver", fail)
    for _ in range(3):
        services.enter_known_drivers(load_track("track-02"))
    assert sorted(calls) == ["casual", "champion", "generalist", "optimal"]


def test_the_optimal_driver_is_not_entered_before_its_lap_is_solved(services):
    with pytest.raises(ApiError, match="not solved yet"):
        services.enter_driver("optimal", "train-088")
    assert services.leaderboard.find_driver("optimal", digest_of("train-088")) is None


def test_the_casual_driver_is_more_careful_where_it_drives_no_clean_lap_otherwise(services, monkeypatch):
    tried = []

    def record(driver, track_id, num_cars):
        tried.append(driver.habits.grip_share)
        if driver.habits.grip_share > 0.6:
            raise DriverError("no clean flying lap")
        return f"laps of {num_cars} cars on {track_id}"

    monkeypatch.setattr(services_module, "record_typical_drive", record)
    assert services._record_casual("track-01") == "laps of 20 cars on track-01"
    assert tried == [0.70, 0.63, 0.56]

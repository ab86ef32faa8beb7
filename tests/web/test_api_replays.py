"""Shared replays over HTTP: laps and races are driven again before they get an id, and forged ones get none."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.evaluation.race_replay import drive_again, read_replay
from hotlap.web.race_replay_format import RivalRace
from hotlap.web.replay_format import Replay
from hotlap.web.replays import record_drive
from web.rival_race_makers import drive_a_race

MAX_ID_CHARS = 22


@pytest.fixture(scope="module")
def lap() -> Replay:
    return record_drive(CasualDriver(), "track-01", num_laps=1, is_quantised=True)


@pytest.fixture(scope="module")
def race() -> RivalRace:
    return drive_a_race("track-01", "casual")


def test_a_shared_lap_has_a_short_id_and_comes_back(play_server, lap):
    body = {"track": "track-01", "driver": "Ada", "replay": lap.to_text()}
    answer = play_server.post("/api/replays", body)
    assert answer.status == 201
    shared = answer.json
    assert len(shared["id"]) <= MAX_ID_CHARS
    assert (shared["kind"], shared["track"], shared["driver"]) == ("lap", "track-01", "Ada")
    assert play_server.get(f"/api/replays/{shared['id']}").body == lap.to_bytes()
    assert play_server.get(f"/api/replays/{shared['id']}?form=text").body.decode() == lap.to_text()
    assert play_server.get(f"/api/replays/{shared['id']}?form=about").json == shared
    assert play_server.get(f"/api/replays/{shared['id']}?form=race").status == 404
    again = play_server.post("/api/replays", {**body, "driver": "Eve"})
    assert (again.status, again.json) == (200, shared)


def test_a_shared_race_comes_back_and_as_a_file_for_hotlap_report(play_server, race, tmp_path):
    answer = play_server.post("/api/replays", {"track": "track-01", "replay": race.to_text()})
    assert (answer.status, answer.json["kind"], answer.json["driver"]) == (201, "race", None)
    name = answer.json["id"]
    assert play_server.get(f"/api/replays/{name}").body == race.to_bytes()
    path = tmp_path / "race.json"
    path.write_bytes(play_server.get(f"/api/replays/{name}?form=race").body)
    fleet = drive_again(read_replay(path))
    assert fleet.entrants["race_time_s"].tobytes() == race.race_times_s.tobytes()
    checked = play_server.post("/api/replays/check", {"replay": race.to_text()}).json
    assert (checked["track"], checked["race_times_sec"]) == ("track-01", race.race_times_s.tolist())


def test_forged_and_unknown_replays_are_refused_in_one_line(play_server, lap, race):
    sooner = np.nextafter(race.race_times_s, np.float32(0.0))
    forged_lap = replace(lap, lap_time_s=np.nextafter(lap.lap_time_s, np.float32(0.0)))
    for words, text, track in (
        ("re-simulated it takes", replace(race, race_times_s=sooner).to_text(), "track-01"),
        ("on road", race.to_text(), "track-02"),
        ("re-simulated it takes", forged_lap.to_text(), "track-01"),
        ("base64url", "!" + lap.to_text(), "track-01"),
    ):
        answer = play_server.post("/api/replays", {"track": track, "replay": text})
        assert answer.status == 422
        assert words in answer.error
    assert play_server.post("/api/replays", {"track": "nowhere", "replay": lap.to_text()}).status == 404
    for name in ("A" * 16, "A" * 15, "%2e%2e", "0", "9" * 40):
        assert play_server.get(f"/api/replays/{name}").status == 404

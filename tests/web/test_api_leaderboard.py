"""The board over HTTP: a lap is what the server's own simulation says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.web.replay_format import Replay
from hotlap.web.replays import record_drive, verify


@pytest.fixture(scope="module")
def lap() -> Replay:
    """A drive that nobody has on the board: the casual driver with other habits."""
    return record_drive(CasualDriver(CasualHabits(grip_share=0.72)), "track-01", num_laps=2, is_quantised=True)


def test_a_new_board_has_the_drivers_that_ship(play_server):
    entries = play_server.get("/api/board?track=track-02").json
    assert [(entry["driver"], entry["kind"]) for entry in entries] == [
        ("optimal", "optimal"), ("champion", "model"), ("generalist", "model"), ("casual", "casual"),
    ]  # fmt: skip
    for entry in entries:
        assert {"driver", "kind", "lap_time_sec", "date", "replay"} <= set(entry)
        replay = Replay.from_bytes(play_server.get(f"/{entry['replay']}").body)
        assert verify(replay, "track-02").time_s == entry["lap_time_sec"]


def test_a_lap_is_entered_and_its_replay_comes_back_bit_for_bit(play_server, lap):
    answer = play_server.post("/api/board", {"track": "track-01", "driver": " Ada ", "replay": lap.to_text()})
    assert answer.status == 201
    entry = answer.json
    assert (entry["driver"], entry["kind"], entry["driver_id"]) == ("Ada", "human", None)
    assert np.float32(entry["lap_time_sec"]) == lap.lap_time_s
    assert entry in play_server.get("/api/board?track=track-01").json
    assert play_server.get(f"/{entry['replay']}").body == lap.to_bytes()
    assert play_server.get(f"/{entry['replay']}?form=text").body.decode() == lap.to_text()
    # The same drive again, under another name, is the same entry.
    again = play_server.post("/api/board", {"track": "track-01", "driver": "Eve", "replay": lap.to_text()})
    assert (again.status, again.json) == (200, entry)
    exported = play_server.get("/api/board/export").json
    assert lap.to_text() in [one["replay"] for one in exported["entries"]]


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (lambda r: replace(r, lap_time_s=np.nextafter(r.lap_time_s, np.float32(0.0))), "but re-simulated it takes"),
        (lambda r: replace(r, lap=9), "claims lap 9"),
        (lambda r: replace(r, physics="1-000000000000"), "was driven with physics 1-000000000000"),
        (lambda r: replace(r, track_digest="0" * 16), "was driven on road 0000000000000000"),
        (lambda r: replace(r, actions=r.actions[:-1]), "re-simulated it completes 1 laps"),
    ],
)
def test_a_forged_replay_is_refused_in_one_line_and_the_board_is_unchanged(play_server, lap, forge, words):
    before = play_server.get("/api/board?track=track-01").json
    body = {"track": "track-01", "driver": "Eve", "replay": forge(lap).to_text()}
    answer = play_server.post("/api/board", body)
    assert answer.status == 422
    assert words in answer.error
    assert play_server.get("/api/board?track=track-01").json == before


def test_a_lap_of_another_track_or_without_a_name_is_refused(play_server, lap):
    text = lap.to_text()
    for status, body in (
        (422, {"track": "track-02", "driver": "Eve", "replay": text}),
        (404, {"track": "nowhere", "driver": "Eve", "replay": text}),
        (422, {"track": "track-01", "driver": "", "replay": text}),
        (422, {"track": "track-01", "driver": "x" * 33, "replay": text}),
        (422, {"track": "track-01", "driver": "a\u202eb", "replay": text}),
        (422, {"track": "track-01", "driver": "Eve", "replay": text[:-9]}),
        (400, {"track": "track-01", "driver": "Eve"}),
        (400, {"track": "track-01", "driver": "Eve", "replay": text, "driver_id": "casual"}),
        (404, {"track": "track-01", "driver_id": "run:../x"}),
        (404, {"track": "train-000", "driver_id": "champion"}),
    ):
        answer = play_server.post("/api/board", body)
        assert answer.status == status, body
        assert answer.error


def test_a_replay_is_checked_without_entering_it(play_server, lap):
    other = replace(lap, seed=77)
    answer = play_server.post("/api/replays/check", {"replay": other.to_text()}).json
    assert answer["ok"]
    assert answer["track"] == "track-01"
    assert np.float32(answer["lap_time_sec"]) == lap.lap_time_s
    assert [one["lap"] for one in answer["laps"]] == [1, 2]
    assert answer["num_ticks"] == lap.num_ticks
    listed = play_server.get("/api/board/export").json["entries"]
    assert other.to_text() not in [entry["replay"] for entry in listed]


def test_whoever_sent_a_lap_renames_it_and_nobody_else(play_server):
    other = record_drive(CasualDriver(CasualHabits(grip_share=0.74)), "track-01", num_laps=1, is_quantised=True)
    secret = "0123456789abcdef"
    body = {"track": "track-01", "driver": "Bo", "replay": other.to_text(), "owner": secret}
    entry = play_server.post("/api/board", body).json

    def names() -> list[str]:
        return [one["driver"] for one in play_server.get("/api/board?track=track-01").json]

    before = names()
    stranger = play_server.post("/api/board/name", {"owner": "f" * 16, "driver": "Eve"})
    assert stranger.json == {"driver": "Eve", "renamed": 0}
    assert names() == before
    assert play_server.post("/api/board/name", {"owner": secret, "driver": " Cy "}).json["renamed"] == 1
    assert names() == ["Cy" if name == "Bo" else name for name in before]
    assert "owner" not in entry
    for refused in ({"owner": secret, "driver": ""}, {"owner": "short", "driver": "Eve"}):
        assert play_server.post("/api/board/name", refused).status == 422


def test_drivers_are_listed_with_the_laps_that_ship(play_server):
    drivers = {driver["id"]: driver for driver in play_server.get("/api/drivers?track=track-01").json}
    assert drivers["casual"]["kind"] == "casual"
    for driver in ("casual", "optimal"):
        replay = Replay.from_bytes(play_server.get(f"/{drivers[driver]['replay']}").body)
        assert verify(replay, "track-01").is_clean
        served = play_server.get(f"/api/drivers/{driver}/replay?track=track-01")
        assert served.body == replay.to_bytes()
    assert play_server.get("/api/drivers/run:x/replay?track=track-01").status == 404


def test_the_casual_driver_and_the_generalist_drive_a_track_that_has_no_recording(play_server):
    assert play_server.get("/api/board?track=train-088").json == []
    for driver in ("generalist", "casual"):
        assert play_server.post("/api/board", {"track": "train-088", "driver_id": driver}).status == 201
    entries = play_server.get("/api/board?track=train-088").json
    assert [(entry["kind"], entry["driver"]) for entry in entries] == [("model", "generalist"), ("casual", "casual")]
    assert play_server.get("/api/drivers/optimal/replay?track=train-088").status == 409


def test_the_exported_board_is_json_with_every_replay(play_server, lap):
    answer = play_server.get("/api/board/export")
    assert "attachment" in answer.headers["content-disposition"]
    for entry in json.loads(answer.body)["entries"]:
        assert Replay.from_text(entry["replay"]).num_ticks > 0

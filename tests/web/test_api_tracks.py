"""Tracks and drawings over HTTP."""

import base64
import struct
import time

import pytest

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from web.test_drawn_tracks import ellipse


def test_the_list_has_the_built_in_tracks_and_the_split_only_on_request(play_server):
    tracks = {track["id"]: track for track in play_server.get("/api/tracks").json}
    assert {"track-01", "track-02", "track-03"} <= set(tracks)
    assert not any(track["source"] in ("train", "test") for track in tracks.values())
    first = load_track("track-01")
    assert tracks["track-01"]["road"] == track_digest(first.nodes)
    assert tracks["track-01"]["medals_sec"] == dict(first.medals_s)
    assert tracks["track-01"]["optimal_lap_time_sec"] == pytest.approx(28.31, abs=0.01)
    every = play_server.get("/api/tracks?split=1").json
    assert sum(track["source"] in ("train", "test") for track in every) == 125
    assert play_server.get("/api/tracks/train-007").json["length_m"] > 100.0


def test_a_drawing_is_checked_saved_raced_on_and_downloaded(play_server):
    drawing = {"points": ellipse(), "width_m": 12.0}
    checked = play_server.post("/api/drawings/check", drawing).json
    assert checked["ok"]
    content = base64.b64decode(checked["track"])
    assert struct.unpack_from("<4s", content)[0] == b"HLT1"
    saved = play_server.post("/api/tracks", {"id": "drawn-oval", **drawing})
    assert saved.status == 201
    assert saved.json["road"] == checked["road"]
    assert saved.json["source"] == "yours"
    assert "drawn-oval" in [track["id"] for track in play_server.get("/api/tracks").json]
    assert play_server.get("/data/drawn-oval.track").status == 200
    assert [driver["id"] for driver in play_server.get("/api/drivers?track=drawn-oval").json] == [
        "generalist", "casual",
    ]  # fmt: skip
    entry, other = play_server.wait_for("/api/board?track=drawn-oval", lambda found: len(found) == 2)
    assert (entry["driver"], other["driver"]) == ("generalist", "casual")
    file = play_server.get("/api/tracks/drawn-oval/centreline.csv")
    assert b"# x_m,y_m,w_tr_right_m,w_tr_left_m" in file.body
    # The same road again from its file, and a taken id.
    text = file.body.decode()
    again = play_server.post("/api/tracks", {"id": "drawn-again", "centreline": text}).json
    assert again["length_m"] == pytest.approx(saved.json["length_m"], rel=1e-4)
    assert play_server.post("/api/tracks", {"id": "drawn-oval", **drawing}).status == 409
    assert play_server.post("/api/tracks", {"id": "drawn-oval", **drawing, "replace": True}).status == 201
    # A board entry is of a road: another road under the same id has a new board.
    wider = {**drawing, "width_m": 20.0, "replace": True}
    assert play_server.post("/api/tracks", {"id": "drawn-oval", **wider}).json["road"] != checked["road"]
    assert entry not in play_server.get("/api/board?track=drawn-oval").json


def test_a_bad_drawing_is_told_why(play_server):
    tight = {"points": ellipse(a_m=60.0, b_m=4.0), "width_m": 30.0}
    answer = play_server.post("/api/drawings/check", tight)
    assert answer.status == 200
    assert not answer.json["ok"]
    assert isinstance(answer.json["fault"]["point"], int)
    assert "m" in answer.json["fault"]["text"]
    assert play_server.post("/api/tracks", {"id": "tight", **tight}).status == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"id": "../../x", "points": ellipse(), "width_m": 12.0}, 422),
        ({"id": "track-01", "points": ellipse(), "width_m": 12.0, "replace": True}, 422),
        ({"id": "x", "points": ellipse()}, 422),
        ({"id": "x", "points": ellipse(), "width_m": 12.0, "centreline": "1,2,3,4"}, 422),
        ({"id": "x"}, 422),
        ({"id": "x", "points": [[0, 0, 0]], "width_m": 12.0}, 400),
        ({"id": "x", "points": "..", "width_m": 12.0}, 400),
        ({"id": "x", "points": [[1e400, 0]] * 9, "width_m": 12.0}, 400),
        ({"id": 5, "points": ellipse(), "width_m": 12.0}, 400),
    ],
)
def test_a_track_that_may_not_be_saved_is_refused(play_server, body, status):
    before = sorted((play_server.home / "tracks").glob("*"))
    answer = play_server.post("/api/tracks", body)
    assert answer.status == status
    assert answer.error
    assert sorted((play_server.home / "tracks").glob("*")) == before


def test_a_damaged_track_file_of_the_users_is_listed_with_its_error(play_server):
    folder = play_server.home / "tracks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broken.csv").write_text("nonsense", encoding="utf-8")
    try:
        broken = next(track for track in play_server.get("/api/tracks").json if track["id"] == "broken")
        assert "broken.csv" in broken["error"]
        for path in ("/api/tracks/broken", "/api/board?track=broken", "/api/drivers?track=broken"):
            assert play_server.get(path).status == 422
        assert play_server.get("/data/broken.track").status == 404
    finally:
        (folder / "broken.csv").unlink()


def test_the_optimum_of_a_built_in_track_is_known(play_server):
    answer = play_server.get("/api/tracks/track-01/optimal").json
    assert answer["state"] == "solved"
    assert answer["lap_time_sec"] == pytest.approx(28.31, abs=0.01)
    assert len(answer["line"]["x_m"]) == len(answer["line"]["speed_mps"]) > 100
    assert answer["replay"] == "api/drivers/optimal/replay?track=track-01"
    assert play_server.get("/api/tracks/drawn-nowhere/optimal").status == 404


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_optimum_of_a_drawn_track_is_solved_with_progress(play_server):
    # A road that was never solved on this machine, whose solved laps are cached.
    drawing = {"id": "solved-oval", "points": ellipse(), "width_m": 12.0 + time.time_ns() % 10**6 / 1e6}
    assert play_server.post("/api/tracks", drawing).status == 201
    path = "/api/tracks/solved-oval/optimal"
    assert play_server.get(path).json["state"] == "none"
    assert play_server.post(path).status == 202
    seen = []
    solved = play_server.wait_for(
        path, lambda answer: seen.append(answer["progress"]) or answer["state"] in ("solved", "failed"), 500.0
    )
    assert solved["state"] == "solved", solved["message"]
    assert seen == sorted(seen)
    assert len({round(fraction, 2) for fraction in seen}) > 3
    entries = {entry["kind"]: entry for entry in play_server.get("/api/board?track=solved-oval").json}
    # The driver that follows the optimum is within 2 % of it.
    assert entries["optimal"]["lap_time_sec"] == pytest.approx(solved["lap_time_sec"], rel=0.02)
    assert play_server.get(f"/{solved['replay']}").status == 200
    drivers = [driver["id"] for driver in play_server.get("/api/drivers?track=solved-oval").json]
    assert drivers == ["generalist", "optimal", "casual"]

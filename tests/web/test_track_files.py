"""Track files sent by the page: their names, ids that overwrite nothing, attributions, and refusals over HTTP."""

import base64
import json
import threading

import pytest

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track, user_folder
from hotlap.web import track_files
from hotlap.web.drawn_tracks import TakenIdError
from hotlap.web.track_files import read_dropped_file, save_dropped_file, shown_name, track_id_of
from tracks.map_texts import LENGTH_M, geojson_text, osm_text
from web.test_drawn_tracks import ellipse

OSM = "© OpenStreetMap contributors, Open Database License 1.0 (way 71, way 72)"
TABLE = "".join(f"{x:.3f},{y:.3f},5,5\n" for x, y in ellipse())
TUM = "# x_m,y_m,w_tr_right_m,w_tr_left_m\n" + TABLE


def send(server, name, content, **headers):
    data = content if isinstance(content, bytes) else content.encode()
    return server.post("/api/track-files", {"name": name, "content": base64.b64encode(data).decode()}, **headers)


def saved_files(server):
    return {path.name: path.read_bytes() for path in (server.home / "tracks").glob("*")}


# --- names ---


@pytest.mark.parametrize(
    ("name", "track_id"),
    [
        ("ring.osm", "ring"),
        ("Nürburgring GP (2).geojson", "nurburgring-gp-2"),
        ("Brno_2024.CSV", "brno_2024"),
        ("../../etc/passwd.csv", "passwd"),
        ("C:\\Users\\ada\\Spa.csv", "spa"),
        ("鈴鹿.osm", "track"),
        ("--.csv", "track"),
        ("", "track"),
        (".csv", "csv"),
        ("\ud800\0\x1b[2J.osm", "2j"),
        ("a" * 250 + ".csv", "a" * 48),
    ],
)
def test_a_file_gives_its_track_a_plain_id(name, track_id):
    assert track_id_of(name) == track_id


def test_a_name_is_shown_in_one_short_line():
    assert shown_name("/tmp/x/a\n\x1b[2Jb.csv") == "a [2Jb.csv"
    assert len(shown_name("x" * 255)) == 80
    assert shown_name("") == "the file"


@pytest.mark.parametrize("name", ["con.csv", "track-01.csv", "train-000.osm", "generated.csv"])
def test_an_id_that_no_track_of_the_users_may_have_gets_a_number(monkeypatch, tmp_path, name):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    track_id, is_new = save_dropped_file(name, read_dropped_file("a.csv", TUM.encode()))
    assert (track_id, is_new) == (f"{track_id_of(name)}-2", True)


def test_no_file_is_overwritten_and_the_same_one_is_saved_once(monkeypatch, tmp_path):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    first, other = (read_dropped_file("oval.csv", TUM.replace(",5,5", width).encode()) for width in (",5,5", ",6,6"))
    assert save_dropped_file("oval.csv", first) == ("oval", True)
    content = (user_folder() / "oval.csv").read_bytes()
    assert save_dropped_file("Oval.csv", other) == ("oval-2", True)
    assert save_dropped_file("oval.csv", first) == ("oval", False)
    (user_folder() / "link.csv").symlink_to(tmp_path / "nowhere.csv")
    assert save_dropped_file("link.csv", first) == ("link-2", True)
    assert (user_folder() / "oval.csv").read_bytes() == content
    assert not (tmp_path / "nowhere.csv").exists()
    monkeypatch.setattr(track_files, "refuse_too_many", lambda own: (_ for _ in ()).throw(TakenIdError(f"{len(own)}")))
    with pytest.raises(TakenIdError, match="3"):
        save_dropped_file("fourth.csv", first)
    assert len(list(user_folder().iterdir())) == 4


# --- over HTTP ---


@pytest.mark.parametrize(
    ("name", "text", "length_m", "attribution"),
    [
        ("Sent Ring.osm", osm_text(), LENGTH_M, OSM),
        ("sent-map.geojson", geojson_text(copyright="The club, 2024"), LENGTH_M, "The club, 2024 (line 1)"),
        ("sent-map.json", geojson_text(), LENGTH_M, None),
        ("sent-oval.csv", TUM, 581.3, None),
        ("sent-oval.txt", TABLE.replace(",5,5", ",10"), 581.3, None),
    ],
)
def test_a_file_of_each_format_becomes_a_track(play_server, name, text, length_m, attribution):
    answer = send(play_server, name, text)
    assert answer.status == 201, answer.body
    track = answer.json
    assert track["source"] == "yours"
    assert track["length_m"] == pytest.approx(length_m, rel=3e-3)
    assert track["attribution"] == attribution
    assert play_server.get(f"/data/{track['id']}.track").body == base64.b64decode(track["track"])
    shown = play_server.get(f"/api/tracks/{track['id']}").json
    assert shown == {key: value for key, value in track.items() if key != "track"}
    drivers = play_server.get(f"/api/drivers?track={track['id']}").json
    assert drivers[0]["id"] == "generalist"
    again = send(play_server, name, text)
    assert (again.status, again.json["id"]) == (200, track["id"])


def test_the_attribution_of_a_downloaded_track_is_kept_when_it_is_sent_again(play_server):
    track = send(play_server, "origin.osm", osm_text()).json
    file = play_server.get(f"/api/tracks/{track['id']}/centreline.csv").body
    again = send(play_server, "copy.csv", file).json
    assert again["attribution"] == OSM
    assert again["length_m"] == pytest.approx(track["length_m"], rel=1e-4)


UTM = json.dumps({"type": "LineString", "coordinates": [[500_000.0, 5_500_000.0], [500_100.0, 5_500_000.0]]})
BAD = {
    "not a road": ("a.geojson", '{"type": "Point", "coordinates": [8, 50]}', "a.geojson: has no road."),
    "no loop": ("a.geojson", '{"type": "LineString", "coordinates": [[8, 50], [8.01, 50]]}', "form no loop"),
    "another projection": ("a.geojson", UTM, "Is it in another projection?"),
    "a zip": ("map.zip", b"PK\x03\x04\0\0", "map.zip:1: a track is a text file, this one is binary. Unpack it"),
    "a planet": ("planet.osm.pbf", b"\0\0\0\x0dOSMHeader", "planet.osm.pbf:1: a track is a text file"),
    "empty": ("a.csv", b"", "a.csv:1: the file is empty."),
    "empty map": ("a.osm", b"", "a.osm:1: is not XML"),
    "not UTF-8": ("a.csv", b"x,y\n\xff\xfe", "a.csv:2: a track file is UTF-8, this is not."),
    "a huge number": ("a.geojson", UTM.replace("500000.0", "9" * 400), "not in degrees"),
    "a page": ("a.html", b"<!doctype html><p>hello", "a.html:1: a row has 3, 4 or 5 columns, got 1."),
    "a path": ("../../home/a.csv", b"1,2", "a.csv:1: a row has 3, 4 or 5 columns, got 2."),
    "escapes": ("a\x1b[2J\n.csv", b"", "a [2J .csv:1: the file is empty."),
    "too short": ("a.csv", "".join(f"{x},{y},5,5\n" for x, y in ellipse(a_m=9.0, b_m=6.0)), "at least 100 m"),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_in_one_line_and_nothing_is_saved(play_server, name, content, words):
    before = saved_files(play_server)
    answer = send(play_server, name, content)
    assert answer.status == 422
    assert words in answer.error
    assert "hotlap-" not in answer.error  # the name of the folder that it was read in
    assert saved_files(play_server) == before


def test_a_file_that_is_too_large_is_refused(play_server):
    before = saved_files(play_server)
    answer = send(play_server, "planet.osm", b" " * 20_000_001)
    assert (answer.status, answer.error[:38]) == (422, "planet.osm: a track file has at most 2")
    head = {"Content-Type": "application/json", "Content-Length": "27000000"}
    assert play_server.ask("POST", "/api/track-files", b"{", head).status == 413
    assert saved_files(play_server) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "a.csv"},
        {"name": "a.csv", "content": "~~"},
        {"name": "a.csv", "content": 5},
        {"name": "a" * 256, "content": ""},
        {"name": "a.csv", "content": "", "path": "/etc/passwd"},
        {"name": ["a.csv", "b.csv"], "content": ["", ""]},
        [],
    ],
)
def test_a_body_of_another_form_is_refused(play_server, body):
    answer = play_server.post("/api/track-files", body)
    assert answer.status == 400
    assert answer.error


def test_pages_of_others_and_other_types_may_not_send_files(play_server):
    before = saved_files(play_server)
    for headers in ({"Origin": "http://example.org"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "example.org"}):
        assert send(play_server, "foreign.osm", osm_text(), **headers).status == 403
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert play_server.ask("POST", "/api/track-files", b"--x", form).status == 415
    assert play_server.get("/api/track-files").status in (404, 405)
    assert saved_files(play_server) == before


def test_of_two_files_at_once_one_may_have_to_wait(play_server):
    statuses = []
    names = [f"at-once-{number}.osm" for number in range(6)]
    senders = [
        threading.Thread(target=lambda n=n: statuses.append(send(play_server, n, osm_text()).status)) for n in names
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert 201 in statuses
    assert set(statuses) <= {201, 503}
    assert statuses.count(201) == sum(name.startswith("at-once-") for name in saved_files(play_server))
    assert send(play_server, "after.osm", osm_text()).status == 201


def test_a_saved_file_has_the_road_that_was_read(monkeypatch, tmp_path):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    from hotlap.web.drawn_tracks import check_track_file

    save_dropped_file("oval.csv", read_dropped_file("oval.csv", TUM.encode()))
    assert track_digest(load_track("oval").nodes) == check_track_file(TUM).track_digest

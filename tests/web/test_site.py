"""`hotlap site`: a folder that any web host can serve."""

import json
import re

import pytest

from hotlap.errors import OutputFileError
from hotlap.web.site import generated_ids, static_files, write_site

MAX_BYTES = 1_500_000  # page, engine and three tracks


def test_the_site_has_the_page_the_engine_and_every_data_file(tmp_path):
    num_bytes = write_site(tmp_path / "new" / "site")
    written = {
        path.relative_to(tmp_path / "new" / "site").as_posix()
        for path in (tmp_path / "new" / "site").rglob("*")
        if path.is_file()
    }
    assert {"index.html", "style.css", "sim.wasm", "sim.json", "js/app.js", "api/status"} <= written
    assert {
        f"data/track-0{k}.{kind}"
        for k in (1, 2, 3)
        for kind in ("track", "drivers.json", "casual.replay", "optimal.replay")
    } <= written
    assert {f"data/{track_id}.road" for track_id in generated_ids()} <= written
    assert num_bytes == sum((tmp_path / "new" / "site" / name).stat().st_size for name in written)
    for track in ("track-01", "track-02", "track-03"):
        for driver in json.loads((tmp_path / "new" / "site" / "data" / f"{track}.drivers.json").read_text()):
            assert (driver["policy"] or driver["replay"]).removeprefix("data/") in {
                name.removeprefix("data/") for name in written
            }


def test_page_engine_and_tracks_are_small(tmp_path):
    write_site(tmp_path)
    parts = [*static_files(), "data/tracks.json", *(f"data/track-0{k}.track" for k in (1, 2, 3))]
    assert sum((tmp_path / part).stat().st_size for part in parts) < MAX_BYTES


def test_an_older_page_is_replaced_and_other_folders_are_refused(tmp_path):
    write_site(tmp_path / "site")
    (tmp_path / "site" / "index.html").write_text("old")
    write_site(tmp_path / "site")
    assert "hotlap" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(OutputFileError, match="is not empty and holds no page"):
        write_site(tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputFileError, match="cannot be used"):
        write_site(tmp_path / "file")


def test_the_page_loads_nothing_from_another_host():
    from hotlap.web.site import STATIC

    for name in static_files():
        if not name.endswith((".wasm", ".woff2", "LICENSE.txt")):
            text = (STATIC / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert re.findall(r"https?://|//cdn", text) == [], name


def test_generated_tracks_are_listed_with_their_files_where_they_are_wanted(tmp_path):
    write_site(tmp_path, ["train-000", "test-010"])
    tracks = {one["id"]: one for one in json.loads((tmp_path / "data" / "tracks.json").read_text(encoding="utf-8"))}
    assert set(tracks) == {"track-01", "track-02", "track-03", "train-000", "test-010"}
    assert tracks["test-010"]["length_m"] > 100.0
    for track in tracks:
        assert (tmp_path / "data" / f"{track}.track").is_file()
        drivers = json.loads((tmp_path / "data" / f"{track}.drivers.json").read_text(encoding="utf-8"))
        assert "generalist" in [driver["id"] for driver in drivers]
    assert len(generated_ids()) == 125

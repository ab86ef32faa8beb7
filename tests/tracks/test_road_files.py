"""Roads from track files: those of an import, but in no list."""

import pytest

from hotlap.errors import InputFileError, TrackError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.files.centreline_file import write_centreline
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.registry import list_tracks, load_track, save_track
from hotlap.tracks.road_files import load_road, load_roads
from tracks.map_texts import osm_text
from tracks.shapes import hairpins, stadium


@pytest.fixture
def folder(tmp_path):
    """Two tracks, a file that is none, a hidden one and a folder."""
    path = tmp_path / "roads"
    (path / "deeper").mkdir(parents=True)
    write_centreline(path / "Hair Pins.csv", hairpins(5.7, right=6.8, left=6.8))  # is narrowed
    (path / "ring.osm").write_text(osm_text())
    (path / "README.txt").write_text("Not a track.\n")
    (path / ".hidden.csv").write_text("x\n")
    return path


def test_a_road_is_the_one_that_an_import_gives_but_is_in_no_list(folder):
    file = folder / "Hair Pins.csv"
    before = list_tracks()
    track = load_road(file)
    assert (track.track_id, track.name, track.is_shipped) == ("hair-pins", "Hair Pins", False)
    assert list_tracks() == before
    save_track("imported", import_centreline(file), "")
    assert track_digest(track.nodes) == track_digest(load_track("imported").nodes)


def test_of_a_folder_a_file_that_is_no_track_is_skipped(folder):
    found = load_roads([folder])
    assert [track.name for track in found.tracks] == ["Hair Pins", "ring"]
    assert [path.name for path in found.paths] == ["Hair Pins.csv", "ring.osm"]
    [reason] = found.skipped
    assert reason.startswith(f"{folder / 'README.txt'}:1: a row has 3, 4 or 5 columns, got 1.")


def test_a_bad_file_or_a_folder_without_tracks_is_an_error(folder):
    with pytest.raises(TrackError, match=r"README\.txt:1: "):
        load_roads([folder / "README.txt"])
    with pytest.raises(TrackError, match="deeper: the folder holds no track"):
        load_roads([folder, folder / "deeper"])
    with pytest.raises(InputFileError, match="there is no such file"):
        load_roads([folder / "missing.csv"])


def test_tracks_of_the_same_name_are_told_apart(folder):
    other = folder / "deeper" / "ring.csv"
    write_centreline(other, stadium(40.0))
    assert [track.name for track in load_roads([folder / "ring.osm", other]).tracks] == ["ring", str(other)]

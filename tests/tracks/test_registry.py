"""Tracks by id: built-in, generated and the user's own."""

import os
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import OutputFileError, TrackError, UnknownTrackError
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.generation.split_seeds import TEST_SEEDS, TRAIN_SEEDS
from hotlap.tracks.registry import check_id, list_tracks, load_track, one_road, save_track, split_ids, user_folder

BUILT_IN = ["track-01", "track-02", "track-03"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_built_in_tracks_have_names_and_characters():
    entries = [entry for entry in list_tracks() if entry.source == "built-in"]
    assert [entry.track_id for entry in entries] == BUILT_IN
    assert len({entry.name for entry in entries}) == 3
    assert all(entry.character for entry in entries)


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_a_built_in_track_is_ready_to_drive(track_id):
    track = load_track(track_id)
    assert load_track(track_id) is track  # built once
    assert track.track_id == track_id
    assert 500.0 < track.nodes.length_m < 5000.0
    assert track.start_speed_mps.shape == track.nodes.x_m.shape
    assert (track.start_speed_mps > 5.0).all()


def test_the_frozen_split_has_100_and_25_tracks_none_in_both():
    train, test = split_ids("train"), split_ids("test")
    assert (len(train), train[0], train[-1]) == (100, "train-000", "train-099")
    assert (len(test), test[0], test[-1]) == (25, "test-000", "test-024")
    files = [entry.path for entry in list_tracks() if entry.source in ("train", "test")]
    assert len(set(files)) == 125
    assert all(path.is_file() for path in files)
    with pytest.raises(TrackError, match="split must be one of train, test, got 'valid'"):
        split_ids("valid")


@pytest.mark.parametrize(("track_id", "seed"), [("train-003", TRAIN_SEEDS[3]), ("test-007", TEST_SEEDS[7])])
def test_a_split_id_is_the_track_of_its_seed(track_id, seed):
    np.testing.assert_array_equal(load_track(track_id).centreline.x_m, generate(seed).x_m)


def test_an_unknown_id_is_refused_with_a_suggestion():
    for track_id in ("nope", "", "../track-01", "track-01.csv", "TRACK-01", "train-100", None, 7, [1]):
        with pytest.raises(UnknownTrackError, match="is not known") as caught:
            load_track(track_id)
        assert isinstance(caught.value, LookupError)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(UnknownTrackError, match="Did you mean 'track-01'"):
        load_track("track-1")
    with pytest.raises(UnknownTrackError, match="hotlap tracks list"):
        load_track("zzzzzz")


def test_a_saved_track_is_found_and_replaced(home):
    path = save_track("mine", generate(1), "first")
    assert path == home / "tracks" / "mine.csv" == user_folder() / "mine.csv"
    first = load_track("mine")
    assert first.medals_s == {}
    assert list_tracks()[-1].source == "yours"
    save_track("mine", generate(2), "second")
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))  # clocks of some file systems are coarse
    assert load_track("mine").nodes.length_m != first.nodes.length_m
    path.unlink()
    with pytest.raises(UnknownTrackError):
        load_track("mine")


def test_an_id_is_1_to_64_lower_case_letters_digits_and_signs():
    for track_id in ("a", "0", "my-track_2", "x" * 64):
        assert check_id(track_id) == track_id
    for track_id in ("", "-a", "_a", "A", "a b", "a.b", "a/b", "a\\b", "..", "a\n", "a\0", "é", "x" * 65, None, 3):
        with pytest.raises(TrackError, match="use 1 to 64 lower-case letters"):
            check_id(track_id)


@pytest.mark.parametrize("track_id", ["track-01", "train-000", "test-024"])
def test_an_id_of_a_shipped_track_cannot_be_reused(track_id):
    with pytest.raises(TrackError, match="belongs to a track of the package"):
        save_track(track_id, generate(1), "")


def test_tracks_lie_in_hotlap_home_which_must_be_writable_or_in_the_users_home(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputFileError, match="Set HOTLAP_HOME to a writable folder"):
        save_track("mine", generate(1), "")
    monkeypatch.delenv("HOTLAP_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert user_folder() == tmp_path / ".hotlap" / "tracks"


def test_other_files_in_the_users_folder_are_not_listed(home):
    folder = home / "tracks"
    (folder / "folder.csv").mkdir(parents=True)
    for name in ("track-01.csv", "Bad Name.csv", "notes.txt", ".hidden.csv"):
        (folder / name).write_text("x")
    assert [entry.track_id for entry in list_tracks() if entry.source == "yours"] == []


def test_random_start_speeds_fall_no_faster_than_brakes_allow():
    """The start speeds never fall faster from node to node than brakes with the whole grip can manage."""
    track = load_track("track-01")
    squared = track.start_speed_mps**2
    braking_mps2 = (squared - np.roll(squared, -1)) / (2.0 * track.nodes.step_m)
    assert braking_mps2.max() < 9.81


# --- a stream of generated roads ---


def test_generated_is_no_single_road_but_stands_for_the_first_of_its_evaluations():
    words = r"^track 'generated' is a stream of roads, .* generated-000 to generated-049, or another track\.$"
    with pytest.raises(UnknownTrackError, match=words):
        load_track("generated")
    assert (one_road("generated"), one_road("track-02")) == ("generated-000", "track-02")
    assert load_track("generated-000") is load_track("generated-000")
    with pytest.raises(UnknownTrackError, match="is not known"):
        load_track("generated-050")


def test_the_ids_of_the_stream_are_no_ones_own(home):
    for track_id in ("generated", "generated-007"):
        with pytest.raises(TrackError, match=f"track id '{track_id}' belongs to a track of the package"):
            check_id(track_id)
        (user_folder() / f"{track_id}.csv").parent.mkdir(parents=True, exist_ok=True)
        (user_folder() / f"{track_id}.csv").write_text("not a track")
    assert [entry for entry in list_tracks() if entry.source == "yours"] == []
    assert load_track("generated-007").character == "generated"

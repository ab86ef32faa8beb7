"""Laps of people: replays are driven again, and a file that claims anything else is refused in one line."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from benchmark.small_entries import small_protocol
from hotlap.benchmark.people import people_table, verify_people
from hotlap.errors import InputFileError, ReplayError
from hotlap.tracks.registry import load_track
from hotlap.web.replays import find_recorded, simulate


@pytest.fixture(scope="module")
def replays():
    """What ships for the page: a casual and an optimal drive."""
    track = load_track("track-01")
    return {name: find_recorded(name, track) for name in ("casual", "optimal")}


def written(path, entries, kind="hotlap-board-1"):
    path.write_text(json.dumps({"format": kind, "entries": entries}))
    return path


def entry_of(replay, driver="Ada", **more):
    return {"track": "track-01", "driver": driver, "kind": "human", "replay": replay.to_text(), **more}


def test_the_laps_are_those_that_the_page_drives(tmp_path, replays):
    entries = [entry_of(replays["casual"]), entry_of(replays["optimal"], "Bob")]
    found = verify_people(written(tmp_path / "laps.json", entries), small_protocol(), lambda track: 30.0)
    [track] = found.tracks
    flying = {
        name: [lap.time_s for lap in simulate(one, "track-01") if lap.number > 1] for name, one in replays.items()
    }
    assert (found.replays, found.left_out, found.repeated) == (2, 0, 0)
    assert (track.people, track.laps) == (2, sum(map(len, flying.values())))
    assert track.median_lap_s == np.median([np.median(times) for times in flying.values()])
    assert track.faster_rate == 0.5  # the optimal one
    assert people_table(found).rows[0][:2] == ["track-01", "2"]


def test_others_and_other_tracks_are_left_out_and_a_drive_counts_once(tmp_path, replays):
    entry = entry_of(replays["casual"])
    longer = replace(
        replays["casual"], actions=np.concatenate([replays["casual"].actions, np.zeros((9, 3), np.float32)])
    )
    others = [entry_of(longer, "Eve"), entry | {"kind": "model"}, entry | {"track": "my-own"}]
    found = verify_people(written(tmp_path / "laps.json", [entry, *others]), small_protocol(), lambda track: None)
    assert (found.replays, found.repeated, found.left_out) == (2, 1, 2)
    assert (found.tracks[0].people, found.tracks[0].faster_rate) == (1, None)


def test_claims_that_the_replay_does_not_drive_are_refused(tmp_path, replays):
    replay, path = replays["casual"], tmp_path / "laps.json"
    for claims, text in [
        ({"lap_time_sec": 12.5}, "claims lap_time_sec 12.5, but driven again"),
        ({"clean": False}, "claims clean False"),
        ({"lap": 1}, "claims lap 1"),
        ({"replay": "SExS"}, "does not begin like one"),
        ({"replay": 3}, "must have track, driver and replay"),
    ]:
        with pytest.raises(ReplayError, match=text) as caught:
            verify_people(written(path, [entry_of(replay) | claims]), small_protocol(), lambda track: None)
        assert str(caught.value).startswith(f"{path}: entry 0")
        assert str(caught.value).isprintable()


def test_a_replay_with_another_time_or_action_is_refused(tmp_path, replays):
    content = bytearray(replays["casual"].to_bytes())
    content[34] ^= 1  # the last bit of the claimed time
    forged = type(replays["casual"]).from_bytes(bytes(content))
    with pytest.raises(ReplayError, match="but driven again"):
        verify_people(written(tmp_path / "laps.json", [entry_of(forged)]), small_protocol(), lambda track: None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "x", "entries": []}', b"[" * 100_000])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "laps.json").write_bytes(content)
    with pytest.raises(ReplayError, match=r"laps\.json: "):
        verify_people(tmp_path / "laps.json", small_protocol(), lambda track: None)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such file"):
        verify_people(tmp_path / "none.json", small_protocol(), lambda track: None)


def test_what_is_no_plain_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    with pytest.raises(ReplayError, match="is a folder, a pipe or a device"):
        verify_people(tmp_path / "pipe", small_protocol(), lambda track: None)

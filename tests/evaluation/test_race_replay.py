"""Replays of races: driven again to the bit, and files that are none."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from hotlap.errors import HotlapError, ReplayError
from hotlap.evaluation.race_replay import RaceRecorder, drive_again, read_replay, write_replay
from hotlap.evaluation.races import Entry, race
from hotlap.runs.find_driver import find_driver


@pytest.fixture(scope="module")
def recorded():
    """A race of three cars that touch, and the fleet at its end."""
    recorder, last = RaceRecorder(), []

    def watch(fleet, actions):
        recorder.add(actions)
        last[:] = [fleet]

    entries = [Entry("champion", find_driver("champion", "track-01"), 3)]
    counts = race(entries, "track-01", laps=1, start="rolling", seed=6, on_step=watch)
    return recorder.finish(last[0], ["champion"] * 3, counts.slots[0], counts.repeat, seed=6), last[0], counts


def test_a_replay_drives_the_race_again_to_the_bit(recorded, tmp_path):
    replay, fleet, counts = recorded
    write_replay(tmp_path / "race.json", replay)
    again = drive_again(read_replay(tmp_path / "race.json"))
    for name, column in fleet.get_state().items():
        assert again.get_state()[name].tobytes() == column.tobytes(), name
    assert replay.race_times_s == pytest.approx(counts.race_times_s[0], nan_ok=True)


def test_another_road_or_other_inputs_are_noticed(recorded):
    replay, _, _ = recorded
    with pytest.raises(ReplayError, match=r"^replay: was driven on road 'other'"):
        drive_again(replace(replay, track_digest="other"))
    with pytest.raises(ReplayError, match=r"^replay: says that cars came in at"):
        drive_again(replace(replay, actions=0.9 * replay.actions))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "hotlap-race-replay-0"},
        {"race_version": "0-old"},
        {"laps": 0},
        {"laps": True},
        {"laps": 1.5},
        {"repeat": 61},
        {"steps": 10**9},
        {"steps": 7},
        {"slots": [0, 1, 1]},
        {"slots": [0, 1]},
        {"drivers": ["a"] * 33},
        {"drivers": "abc"},
        {"start": "flying"},
        {"actions": "!!"},
        {"actions": ""},
        {"race_times_s": [1.0]},
        {"more": 1},
        {"track": None},
    ],
    ids=str,
)
def test_a_damaged_replay_gets_one_line(recorded, tmp_path, change):
    path = tmp_path / "race.json"
    write_replay(path, recorded[0])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ReplayError) as error:
        read_replay(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff\x00", b"[" * 10**5, b"{}"], ids=["", "list", "bytes", "deep", "{}"]
)
def test_a_file_that_is_no_replay_gets_one_line(tmp_path, content):
    path = tmp_path / "race.json"
    path.write_bytes(content)
    with pytest.raises(ReplayError, match="is no race replay"):
        read_replay(path)
    with pytest.raises(HotlapError, match="there is no such file"):
        read_replay(tmp_path / "missing.json")


def test_an_action_that_is_no_number_is_refused(recorded, tmp_path):
    actions = recorded[0].actions.copy()
    actions[5, 1, 0] = np.nan
    write_replay(tmp_path / "race.json", replace(recorded[0], actions=actions))
    with pytest.raises(ReplayError, match="an action is not finite"):
        read_replay(tmp_path / "race.json")


def test_what_is_no_plain_file_or_too_large_gets_one_line(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ReplayError, match="is a folder, a pipe or a device, not a race replay"):
            read_replay(path)
    (tmp_path / "large").write_bytes(b"{}")
    monkeypatch.setattr("hotlap.evaluation.race_replay.MAX_FILE_BYTES", 1)
    with pytest.raises(ReplayError, match="a replay has at most"):
        read_replay(tmp_path / "large")

from dataclasses import replace

import pytest

from hotlap.datasets.sources import find_sources
from hotlap.errors import DatasetError, InputFileError, ReplayError
from hotlap.tracks.registry import load_track
from hotlap.web.replays import find_recorded


def test_a_driver_is_found_on_each_track_and_by_default_on_its_own():
    tracks = ["track-02", "track-01"]
    assert [one.track.track_id for one in find_sources("champion", tracks, "random")] == tracks
    [own] = find_sources("generalist", [], "random")
    assert own.track.track_id == "track-01"
    assert len({one.digest for one in find_sources("champion", tracks, "random")}) == 2


def test_a_replay_file_is_driven_on_its_own_road_only(tmp_path):
    replay = find_recorded("casual", load_track("track-02"))
    path = tmp_path / "somebody.replay"
    path.write_bytes(replace(replay, actions=replay.actions[:100]).to_bytes())
    [source] = find_sources(str(path), ["track-01", "track-02"], "line")
    assert (source.driver.name, source.track.track_id, source.replay_seed) == ("somebody", "track-02", replay.seed)
    with pytest.raises(ReplayError, match="no of the tracks named has its road"):
        list(find_sources(str(path), ["track-01"], "line"))


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputFileError, match=r"none\.replay: cannot be read"):
        list(find_sources(str(tmp_path / "none.replay"), [], "line"))
    with pytest.raises(DatasetError, match="leaderboard: there is none yet"):
        list(find_sources("leaderboard", [], "line"))

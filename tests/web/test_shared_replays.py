"""Shared replays on the disk, and how full their file may be."""

from datetime import datetime, timezone

import pytest

from hotlap.errors import LeaderboardError
from hotlap.web import shared_replays
from hotlap.web.shared_replays import SharedReplay, SharedReplays, replay_id

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def test_a_replay_is_kept_once_and_found_after_a_restart(tmp_path):
    path = tmp_path / "replays.sqlite3"
    replays = SharedReplays(path, lambda: NOON)
    shared, is_new = replays.add(b"content", "lap", "track-01", "Ada")
    assert (shared, is_new) == (
        SharedReplay(replay_id(b"content"), "lap", "track-01", "Ada", "2026-01-31T12:00:00Z"), True,
    )  # fmt: skip
    assert replays.add(b"content", "lap", "track-01", "Eve") == (shared, False)
    replays.close()
    again = SharedReplays(path)
    assert again.find(shared.id) == shared
    assert again.content(shared.id) == b"content"
    assert again.find("nobody") is None
    assert again.content("nobody") is None
    again.close()


def test_a_full_file_and_a_large_replay_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_replays, "MAX_SHARED", 1)
    replays = SharedReplays(tmp_path / "replays.sqlite3")
    with pytest.raises(LeaderboardError, match="at most 65536 bytes"):
        replays.add(b"x" * 65_537, "lap", "track-01", None)
    replays.add(b"one", "lap", "track-01", None)
    with pytest.raises(LeaderboardError, match="no more fit"):
        replays.add(b"two", "lap", "track-01", None)
    replays.close()


def test_an_id_has_sixteen_characters_that_need_no_quoting():
    assert replay_id(b"") == "47DEQpj8HBSa-_TI"  # the beginning of SHA-256 of nothing, in base64url

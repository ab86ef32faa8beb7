"""A lap that is on the board already, sent again as somebody else's: it stays the one entry that it was."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.web.replay_format import Replay

IDLE = np.zeros((600, 3), np.float32)


def with_actions(replay: Replay, *more: np.ndarray) -> Replay:
    return replace(replay, actions=np.concatenate([replay.actions, *more]))


def beyond_the_range(replay: Replay) -> Replay:
    """The simulator clips inputs, so that these drive the same lap."""
    return replace(replay, actions=np.where(replay.actions >= 1.0, np.float32(2.5), replay.actions))


def with_negative_zeros(replay: Replay) -> Replay:
    return replace(replay, actions=np.where(replay.actions == 0.0, np.float32(-0.0), replay.actions))


def cut_to_its_lap(replay: Replay) -> Replay:
    """Without the ticks after the lap that it claims; found by trying, without the code under test."""
    from hotlap.errors import ReplayError
    from hotlap.web.replays import verify

    def drives_it(num_ticks: int) -> bool:
        try:
            verify(replace(replay, actions=replay.actions[:num_ticks]), "track-02")
        except ReplayError:
            return False
        return True

    few, many = 1, replay.num_ticks
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if drives_it(middle) else (middle, many)
    return replace(replay, actions=replay.actions[:many])


FORGERIES = {
    "another seed": lambda replay: replace(replay, seed=12345),
    "idle ticks appended": lambda replay: with_actions(replay, IDLE),
    "one tick appended": lambda replay: with_actions(replay, IDLE[:1]),
    "its last input held on": lambda replay: with_actions(replay, np.repeat(replay.actions[-1:], 90, axis=0)),
    "both": lambda replay: replace(with_actions(replay, IDLE), seed=7),
    "cut to its lap": cut_to_its_lap,
    "inputs beyond the range": beyond_the_range,
    "negative zeros": with_negative_zeros,
}


@pytest.mark.integration
@pytest.mark.parametrize("driver", ["casual", "champion", "optimal"])
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_drivers_lap_is_not_entered_as_a_persons(play_server, driver, forge):
    leaderboard = play_server.get("/api/board?track=track-02").json
    [entry] = [one for one in leaderboard if one["driver_id"] == driver]
    forged = forge(replace(Replay.from_bytes(play_server.get(f"/{entry['replay']}").body), is_quantised=False))
    answer = play_server.post("/api/board", {"track": "track-02", "driver": "Mallory", "replay": forged.to_text()})
    assert answer.status == 200, answer.body
    assert answer.json == entry
    assert play_server.get("/api/board?track=track-02").json == leaderboard


@pytest.mark.integration
def test_another_lap_of_the_same_drive_is_another_entry(play_server):
    [entry] = [one for one in play_server.get("/api/board?track=track-03").json if one["driver_id"] == "casual"]
    replay = Replay.from_bytes(play_server.get(f"/{entry['replay']}").body)
    laps = play_server.post("/api/replays/check", {"replay": replay.to_text()}).json["laps"]
    [other] = [lap for lap in laps if lap["lap"] != entry["lap"]]
    own = replace(replay, lap=other["lap"], lap_time_s=np.float32(other["lap_time_sec"]))
    answer = play_server.post("/api/board", {"track": "track-03", "driver": "Ada", "replay": own.to_text()})
    assert answer.status == 201
    assert answer.json["lap"] == other["lap"]

"""The page on a race, from counts that are known."""

import numpy as np

from hotlap.evaluation.races import RaceCounts
from hotlap.reports.html import Picture
from hotlap.reports.pages.race_page import describe, render_race
from hotlap.tracks.registry import load_track
from reports.known_races import REPLAY, known_counts

PICTURE = Picture("gaps.png", "Gaps", "behind the winner", b"")


def test_the_winner_is_named_and_names_are_escaped():
    text = render_race(REPLAY, known_counts(), load_track("track-01"), PICTURE)
    assert "3 cars on" in text
    assert describe(REPLAY) == "2 laps from a rolling start, seed 5."
    assert "<i>" not in text
    assert "&lt;i&gt;slow&lt;/i&gt;" in text
    assert text.index(">fast<") < text.index("&lt;i&gt;slow")


def test_nobody_wins_where_nobody_finishes():
    lost = np.full((1, 3), np.nan, np.float32)
    others = {name: getattr(known_counts(), name) for name in RaceCounts.__dataclass_fields__}
    none = RaceCounts(**{**others, "race_times_s": lost, "has_finished": np.zeros((1, 3), np.bool_)})
    assert "nobody finished" in render_race(REPLAY, none, load_track("track-01"), PICTURE)

"""A league: races shared among tracks, and a table of results that are known beforehand."""

from types import SimpleNamespace

import numpy as np
import pytest

from hotlap.errors import ConfigError
from hotlap.evaluation import league
from hotlap.evaluation.league import drive_league, join_counts
from hotlap.evaluation.race_results import summarise_races
from hotlap.evaluation.races import Entry, RaceCounts, race
from hotlap.runs.race_entries import find_entries


def counts(positions, km=1.0, faults=0):
    """Races with this order of cars, who drove so far and had so many faults each."""
    shape = np.shape(positions)
    zeros = dict.fromkeys(("hard_faults", "overtakes", "clean_overtakes", "slots"), np.zeros(shape, np.int64))
    return RaceCounts(
        positions=np.array(positions, np.int32),
        has_finished=np.ones(shape, np.bool_),
        race_times_s=np.full(shape, 90.0, np.float32),
        distances_m=np.full(shape, 1000.0 * km),
        contacts=np.full(shape, 2 * faults),
        faults=np.full(shape, faults),
        best_laps_s=np.full(shape, 30.0),
        repeat=1,
        **zeros,
    )


@pytest.fixture
def driven(monkeypatch):
    """What races the league asks for; on road `b` the second driver is ahead, elsewhere the first."""
    asked = []

    def fake(entries, track, *, num_races, seed, progress, **task):
        asked.append((track, num_races, seed))
        progress(1.0)
        order = [2, 1] if track == "b" else [1, 2]
        return counts([order] * num_races, km=2.0, faults=1)

    monkeypatch.setattr(league, "race", fake)
    return asked


def entries_on(track):
    return [Entry("one", SimpleNamespace(name="one")), Entry("two", SimpleNamespace(name="two"))]


def test_races_are_shared_among_the_tracks_and_the_table_is_of_all_of_them(driven):
    fractions = []
    found = drive_league(entries_on, ["a", "b", "c"], num_races=8, seed=5, progress=fractions.append)
    assert driven == [("a", 3, 5), ("b", 3, 5), ("c", 2, 5)]
    assert fractions == [3 / 8, 6 / 8, 1.0]
    one, two = found.drivers
    assert (one.driver, one.wins, one.win_rate, one.mean_position) == ("one", 5, 5 / 8, (5 * 1 + 3 * 2) / 8)
    assert (one.contacts_per_km, one.at_fault_contacts_per_km) == (1.0, 0.5)
    assert one.elo > 1500.0 > two.elo
    assert one.elo_low < one.elo < one.elo_high
    assert {(pair.driver, pair.ahead_rate) for pair in found.pairs} == {("one", 5 / 8), ("two", 3 / 8)}
    assert [(row.track, row.races, row.drivers[1].win_rate) for row in found.by_track] == [
        ("a", 3, 0.0),
        ("b", 3, 1.0),
        ("c", 2, 0.0),
    ]


def test_many_races_are_driven_in_batches_with_seeds_of_their_own(driven):
    drive_league(entries_on, ["b"], num_races=1100, seed=7)
    assert driven == [("b", 512, 7), ("b", 512, 519), ("b", 76, 1031)]


def test_the_best_rated_is_first(driven):
    assert [row.driver for row in drive_league(entries_on, ["b"], num_races=4).drivers] == ["two", "one"]


def test_joined_counts_are_those_of_all_races():
    joined = join_counts([counts([[1, 2]]), counts([[2, 1], [2, 1]], km=3.0)])
    assert joined.positions.tolist() == [[1, 2], [2, 1], [2, 1]]
    assert joined.distances_m[:, 0].tolist() == [1000.0, 3000.0, 3000.0]


def test_too_few_races_or_drivers_are_refused(driven):
    with pytest.raises(ConfigError, match="from 2 races, one a track, to 100000, got 1"):
        drive_league(entries_on, ["a", "b"], num_races=1)
    with pytest.raises(ConfigError, match="two drivers or more, got one"):
        drive_league(lambda track: entries_on(track)[:1] * 2, ["a"], num_races=4)
    assert driven == []


def test_the_races_of_a_league_are_those_of_hotlap_race():
    def field(track):
        return find_entries(["champion", "champion@0.5"], track)

    found = drive_league(field, ["track-01"], num_races=2, laps=1, seed=3, num_threads=1)
    expected = summarise_races(
        "track-01", 1, field("track-01"), race(field("track-01"), "track-01", laps=1, num_races=2, seed=3)
    )
    assert found.by_track == [expected]
    assert [row.driver for row in found.drivers] == ["champion", "champion@0.5"]

"""The table of races, from positions that are known."""

import numpy as np
import pytest

from hotlap.evaluation.race_results import join_entries, summarise_races
from hotlap.evaluation.races import Entry, RaceCounts


def counts(positions):
    """Races in which a car drove 500 m and had its number of contacts."""
    positions = np.array(positions, np.int32)
    cars = np.broadcast_to(np.arange(positions.shape[1]), positions.shape).astype(np.int64)
    fields = dict.fromkeys(RaceCounts.__dataclass_fields__, cars * 0)
    times_s = np.full(positions.shape, 40.0)
    known = {"positions": positions, "contacts": cars, "distances_m": cars * 0 + 500.0, "best_laps_s": times_s + cars}
    return RaceCounts(**{**fields, "race_times_s": times_s, **known})


ENTRIES = [Entry("a", None, 1), Entry("b", None, 2), Entry("a", None, 1)]


def test_entries_of_one_label_are_one_driver():
    labels, owners = join_entries(ENTRIES)
    assert labels == ["a", "b"]
    assert owners.tolist() == [0, 1, 1, 0]


def test_wins_and_pairs_are_counted_over_all_cars():
    # The cars 0 and 3 are of `a`. In the first race they come in first and last, in the second first and second.
    results = summarise_races("track-01", 2, ENTRIES, counts([[1, 2, 3, 4], [1, 3, 4, 2]]))
    assert (results.track, results.laps, results.races) == ("track-01", 2, 2)
    first, second = results.drivers
    assert (first.driver, first.cars, first.wins, first.win_rate) == ("a", 2, 2, 1.0)
    assert (second.driver, second.cars, second.wins) == ("b", 2, 0)
    assert (first.mean_position, second.mean_position) == (2.0, 3.0)
    assert first.elo > second.elo
    ahead = {(pair.driver, pair.against): pair.ahead_rate for pair in results.pairs}
    assert ahead == {("a", "b"): pytest.approx(6 / 8), ("b", "a"): pytest.approx(2 / 8)}


def test_figures_of_a_driver_are_those_of_its_cars():
    first, second = summarise_races("track-01", 1, ENTRIES, counts([[1, 2, 3, 4], [1, 2, 3, 4]])).drivers
    assert first.contacts_per_km == pytest.approx((0 + 3) * 2 / 2.0)
    assert second.contacts_per_km == pytest.approx((1 + 2) * 2 / 2.0)
    assert (first.best_lap_time_sec, second.best_lap_time_sec) == (40.0, 41.0)
    assert first.clean_overtake_rate is None
    assert summarise_races("x", 1, ENTRIES, counts([[1, 2, 3, 4]])).as_dict()["drivers"][0]["driver"] == "a"

"""Races of a policy in training against drivers that stay the same, for the figures `race/*` and the best model."""

from collections.abc import Sequence
from statistics import fmean

from hotlap.drivers.driver import make_driver
from hotlap.drivers.packed import PackedDriver
from hotlap.evaluation.race_results import DriverResult, summarise_races
from hotlap.evaluation.races import Entry, race
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import CHAMPION, GENERALIST, champion_tracks, find_shipped

OWN_CARS, POOL_CARS = 2, 3  # of the policy, and of each of the two drivers of the pool
NUM_RACES, NUM_LAPS = 8, 2
MAX_TRACKS = 3
SEED = 1_000_000_007  # far from those of training
# In a selection, one contact of its own fault in 2 km counts as much as a position.
FAULT_COST = 2.0


def evaluate_races(driver: PackedDriver, track_ids: Sequence[str]) -> dict[str, float]:
    """The figures of races on the first few of the tracks, each the mean over them."""
    tracks = list(dict.fromkeys(track_ids))[:MAX_TRACKS]
    results = [_race_on(driver, track_id) for track_id in tracks]
    return {
        "race/win_rate": fmean(one.win_rate for one in results),
        "race/mean_position": fmean(one.mean_position for one in results),
        "race/at_fault_contacts_per_km": fmean(one.at_fault_contacts_per_km for one in results),
        "race/clean_overtakes_per_race": fmean(
            one.overtakes_per_race * (one.clean_overtake_rate or 0.0) for one in results
        ),
        "race/elo": fmean(one.elo for one in results),
    }


def race_score(figures: dict[str, float]) -> float:
    """What the best model is selected by: a good position with few faults; greater is better."""
    return -figures["race/mean_position"] - FAULT_COST * figures["race/at_fault_contacts_per_km"]


def _race_on(driver: PackedDriver, track_id: str) -> DriverResult:
    """What the policy's cars do among champions, or generalists where the track has none, and casual drivers."""
    name = CHAMPION if track_id in champion_tracks() else GENERALIST
    pool = make_driver(name, read_model(find_shipped(name, track_id)))
    entries = [
        Entry("policy", driver, OWN_CARS),
        Entry(name, pool, POOL_CARS),
        Entry("casual", make_driver("casual", None), POOL_CARS),
    ]
    counts = race(entries, track_id, laps=NUM_LAPS, num_races=NUM_RACES, seed=SEED)
    return summarise_races(track_id, NUM_LAPS, entries, counts).drivers[0]

"""Races against a frozen pool: the order of known drivers, and the score of the best model."""

import pytest

from hotlap.drivers.packed import PackedDriver
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import find_shipped
from hotlap.training import race_evaluation
from hotlap.training.race_evaluation import evaluate_races, race_score


def test_a_champion_among_champions_and_casual_cars_is_in_the_first_half(monkeypatch):
    monkeypatch.setattr(race_evaluation, "NUM_RACES", 2)
    monkeypatch.setattr(race_evaluation, "NUM_LAPS", 1)
    champion = PackedDriver.from_model(read_model(find_shipped("champion", "track-01")))
    found = evaluate_races(champion, ["track-01", "track-01"])
    assert 1.5 <= found["race/mean_position"] < 5.0
    assert found["race/elo"] > 1500.0


def test_a_fault_in_two_kilometres_costs_as_much_as_a_position():
    figures = {"race/mean_position": 3.0, "race/at_fault_contacts_per_km": 0.5}
    assert race_score(figures) == pytest.approx(-4.0)

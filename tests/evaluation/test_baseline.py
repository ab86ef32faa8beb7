"""The casual driver's lap is that of `hotlap evaluate casual`."""

from hotlap.drivers.casual import CasualDriver
from hotlap.evaluation import baseline
from hotlap.evaluation.evaluate import evaluate


def test_it_is_the_median_of_the_evaluated_laps(monkeypatch):
    monkeypatch.setattr(baseline, "CASUAL_EPISODES", 2)
    found = evaluate(CasualDriver(), "track-01", episodes=2, seed=5)
    assert baseline.measure_casual_lap("track-01", seed=5) == found.median_lap_time_sec
    assert 30.0 < found.median_lap_time_sec < 60.0

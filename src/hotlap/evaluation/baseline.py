"""The casual driver's lap of a track, the baseline of reports and of the page: that of `hotlap evaluate casual`."""

CASUAL_EPISODES = 20  # each with noise of its own


def measure_casual_lap(track_id: str, seed: int = 0) -> float | None:
    """The median (s) of the casual driver's clean flying laps from the line; None if it drove none."""
    # numba is slow to import, and the help of `hotlap evaluate` needs the number above.
    from hotlap.drivers.casual import CasualDriver
    from hotlap.evaluation.evaluate import evaluate

    return evaluate(CasualDriver(), track_id, episodes=CASUAL_EPISODES, seed=seed).median_lap_time_sec

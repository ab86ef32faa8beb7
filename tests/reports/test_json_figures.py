"""The figures of a report as plain data."""

import json

import numpy as np

from hotlap.reports.json_figures import race_as_dict
from reports.known_races import REPLAY, known_counts


def test_the_figures_are_in_the_order_of_the_finish():
    found = race_as_dict(REPLAY, known_counts())
    assert [car["driver"] for car in found["cars"]] == ["fast", "<i>slow</i>", "lost"]
    assert [car["slot"] for car in found["cars"]] == [2, 1, 3]
    assert found["cars"][0]["race_time_sec"] == 65.25
    assert np.isnan(found["cars"][2]["race_time_sec"])
    json.dumps(found)  # plain values

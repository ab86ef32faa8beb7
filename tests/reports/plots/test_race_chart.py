"""When cars of a race were where, from a race that is known."""

from types import SimpleNamespace

import numpy as np

from hotlap.reports.plots.race_chart import RaceHistory, draw_race_chart


def history():
    """Two cars at 10 and 5 m/s for 20 s; after 10 s the second rolls back and is out."""
    found = RaceHistory()
    for tick in range(0, 1201, 60):
        second_s = min(tick / 60.0, 10.0)
        back_m = 3.0 if tick > 660 else 0.0
        fleet = SimpleNamespace(
            lap_lengths_m=np.array([200.0, 200.0]),
            laps=1,
            entrants={"tick": np.array([tick, tick])},
            progress_m=np.array([10.0 * tick / 60.0, 5.0 * second_s - back_m]),
        )
        found.add(fleet)
    return found


def test_arrivals_are_the_first_times_and_missing_where_a_car_never_was():
    times_s = history().arrivals_s(np.array([0.0, 25.0, 50.0, 51.0, 200.0, 201.0]))
    np.testing.assert_allclose(times_s[0], [0.0, 2.5, 5.0, 5.1, 20.0, np.nan])
    np.testing.assert_allclose(times_s[1], [0.0, 5.0, 10.0, np.nan, np.nan, np.nan])


def test_a_picture_is_drawn_and_names_are_no_formulas():
    png = draw_race_chart(history(), ["a $x^2$", "b"], np.array([1, 2]), "race")
    assert png.startswith(b"\x89PNG")

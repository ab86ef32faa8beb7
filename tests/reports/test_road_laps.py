"""A driver on many roads: its summary, its table, and where starts fail in words."""

from dataclasses import replace
from unittest.mock import Mock

from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.failures import Failures, TrackPlace
from hotlap.reports.road_laps import RoadLaps, describe_failures, drive_road, road_table, summarise_roads
from reports.known_laps import known_trace

FIGURES = Evaluation(
    "casual", "track-01", "random", 0, 40, 39, 0.975, 1.0, 31.0, 31.0, 31.0, 0.1, None, None, 0.0, 1.0
)  # fmt: skip


NO_FAILURES = Failures()


def road_with(track, gap=None, optimal_s=None, comparison=None, failures=NO_FAILURES):
    return RoadLaps(track, replace(FIGURES, gap_to_optimal=gap), failures, known_trace(), optimal_s, comparison)


def test_summary_has_the_median_and_the_worst_of_the_known_gaps():
    all_done = [replace(FIGURES, completion_rate=1.0, gap_to_optimal=gap) for gap in (0.05, 0.07, 0.12)]
    assert str(summarise_roads(all_done)) == (
        "3 of 3 tracks completed from every start; gap to the optimal lap: median 7.0 %, worst 12.0 %"
    )
    assert str(summarise_roads([*all_done[:1], FIGURES])) == (
        "1 of 2 tracks completed from every start; gap to the optimal lap: median 5.0 %, worst 5.0 % over 1 track"
    )
    nothing = str(summarise_roads([FIGURES]))
    assert nothing == "0 of 1 track completed from every start; no gap to an optimal lap is known"


def test_table_says_where_the_optimum_is_not_known(track):
    rows = road_table([road_with(track), road_with(track, 0.05, 29.5), road_with(track, None, 29.5)]).rows
    assert rows[0] == ["Lantern Bay", "890 m", "97.5 %", "100 %", "31.00 s", "–", "not solved"]
    assert rows[1][-2:] == ["29.50 s", "+5.0 %"]
    assert rows[2][-2:] == ["29.50 s", "–"]


def test_failures_are_counted_by_the_nearest_corner(track, comparison):
    sectors = sorted(comparison.sectors, key=lambda one: one.number)
    first, second = sectors[0], sectors[1]
    places = [TrackPlace(0.0, 0.0, at_m) for at_m in (second.apex_m + 1.0, second.apex_m - 1.0, first.apex_m)]
    failures = Failures((places[0],), tuple(places))
    assert describe_failures(road_with(track, failures=failures)) == (
        f"Of 40 starts, 3 cars left the road or touched a wall near {second.label} (2), {first.label} (1) (dots); "
        f"1 car stopped near {second.label} (crosses)."
    )
    assert describe_failures(road_with(track)) == ""


def test_a_road_is_compared_with_its_optimum_where_that_is_known(monkeypatch, track, reference):
    module = "hotlap.reports.road_laps"
    monkeypatch.setattr(f"{module}.evaluate", Mock(return_value=replace(FIGURES, failed_cars=())))
    monkeypatch.setattr(f"{module}.record_laps", lambda *_, **__: known_trace())
    unknown = drive_road(Mock(), track, lambda _: None, num_starts=40)
    assert (unknown.optimal_lap_s, unknown.comparison, unknown.figures.gap_to_optimal) == (None, None, None)
    known = drive_road(Mock(), track, lambda _: reference, num_starts=40)
    assert known.figures.gap_to_optimal == 31.0 / reference.lap_time_s - 1.0
    assert len(known.comparison.sectors) == 7

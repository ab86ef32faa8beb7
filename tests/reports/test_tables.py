"""Tables of runs, cell by cell."""

from dataclasses import replace

from hotlap.reports.run_record import Figures
from hotlap.reports.tables import Table, run_table, to_markdown
from reports.written_runs import lander, record


def racer(seed: int, lap_s: float | None, gap: float | None, completed: float = 1.0):
    return record(seed, final=Figures(4000, 1.0, None, None, completed, 0.875, lap_s, gap))


def test_a_racers_run_in_a_row():
    table = run_table([racer(1, 31.414, 0.1096)])
    assert table.heads == ["seed", "steps", "training", "completed", "clean laps", "median lap", "gap to optimum"]
    assert table.rows == [["1", "4,000", "101 s", "100 %", "87.5 %", "31.41 s", "+11.0 %"]]
    assert table.num_summary_rows == 0


def test_a_landers_run_in_a_row():
    table = run_table([lander()])
    assert table.heads == [
        "seed",
        "steps",
        "training",
        "steps to 200",
        "time to 200",
        "return",
        "std",
        "episode length",
    ]
    assert table.rows == [["1", "4,000", "101 s", "3,000", "300 s", "231.0", "20.0", "300"]]


def test_without_a_threshold_nothing_is_reached():
    assert "steps to 200" not in run_table([lander(reward_threshold=None)]).heads


def test_several_runs_end_in_median_worst_and_interquartile_mean():
    table = run_table([racer(1, 30.0, 0.06), racer(2, 34.0, 0.20, completed=0.5), racer(3, 31.0, 0.10)])
    assert table.num_summary_rows == 4
    median, worst, mean, interval = table.rows[-4:]
    assert median == ["median", "", "102 s", "100 %", "87.5 %", "31.00 s", "+10.0 %"]
    assert worst == ["worst", "", "103 s", "50 %", "87.5 %", "34.00 s", "+20.0 %"]
    assert mean == ["interquartile mean", "", "", "83.3 %", "87.5 %", "31.67 s", "+12.0 %"]
    assert interval == [
        "its 95 % interval",
        "",
        "",
        "50 to 100 %",
        "87.5 to 87.5 %",
        "30.00 to 34.00 s",
        "+6.0 to +20.0 %",
    ]
    assert run_table([racer(1, 30.0, 0.06), racer(2, 34.0, 0.20, completed=0.5), racer(3, 31.0, 0.10)]) == table


def test_a_run_without_a_lap_is_not_passed_over():
    table = run_table([racer(1, 30.0, 0.06), racer(2, None, None, completed=0.0), racer(3, 31.0, 0.10)])
    lap = table.heads.index("median lap")
    assert [row[lap] for row in table.rows] == ["30.00 s", "–", "31.00 s", "31.00 s", "–", "–", "–"]


def test_nearly_all_is_not_all():
    assert run_table([racer(1, 30.0, 0.06, completed=0.9999)]).rows[0][3] == "99.9 %"
    assert run_table([racer(1, 30.0, 0.06, completed=0.57)]).rows[0][3] == "57 %"


def test_a_run_in_progress_says_so():
    [row] = run_table([replace(racer(1, 30.0, 0.06), is_finished=False, training_s=None)]).rows
    assert row[0] == "1, so far"
    assert row[2] == "–"


def test_faster_than_the_optimum_has_a_true_minus():
    assert run_table([racer(1, 28.0, -0.001)]).rows[0][-1] == "−0.1 %"


def test_markdown():
    table = Table(["seed", "lap"], [["1", "30 s"], ["a|b", ""], ["median", "31 s"]], num_summary_rows=1)
    assert to_markdown(table) == (
        "| seed | lap |\n| --- | ---: |\n| 1 | 30 s |\n| a\\|b |  |\n| **median** | **31 s** |\n"
    )

"""Tables of runs."""

from dataclasses import replace

from hotlap.reports.run_record import EvaluationFigures
from hotlap.reports.tables import Table, run_table, to_markdown, to_text
from reports.written_runs import lander, record


def racer(seed: int, lap_s: float | None, gap: float | None, completed: float = 1.0):
    return record(seed, final=EvaluationFigures(4000, 1.0, None, None, completed, 0.875, lap_s, gap))


def test_row_of_a_racer():
    table = run_table([racer(1, 31.414, 0.1096)])
    assert table.heads == ["seed", "steps", "training", "completed", "clean laps", "median lap", "gap to optimum"]
    assert table.rows == [["1", "4,000", "101 s", "100 %", "87.5 %", "31.41 s", "+11.0 %"]]
    assert table.num_summary_rows == 0
    [unfinished] = run_table([replace(racer(1, 30.0, 0.06), is_finished=False, training_s=None)]).rows
    assert (unfinished[0], unfinished[2]) == ("1, so far", "–")


def test_row_of_a_lander():
    table = run_table([lander()])
    assert ", ".join(table.heads) == "seed, steps, training, steps to 200, time to 200, return, std, episode length"
    assert table.rows == [["1", "4,000", "101 s", "3,000", "300 s", "231.0", "20.0", "300"]]
    assert "steps to 200" not in run_table([lander(reward_threshold=None)]).heads


def test_several_runs_are_summarised():
    table = run_table([racer(1, 30.0, 0.06), racer(2, 34.0, 0.20, completed=0.5), racer(3, 31.0, 0.10)])
    assert table.num_summary_rows == 4
    median, worst, mean, interval = table.rows[-4:]
    assert median == ["median", "", "102 s", "100 %", "87.5 %", "31.00 s", "+10.0 %"]
    assert worst == ["worst", "", "103 s", "50 %", "87.5 %", "34.00 s", "+20.0 %"]
    assert mean == ["interquartile mean", "", "", "83.3 %", "87.5 %", "31.67 s", "+12.0 %"]
    assert interval[:3] == ["its 95 % interval", "", ""]
    assert interval[3:] == ["50 to 100 %", "87.5 to 87.5 %", "30.00 to 34.00 s", "+6.0 to +20.0 %"]
    assert run_table([racer(1, 30.0, 0.06), racer(2, 34.0, 0.20, completed=0.5), racer(3, 31.0, 0.10)]) == table


def test_run_without_a_lap_counts_as_the_worst():
    table = run_table([racer(1, 30.0, 0.06), racer(2, None, None, completed=0.0), racer(3, 31.0, 0.10)])
    lap = table.heads.index("median lap")
    assert [row[lap] for row in table.rows] == ["30.00 s", "–", "31.00 s", "31.00 s", "–", "–", "–"]


def test_table_as_markdown_and_text():
    table = Table(["seed", "lap"], [["1", "30 s"], ["a|b", ""], ["median", "31 s"]], num_summary_rows=1)
    assert to_markdown(table) == (
        "| seed | lap |\n| --- | ---: |\n| 1 | 30 s |\n| a\\|b |  |\n| **median** | **31 s** |\n"
    )
    assert to_text(table) == "seed     lap\n1       30 s\na|b\nmedian  31 s\n"

"""A sweep's status as text."""

from hotlap.sweeps.run_messages import RunReport
from hotlap.sweeps.status import read_status
from hotlap.sweeps.status_table import _sparkline, show_number, show_setting, status_table
from sweeps.tiny_sweeps import run_all


def test_every_trial_has_a_line_and_the_best_is_named(tmp_path):
    def answer(task):
        if task.trial == 1:
            return RunReport("failed", error="it fell over")
        return RunReport("finished", (2.5,), step=256)

    _, folder, _ = run_all(tmp_path, answer, seeds=[1])
    lines = status_table(read_status(folder)).splitlines()
    [first] = [line for line in lines if line.split()[:2] == ["0", "complete"]]
    assert "0.001" in first
    assert "2.5" in first
    assert any(line.startswith("1 ") or line.split()[:2] == ["1", "failed"] for line in lines)
    assert any("1 complete, 0 running, 0 pruned, 1 failed of 2 trials; finished" in line for line in lines)
    assert any(line.startswith("trial 1 failed: ") and "it fell over" in line for line in lines)
    assert any(line.startswith("best: trial 0, ") for line in lines)


def test_numbers_and_curves_are_short():
    assert [show_setting(value) for value in (0.00012345678, 3, "tanh")] == ["0.0001235", "3", "tanh"]
    assert show_number(1234567.0) == "1.2346e+06"
    assert show_number(None) == show_number(float("nan")) != "nan"
    assert _sparkline([0.0, 7.0, 3.0]) == "▁█▄"
    assert _sparkline([2.0, 2.0]) == "▁▁"
    assert len(_sparkline([float(k) for k in range(1000)])) == 40

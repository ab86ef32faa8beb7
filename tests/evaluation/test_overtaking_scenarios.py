"""The scenarios of the overtaking benchmark: the file has what is drawn, and nothing else is read."""

import json
from collections import Counter
from pathlib import Path

import pytest

from hotlap.errors import ConfigError, InputFileError
from hotlap.evaluation.overtaking_scenarios import (
    GAP_M,
    MAX_THROTTLE,
    NUM_SCENARIOS,
    digest_scenarios,
    draw_scenarios,
    read_scenarios,
    write_scenarios,
)

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
DIGEST = "5e06f3fb050c"  # of the scenarios that results were published with


def test_the_file_has_the_scenarios_that_are_drawn_and_they_are_the_published_ones():
    scenarios = read_scenarios(BENCHMARKS / "overtaking_scenarios.json")
    assert scenarios == draw_scenarios()
    assert digest_scenarios(scenarios) == DIGEST
    results = json.loads((BENCHMARKS / "results" / "overtaking.json").read_text(encoding="utf-8"))
    assert results["scenarios"] == DIGEST
    assert [one["other_left_road"] for one in results["drivers"]] == [0, 0, 0]


def test_tracks_and_lines_are_shared_evenly_and_the_rest_covers_its_range():
    scenarios = draw_scenarios()
    assert len(scenarios) == NUM_SCENARIOS == 2400
    assert set(Counter((one.track, one.line) for one in scenarios).values()) == {400}
    for name, between in (("gap_m", GAP_M), ("max_throttle", MAX_THROTTLE)):
        values = [getattr(one, name) for one in scenarios]
        assert between.low <= min(values) < between.low + 0.01 * (between.high - between.low)
        assert between.high >= max(values) > between.high - 0.01 * (between.high - between.low)
    assert draw_scenarios(7) == scenarios[:7]
    assert draw_scenarios(7, seed=1) != scenarios[:7]


def test_written_scenarios_are_read_again(tmp_path):
    write_scenarios(tmp_path / "few.json", draw_scenarios(5))
    assert read_scenarios(tmp_path / "few.json") == draw_scenarios(5)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("hotlap-overtaking-1", "other", "has no scenarios of the format hotlap-overtaking-1"),
        ('"kept"', '"lost"', "scenario 1 is out of its ranges"),
        ("[", "", "has no scenarios"),
    ],
)
def test_a_file_without_sound_scenarios_gets_one_line(tmp_path, old, new, problem):
    path = tmp_path / "few.json"
    write_scenarios(path, draw_scenarios(6)[2:4])
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=problem) as error:
        read_scenarios(path)
    assert str(path) in str(error.value)
    with pytest.raises(InputFileError, match="no such file"):
        read_scenarios(tmp_path / "nothing.json")

"""The table has all that ships, without naming any driver, and its stored figures are those of the models that ship."""

import json
from functools import partial

import benchmark_table
from benchmark.small_entries import small_protocol
from hotlap.benchmark import table
from hotlap.benchmark.overtaking_replays import drive_against
from hotlap.benchmark.protocol import BUILT_IN, OVERTAKING, load_protocol
from hotlap.benchmark.table import (
    CASUAL,
    CASUAL_WITH_EYES,
    OPTIMUM,
    Row,
    complete_rows,
    fingerprint,
    lap_table,
    marked,
    optimum_row,
    part_tables,
    parts_of,
    shipped_driver,
    shipped_names,
    stored_rows,
)
from hotlap.models.shipped_models import CHAMPION, GENERALIST
from results_file import ROOT


def test_the_stored_rows_are_those_of_the_models_that_ship_and_of_the_result_files():
    protocol, stored = load_protocol(), {row.name: row for row in stored_rows()}
    text = "run: python benchmarks/benchmark_table.py --json benchmarks/results/benchmark.json"
    assert {name: stored[name].fingerprint for name in shipped_names()} == {
        name: fingerprint(name, protocol) for name in shipped_names()
    }, text
    for label, name in benchmark_table.RECORDED.items():
        assert stored[label] == benchmark_table.recorded_row(label, name), text
    written = json.loads((ROOT / "benchmarks/results/benchmark.json").read_text(encoding="utf-8"))
    assert [table.read_row(row) for row in written["rows"]] == stored_rows(), text


def test_nothing_is_driven_for_the_table_of_the_protocol_that_ships():
    driven = []
    rows = complete_rows(load_protocol(), driven.append)
    assert driven == []
    names = [row.name for row in rows]
    assert {CASUAL, CASUAL_WITH_EYES, CHAMPION, GENERALIST, "PPO", "SAC", "A2C", OPTIMUM} == set(names)
    assert set(part_tables(rows, load_protocol())) == {"built-in", "test", "overtaking"}


def test_a_new_shipped_driver_is_driven_without_any_code(monkeypatch):
    protocol = small_protocol(num_scenarios=2)
    measured = []

    def measure(name, protocol, num_threads=None):
        measured.append(name)
        return Row(name, "shipped", optimum_row(protocol).figures)

    monkeypatch.setattr(table, "SHIPPED_NAMES", (CHAMPION, GENERALIST, "rival"))
    monkeypatch.setattr(table, "measure_shipped", measure)
    rows = complete_rows(protocol)
    assert measured == [CASUAL, CASUAL_WITH_EYES, CHAMPION, GENERALIST, "rival"]
    assert "rival" in [row.name for row in rows]


def test_a_champion_drives_only_where_there_is_one():
    protocol = load_protocol()
    assert parts_of(CHAMPION, protocol) == (BUILT_IN, OVERTAKING)
    assert parts_of(GENERALIST, protocol) == protocol.parts
    assert parts_of("a/model.zip", protocol) == protocol.parts


def test_a_casual_driver_with_eyes_touches_less_than_one_without():
    scenarios = small_protocol(num_scenarios=6).scenarios
    blind, seeing = (
        drive_against(partial(shipped_driver, name), scenarios).has_contact for name in (CASUAL, CASUAL_WITH_EYES)
    )
    assert seeing.sum() < blind.sum()


def test_rows_are_sorted_by_score_and_no_entry_passes_for_a_driver_that_ships():
    rows = complete_rows(load_protocol())
    scores = [row[-1] for row in lap_table(rows, BUILT_IN).rows]
    numbers = [float(score) for score in scores if score != "–"]
    assert numbers == sorted(numbers)
    assert scores[len(numbers) :] == ["–"] * 3
    cheat = Row(CHAMPION, "entry", optimum_row(load_protocol()).figures)
    first = marked(cheat, rows)
    second = marked(cheat, [*rows, first])
    assert (first.name, second.name) == ("champion (entry)", "champion (entry 2)")

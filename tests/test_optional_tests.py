"""The options --slow, --bench, --gpu, --part and --record, and that every optional test has passed once."""

import json
import os

import pytest

import optional_tests
from optional_tests import FOUND, RECORDED, choose_part, read_record

pytest_plugins = ("pytester",)

SUITE = """
import pytest

def test_fast(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_slow(number): assert number != 3

@pytest.mark.bench
def test_bench(): pass
"""
CONFTEST = """
from pathlib import Path
import optional_tests
optional_tests.RECORD = Path(__file__).parent / "last_passed.json"
optional_tests.find_commit = lambda: "0123abcd"
pytest_plugins = ("forked_workers", "optional_tests")
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite of its own with a record of its own."""
    pytester.makepyfile(test_suite=SUITE)
    pytester.makeini("[pytest]\nmarkers =\n  slow\n  bench\n  gpu\n")
    monkeypatch.setattr(optional_tests, "RECORD", pytester.path / "last_passed.json")
    monkeypatch.setattr(optional_tests, "find_commit", lambda: "0123abcd")
    return pytester


def run(suite, *options):
    return suite.runpytest_inprocess("-p", "optional_tests", "-p", "no:cacheprovider", *options)


@pytest.mark.parametrize(
    ("options", "passed", "failed"),
    [([], 1, 0), (["--slow"], 5, 1), (["--bench"], 1, 0), (["--slow", "--bench"], 6, 1)],
)
def test_only_what_is_asked_for_runs(suite, options, passed, failed):
    run(suite, *options).assert_outcomes(passed=passed, failed=failed, deselected=8 - passed - failed)


def run_in_processes(suite, *options):
    """The same with two processes that run the tests, and one that reports."""
    suite.makeconftest(CONFTEST)
    folders = [str(optional_tests.ROOT / name) for name in ("tests", "benchmarks")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(folders))
        return suite.runpytest_subprocess(*options, "--workers", "2")


@pytest.mark.parametrize("run_suite", [run, run_in_processes])
def test_a_test_that_passed_is_recorded_and_one_that_failed_keeps_its_line(suite, run_suite):
    record = suite.path / "last_passed.json"
    before = {
        name: {"day": "2020-01-01", "commit": "a", "seconds": 3.0} for name in ("test_suite.py::test_slow[3]", "x")
    }
    record.write_text(json.dumps(before), encoding="utf-8")
    run_suite(suite, "--slow", "--record")
    found = json.loads(record.read_text(encoding="utf-8"))
    assert found.keys() == {"x", *(f"test_suite.py::test_slow[{number}]" for number in range(6))}
    assert {name: found[name] for name in before} == before
    assert found["test_suite.py::test_slow[5]"]["commit"] == "0123abcd"
    assert found["test_suite.py::test_slow[5]"]["day"] > "2020-01-01"


def test_a_part_is_smaller_than_the_whole_and_the_whole_is_not_touched_without_a_record(suite):
    result = run(suite, "--slow", "--part", str(2 * optional_tests.UNKNOWN_S))
    result.assert_outcomes(**{**result.parseoutcomes(), "deselected": 6})
    assert not (suite.path / "last_passed.json").exists()


def test_a_part_stays_within_its_seconds_and_changes_with_the_commit():
    seconds = {f"test_{number}": float(number % 7 + 1) for number in range(100)}
    parts = [choose_part(seconds, 60.0, f"commit {number}") for number in range(50)]
    assert all(55.0 < sum(seconds[name] for name in part) <= 60.0 for part in parts)
    assert parts[0] == choose_part(seconds, 60.0, "commit 0")
    assert parts[0] != parts[1]
    assert set().union(*parts) == set(seconds)  # every test has its turn
    assert len(choose_part({"long": 1e6}, 60.0, "")) == 1


def test_every_slow_test_and_every_gpu_test_has_passed_once(pytestconfig):
    """Run a new one with `pytest --slow --record PATH`, or --gpu, and commit the record."""
    assert sorted(pytestconfig.stash[RECORDED] - read_record().keys()) == []


def test_the_record_names_no_test_that_is_gone(pytestconfig):
    """Delete the lines of tests that no longer exist."""
    files = {nodeid.split("::")[0] for nodeid in pytestconfig.stash[FOUND]}
    recorded = {nodeid for nodeid in read_record() if nodeid.split("::")[0] in files}
    assert sorted(recorded - pytestconfig.stash[FOUND]) == []
    assert [nodeid for nodeid in read_record() if not (optional_tests.ROOT / nodeid.split("::")[0]).exists()] == []

"""`--workers`: every test runs once, failures and crashes are reported, and all processes end together."""

import os
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FOLDER = str(Path(__file__).parent)

CONFTEST = """
pytest_plugins = ('forked_workers',)
def pytest_worker_group(item):
    return "a pair" if item.path.name in ("test_a.py", "test_c.py") else None
"""


@pytest.fixture
def run(pytester):
    """Run files with these contents in two processes; two of the files are a group."""
    pytester.makeconftest(CONFTEST)

    def start(*options, **files):
        pytester.makepyfile(**files)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", FOLDER)
            return pytester.runpytest_subprocess("--workers", "2", "-p", "no:cacheprovider", *options)

    return start


LOG = """
import os, pathlib, pytest
@pytest.fixture(scope="session")
def process():
    yield os.getpid()
    pathlib.Path(f"ended-{os.getpid()}").touch()
@pytest.mark.parametrize("number", range(5))
def test(process, number, tmp_path):
    print("output", number)
    pathlib.Path(f"{__name__}-{number}-{process}").touch(exist_ok=False)
    assert number != FAILS
def test_skipped():
    pytest.skip("reason")
"""


def test_every_test_runs_once_and_each_process_tears_down_its_own_fixtures(run, pytester):
    files = {f"test_{name}": LOG.replace("FAILS", "3" if name == "b" else "9") for name in "abcd"}
    result = run(**files)
    result.assert_outcomes(passed=19, failed=1, skipped=4)
    result.stdout.fnmatch_lines(["*test_b.py:*AssertionError", "output 3"])
    ran = [path.name.split("-") for path in pytester.path.glob("test_*-*-*")]
    assert sorted((name, number) for name, number, _ in ran) == sorted((f, str(n)) for f in files for n in range(5))
    processes = {process for *_, process in ran}
    assert {path.name for path in pytester.path.glob("ended-*")} == {f"ended-{process}" for process in processes}
    assert all(len({process for name, _, process in ran if name == file}) == 1 for file in files)
    assert len({process for name, _, process in ran if name in ("test_a", "test_c")}) == 1


def test_the_first_failure_ends_all_processes_if_asked(run, pytester):
    waiting = "import pathlib, pytest, time\n" + "\n".join(
        f"def test_{number}():\n    pathlib.Path('ran-{number}').touch()\n    time.sleep(0.1)" for number in range(100)
    )
    result = run("-x", test_a=waiting, test_b="import time\ndef test():\n    time.sleep(0.3)\n    assert False")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    assert 1 <= len(list(pytester.path.glob("ran-*"))) < 50


def test_a_process_that_dies_is_a_failure_of_its_test_and_the_others_go_on(run):
    result = run(test_a="import os\ndef test_killed():\n    os.kill(os.getpid(), 9)", test_b="def test():\n    pass")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the process ended with code -9*", "FAILED test_a.py::test_killed*"])


def test_an_error_in_the_collection_is_reported(run):
    result = run(test_a="import nothing_of_this_name", test_b="def test():\n    pass")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*1 error during collection*"])

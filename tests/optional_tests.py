"""Tests that run only when asked for by --slow, --bench or --gpu: a part of them, and when each last passed.

`tests/last_passed.json` has, for each of them, the day and the commit at which it last passed and how long it took.
`--record` brings it up to date. `--part SECONDS` chooses tests that take about that long, others at each commit.
"""

import hashlib
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from results_file import find_commit

MARKERS = ("slow", "bench", "gpu")
ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "last_passed.json"
UNKNOWN_S = 120.0  # taken for the duration of a test that is not in the record
# A part that takes this many times its seconds ends: the remaining tests are skipped with a word.
PATIENCE = 2.0

FOUND = pytest.StashKey[set[str]]()  # the optional tests among those that were collected
# Those of them that the record must name. Whether one that measures speed passes depends on the machine.
RECORDED = pytest.StashKey[set[str]]()
ENDS_S = pytest.StashKey[float]()  # when the part must end, by time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Not done by `-m`, so that a user's own `-m` does not select the slow tests."""
    group = parser.getgroup("hotlap")
    group.addoption("--slow", action="store_true", help="run only the tests that take minutes")
    group.addoption("--bench", action="store_true", help="run only the tests that measure speed")
    group.addoption("--gpu", action="store_true", help="run only the tests that need an NVIDIA GPU")
    group.addoption("--part", type=float, metavar="SECONDS", help="run a part of them that changes with each commit")
    group.addoption("--record", action="store_true", help=f"note in {RECORD.name} which of them passed")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the seconds of a part, and to note results where they are reported."""
    if config.getoption("part"):
        config.stash[ENDS_S] = time.monotonic() + PATIENCE * config.getoption("part")
    if config.getoption("record"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that were asked for: those without a marker if no option is given."""
    asked = {name for name in MARKERS if config.getoption(name)}
    marks = {item.nodeid: {name for name in MARKERS if item.get_closest_marker(name)} for item in items}
    config.stash[FOUND] = {nodeid for nodeid, names in marks.items() if names}
    config.stash[RECORDED] = {nodeid for nodeid, names in marks.items() if names - {"bench"}}
    keep = {nodeid for nodeid, names in marks.items() if (names & asked if asked else not names)}
    if config.getoption("part"):
        record = read_record()
        seconds = {nodeid: float(record.get(nodeid, {}).get("seconds", UNKNOWN_S)) for nodeid in keep}
        keep = choose_part(seconds, config.getoption("part"), find_commit() or "")
    dropped = [item for item in items if item.nodeid not in keep]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item.nodeid in keep]


def choose_part(seconds: dict[str, float], budget_s: float, key: str) -> set[str]:
    """Tests that together take at most `budget_s`, but at least one; another `key` gives another choice."""
    chosen: set[str] = set()
    total_s = 0.0
    for nodeid in sorted(seconds, key=lambda name: hashlib.sha256(f"{key} {name}".encode()).digest()):
        if not chosen or total_s + seconds[nodeid] <= budget_s:
            chosen.add(nodeid)
            total_s += seconds[nodeid]
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is left of a part that takes too long."""
    if time.monotonic() > item.config.stash.get(ENDS_S, float("inf")):
        pytest.skip(f"the part has taken {PATIENCE:g} times its seconds")


class Recorder:
    """Notes which tests passed, and adds them to the record at the end."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test: set-up, call or tear-down."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the record; tests that did not run keep their line."""
        entry = {"day": datetime.now(timezone.utc).date().isoformat(), "commit": find_commit()}
        passed = {name: s for name, s in self._seconds.items() if name not in self._failed}
        record = read_record() | {name: {**entry, "seconds": round(s, 1)} for name, s in passed.items()}
        lines = [f"{json.dumps(name)}: {json.dumps(record[name])}" for name in sorted(record)]
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_record() -> dict[str, Any]:
    """When each optional test last passed; empty if there is no record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}

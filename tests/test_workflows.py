"""The workflow for GitHub Actions: it parses, and has every platform, Python and verb that it should. It runs there."""

import re
from pathlib import Path

import pytest
import yaml

import bootstrap

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def jobs():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8"))["jobs"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_parses_and_may_only_read(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1"))


def test_check_runs_on_every_platform_with_every_python_that_the_project_supports(jobs):
    matrix = jobs["check"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    (major, oldest), (_, newest) = bootstrap.OLDEST, bootstrap.NEWEST
    assert matrix["python"] == [f"{major}.{minor}" for minor in range(oldest, newest + 1)]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"Python :: (\d\.\d+)", text) == matrix["python"]


def test_every_verb_of_a_workflow_exists(jobs):
    runs = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    verbs = re.findall(r"^(?:make|python tools/bootstrap\.py) (\S+)", runs, re.MULTILINE)
    assert {"check", "wheel", "docs"} <= set(verbs) <= set(bootstrap.VERBS)

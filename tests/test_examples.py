"""The example clients drive a lap through a real bridge, and both drive the same lap."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PYTHON = [sys.executable, str(EXAMPLES / "python" / "drive.py")]
JAVASCRIPT = EXAMPLES / "javascript" / "drive.mjs"

TIMEOUT_S = 50


def node() -> list[str]:
    """The command that runs the JavaScript example. Without Node the test is skipped, but fails in CI."""
    program = shutil.which("node")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Node.js is missing: CI must run the JavaScript example")
        pytest.skip("Node.js is missing: install it to run the JavaScript example")
    return [program, str(JAVASCRIPT)]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def lap_line(command: list[str], url: str) -> str:
    answer = run([*command, url])
    assert (answer.returncode, answer.stderr) == (0, "")
    first, last = answer.stdout.splitlines()
    assert re.fullmatch(r"physics \S+, \d+ tracks", first)
    return last


def test_both_examples_drive_the_same_lap(bridge_server):
    line = lap_line(PYTHON, bridge_server.url)
    assert 50.0 < float(re.fullmatch(r"lap time (\S+) s, return \S+", line)[1]) < 80.0
    assert lap_line(node(), bridge_server.url) == line


def test_the_javascript_example_reports_a_missing_bridge():
    answer = run([*node(), "ws://127.0.0.1:1"])
    assert answer.returncode == 1
    assert "start one with hotlap bridge" in answer.stderr


def test_the_python_example_does_not_import_hotlap_and_the_javascript_example_needs_no_packages():
    text = (EXAMPLES / "python" / "drive.py").read_text(encoding="utf-8")
    assert re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) == ["json", "sys", "websocket"]

    imported = re.findall(r'^import .* from "(.*)";', JAVASCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert imported
    assert all(name.startswith("node:") for name in imported)

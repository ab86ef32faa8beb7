"""Tests that leave variables or modules behind are reported themselves."""

import os
import textwrap
from pathlib import Path

pytest_plugins = ("pytester",)

TESTS = """
import os, sys
import pytest

def test_good(monkeypatch):
    monkeypatch.setenv("HOTLAP_X", "1")
    os.environ["OF_A_LIBRARY"] = "1"

def test_a_variable():
    os.environ["HOTLAP_X"] = "1"

def test_another(monkeypatch):
    monkeypatch.delenv("HOTLAP_X")  # comes back

def test_a_module(monkeypatch):
    import hotlap.errors
    monkeypatch.delitem(sys.modules, "hotlap.errors")
    import hotlap.errors

def test_last():
    pass
"""


def test_the_test_that_leaves_something_fails(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    pytester.makeini("[pytest]\n")
    pytester.makeconftest('pytest_plugins = ("traces_of_tests",)\n')
    pytester.makepyfile(textwrap.dedent(TESTS))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(["*left other environment variables: HOTLAP_X*", "*left another copy of a module*"])

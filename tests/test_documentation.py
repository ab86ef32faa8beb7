"""The documentation's Python runs, and its tables say what the code does."""

import json
import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from hotlap.config import camel_case
from hotlap.drivers.casual import CasualHabits
from hotlap.envs.settings import RacerSettings

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ["casual-driver.md", "environment.md"])
def test_the_examples_run_from_top_to_bottom(name):
    examples = blocks(DOCS / name, "python")
    assert examples
    names: dict[str, object] = {}
    for number, example in enumerate(examples, start=1):
        exec(compile(example, f"{name}, example {number}", "exec"), names)


@pytest.mark.usefixtures("compiled")
def test_the_errors_shown_are_the_errors_raised(capsys):
    examples = "\n".join(blocks(DOCS / "environment.md", "python"))
    exec(compile(examples, "environment.md", "exec"), {})
    shown = re.findall(r"print\(error\)  # (.*)", examples)
    assert capsys.readouterr().out.splitlines() == shown


def test_the_documented_configuration_is_the_default():
    [text] = blocks(DOCS / "environment.md", "json")
    defaults = asdict(RacerSettings())
    assert json.loads(text) == {
        part: {camel_case(key): value for key, value in values.items()} for part, values in defaults.items()
    }


def test_the_documented_habits_are_the_casual_drivers():
    habits = CasualHabits()
    documented = {}
    for names, values in re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| ([\d., ]+) \|",
        (DOCS / "casual-driver.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    ):
        numbers = [float(value) for value in values.split(",")]
        documented.update(zip(re.findall(r"`(\w+)`", names), numbers, strict=True))
    assert documented == {field.name: getattr(habits, field.name) for field in fields(habits)}

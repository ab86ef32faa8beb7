"""docs/recipes.md is up to date and names every key of a run's configuration."""

import importlib.util
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from hotlap.runs.run_config import RunConfig

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "recipes.md"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_recipe_docs", ROOT / "tools" / "make_recipe_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date_and_describes_every_shipped_recipe(tool):
    assert tool.DOCUMENT == PAGE
    assert tool.make_text() == PAGE.read_text(encoding="utf-8"), "Run python tools/make_recipe_docs.py."
    for name in tool.recipe_names():
        assert len(tool.describe_recipe(name)) > 20
        assert f"[`{name}`]" in PAGE.read_text(encoding="utf-8")


def test_every_key_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    for name, value in vars(RunConfig()).items():
        if not is_dataclass(value):
            assert f"\n| `{name}` | " in text
            continue
        section = text.split(f"\n## `[{name}]`\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(vars(value))

"""docs/recipes.md and the configuration in docs/environment.md are those of the code that checks the settings."""

import dataclasses
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import make_settings_docs as tool
from hotlap.config import as_plain, camel_case, setting, snake_case
from hotlap.envs.settings import RacerSettings
from hotlap.runs.run_config import RunConfig

ROOT = Path(__file__).resolve().parent.parent
RECIPES, ENVIRONMENT = ROOT / "docs" / "recipes.md", ROOT / "docs" / "environment.md"
KEY = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def keys_in(text: str, title: str) -> list[str]:
    """The keys of the table under a title."""
    return KEY.findall(text.split(f"# {title}\n")[1].split("\n#")[0])


def test_the_page_of_recipes_is_up_to_date_and_describes_every_shipped_recipe():
    assert tool.RECIPES == RECIPES
    assert tool.make_recipes_page() == RECIPES.read_text(encoding="utf-8"), "Run python tools/make_settings_docs.py."
    for name in tool.recipe_names():
        assert len(tool.describe_recipe(name)) > 20
        assert f"[`{name}`]" in RECIPES.read_text(encoding="utf-8")


def test_the_configuration_of_the_environment_is_up_to_date():
    assert tool.ENVIRONMENT == ENVIRONMENT
    text = ENVIRONMENT.read_text(encoding="utf-8")
    assert text.count("<!-- settings:") == text.count("<!-- end of settings -->") == len(tool.BLOCK.findall(text)) == 1
    assert tool.make_environment_page(text) == text, "Run python tools/make_settings_docs.py."


def check_keys(text: str, settings: object, table: str = "") -> None:
    """Every table of a run's configuration, also one inside another, has its keys on the page."""
    title, names = f"`[{table}]`" if table else "Top-level keys", vars(settings)
    assert keys_in(text, title) == [name for name, value in names.items() if not is_dataclass(value)]
    for name, value in names.items():
        if is_dataclass(value):
            check_keys(text, value, f"{table}.{name}".lstrip("."))


def test_every_key_of_a_run_is_on_the_page():
    check_keys(RECIPES.read_text(encoding="utf-8"), RunConfig())


def test_every_key_of_the_environment_is_on_its_page_as_files_spell_it():
    text, defaults = ENVIRONMENT.read_text(encoding="utf-8"), as_plain(RacerSettings(), camel_case)
    for part, values in defaults.items():
        assert keys_in(text, f"`{part}`") == list(values)


def test_a_row_has_key_default_range_unit_and_meaning():
    text = ENVIRONMENT.read_text(encoding="utf-8")
    assert "| `penaltyMinSpeed` | `0.0` | number from 0 to 100 m/s | A slower car pays neither" in text
    assert '| `start` | `"line"` | `"line"`, `"random"` | ' in text
    assert "| `max_ticks` | `3000` | whole number from 1 to 2147483647 ticks | " in RECIPES.read_text(encoding="utf-8")


def test_a_setting_without_a_meaning_is_refused():
    pit = dataclasses.make_dataclass("Pit", [("speed_mps", float, setting(20.0, ""))])
    with pytest.raises(ValueError, match="speed_mps has no meaning"):
        tool.describe_table(pit, snake_case)

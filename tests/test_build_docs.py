"""The documentation site: it is built without a warning, its links lead somewhere, and its reference is complete."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import docs_reference
from cli.conftest import hotlap
from docs_links import broken_links, foreign_sources
from docs_notebooks import notebook_page
from hotlap.cli.main import app

__all__ = ["hotlap"]

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_the_site_is_built_without_a_warning_or_a_broken_link(tmp_path):
    if any(find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")):
        pytest.skip("Sphinx is not installed: make docs")
    command = [sys.executable, str(ROOT / "tools" / "build_docs.py"), str(tmp_path / "html")]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert (tmp_path / "html" / "demo" / "index.html").is_file()
    assert "hotlap.RacerEnv" in (tmp_path / "html" / "docs" / "reference" / "python.html").read_text("utf-8")
    assert "record_laps" in (tmp_path / "html" / "docs" / "notebooks" / "first_lap.html").read_text("utf-8")
    assert "hotlap sweep status" in (tmp_path / "html" / "docs" / "reference" / "commands.html").read_text("utf-8")


def test_a_notebook_becomes_a_page_without_the_cell_that_installs():
    page = notebook_page(ROOT / "docs" / "notebooks" / "first_lap.ipynb")
    assert page.startswith("# Your first lap\n")
    assert "{download}`first_lap.ipynb <first_lap.ipynb>`" in page
    assert '```python\nTRACK = "track-01"\n' in page
    assert "## Drive\n" in page
    assert "pip" not in page


def test_links_to_nowhere_and_files_of_other_hosts_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.html").write_text("<h1 id='here'>x</h1><script src='https://cdn.example/x.js'></script>")
    (tmp_path / "index.html").write_text(
        "<a href='sub/other.html#here'></a><a href='sub/other.html#there'></a><a href='#top'></a><img src='none.png'>"
        "<a href='https://example.com'></a><a href='mailto:a@b'></a>"
    )
    assert broken_links(tmp_path) == [
        "index.html: sub/other.html#there leads nowhere",
        "index.html: #top leads nowhere",
        "index.html: none.png leads nowhere",
    ]
    assert list(foreign_sources(tmp_path)) == ["sub/other.html: loads https://cdn.example/x.js from another host"]


def test_the_reference_has_every_module_and_public_name():
    assert "| `hotlap.sim.tyres` |" in docs_reference.modules_page()
    names = docs_reference.python_page()
    assert ".. autoclass:: hotlap.RacerEnv\n   :members:" in names
    assert ".. autofunction:: hotlap.parallel_env" in names


def test_the_reference_finds_every_command_in_the_help(hotlap):
    text = hotlap("--help").out
    assert docs_reference.subcommands(text) == list(app.built.commands)
    assert docs_reference.subcommands(hotlap("tracks", "--help").out) == list(app.built.commands["tracks"].commands)
    assert docs_reference.subcommands(hotlap("drive", "--help").out) == []

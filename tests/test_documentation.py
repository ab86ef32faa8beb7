"""The commands and Python examples of the documentation run, and its tables match the code."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import forked_python
import hotlap
from hotlap.cli.main import app
from hotlap.config import as_plain, camel_case
from hotlap.drivers.casual import CasualHabits
from hotlap.envs.settings import RacerSettings
from hotlap.runs.recipe import resolve_config

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# The changelog is left out: it names pages as they were called then.
PAGES = sorted({*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("experiments/*.md")} - {ROOT / "CHANGELOG.md"})
RECORDS = [page for page in PAGES if page.parent.name == "experiments" and page.name != "README.md"]
# Commands of the README that take more than seconds or do not end.
LONG = ("train", "resume", "bridge", "play", "sweep", "bench")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(path: Path, *programs: str) -> list[str]:
    """The command lines in the code blocks of a page, without prompt and comment."""
    lines = "\n".join(blocks(path, r"[a-z]*")).splitlines()
    found = [line.removeprefix("$ ").partition("  #")[0].partition(" # ")[0].strip() for line in lines]
    return [line for line in found if line.startswith(tuple(program + " " for program in programs))]


def shown_output(path: Path, command: str) -> str:
    """What the page shows below a command, up to the next one; nothing for most commands."""
    found = "\n".join(blocks(path, "console")).partition(f"$ {command}\n")[2]
    return re.match(r"(?:[^$\n].*\n)*", found)[0]


def run(command: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    start = forked_python.run if command[0] == sys.executable else subprocess.run
    answer = start(command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=55)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer


def short_commands(*pages: Path) -> list[tuple[Path, str]]:
    """The commands of pages that take seconds, drive what ships and end, each with its page."""
    found = [(page, command) for page in pages for command in commands(page, "hotlap")]
    return [(page, command) for page, command in found if command.split()[1] not in LONG and "ppo_" not in command]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("page", "command"), short_commands(ROOT / "README.md", DOCS / "tutorial.md"))
def test_the_short_commands_of_readme_and_tutorial_run(tmp_path, page, command):
    arguments = shlex.split(command)[1:]
    answer = run([sys.executable, "-m", "hotlap", *arguments], tmp_path)
    if shown := shown_output(page, command):
        assert answer.stdout == shown


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_every_command_of_the_pages_has_the_options_that_it_names(page):
    for command in commands(page, "hotlap"):
        words = shlex.split(re.split(r" [|&>] ?", command)[0])[1:]
        if any(word in ("…", "VERB") for word in words):
            continue
        # Built anew: a command without its parent would keep a help option without -h.
        program, name = typer.main.get_command(app), "hotlap"
        while words and words[0] in getattr(program, "commands", {}):
            program, name = program.commands[words[0]], words.pop(0)
        with contextlib.suppress(typer.Exit):  # --version
            program.make_context(name, words)


def test_every_page_is_in_the_menu_of_the_site():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    menu = set(
        re.findall(r"^(?:.*<)?([\w./-]+)>?$", "\n".join(blocks(DOCS / "index.md", r"\{toctree\}")), re.MULTILINE)
    )
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= menu
    assert text.count("```{toctree}") > 3


def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [hotlap.__version__]


def test_the_readme_activates_the_environment_before_its_commands():
    """`make` installs into .venv, so that `hotlap` and `tensorboard` are not found without it."""
    lines = "\n".join(blocks(ROOT / "README.md", "(?:sh|console)")).splitlines()
    activation = lines.index("source .venv/bin/activate")
    programs = [line.removeprefix("$ ").partition(" ")[0] for line in lines]
    assert min(programs.index("tensorboard"), programs.index("hotlap")) > activation


def test_the_documented_extension_of_a_run_is_longer_than_the_recipe():
    [steps] = re.findall(r"^hotlap resume \S+ --steps (\d+)", (DOCS / "training.md").read_text("utf-8"), re.MULTILINE)
    assert int(steps) > resolve_config(None, {}).steps


@pytest.fixture
def bootstrap():
    """The module `tools/bootstrap.py`, if this is its environment and nothing would be installed."""
    import bootstrap as module

    if Path(sys.prefix) != module.venv.VENV or not module.is_current(module.read_stamp()):
        pytest.skip("the verbs would install packages first: run `make setup`, then the tests by `make test`")
    return module


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("command", commands(ROOT / "CONTRIBUTING.md", "make", "python"))
def test_the_commands_of_the_contributing_page_run(bootstrap, command):
    """Cheap commands run as printed, test verbs only collect one folder, and make only prints the other recipes."""
    program, *arguments = shlex.split(command)
    if program == "python":
        assert run([sys.executable, *arguments], ROOT).stdout
        return
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    verb = arguments[0]
    assert verb in bootstrap.VERBS
    is_cheap = any(argument.startswith("ARGS=") for argument in arguments)
    if verb not in ("test", "slow"):
        arguments += ["--dry-run"]
    elif not is_cheap:
        arguments += ["ARGS=tests/sim --collect-only -q"]
    answer = run(["make", *arguments, f"PYTHON={sys.executable}"], ROOT, MAKEFLAGS="")
    expected = f"tools/bootstrap.py {verb}" if "--dry-run" in arguments else r"passed" if is_cheap else r"collected"
    assert re.search(expected, answer.stdout)


def test_the_packages_and_files_of_the_contributing_page_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "hotlap"
    packages = {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    assert set(re.findall(r"^  (\w+)/ ", text, re.MULTILINE)) == packages
    named = set(re.findall(r"`([\w/]+/[\w.]*)`", text)) - {"sim/test_tyres.py"}
    assert [name for name in sorted(named) if not ((package / name).exists() or (ROOT / name).exists())] == []


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken_links(page: Path) -> list[str]:
    """The links of a page to files or headings of the project that do not exist."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    assert broken_links(page) == []


def test_a_link_to_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title, here\n[a](#a-title-here) [b](#title) [c](page.md) [d](other.md) [e](https://there)\n")
    assert broken_links(page) == ["#title", "other.md"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_its_date_command_and_data_and_is_in_the_index(record):
    text = record.read_text(encoding="utf-8")
    date = re.match(r"(\d{4}-\d{2}-\d{2})-[a-z0-9-]+$", record.stem)[1]
    assert text.splitlines()[2].startswith(f"A record of {date}, not edited later.")
    assert re.search(r"^- Command: .+\n- Data: .+", text, re.MULTILINE)
    assert f"| [{record.stem}]({record.name}) |" in (record.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_reference_pages_have_no_dates_and_no_history(page):
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text(encoding="utf-8"))  # without the targets of links
    text = re.sub(r"^```.*?^```|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\b20\d\d-\d\d-\d\d\b|\bformer(?:ly)?\b|\bused to be\b|\bno longer\b", text) == []


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ["casual-driver.md", "environment.md", "tutorial.md"])
def test_the_python_examples_run_from_top_to_bottom_and_raise_the_errors_shown(name, capsys):
    examples = blocks(DOCS / name, "python")
    assert examples
    names: dict[str, object] = {}
    for number, example in enumerate(examples, start=1):
        exec(compile(example, f"{name}, example {number}", "exec"), names)
    if shown := re.findall(r"print\(error\)  # (.*)", "\n".join(examples)):
        assert capsys.readouterr().out.splitlines() == shown
    assert bool(shown) == (name == "environment.md")


def test_the_documented_configuration_is_the_default():
    [text] = blocks(DOCS / "environment.md", "json")
    assert json.loads(text) == as_plain(RacerSettings(), camel_case)


def test_the_documented_habits_are_the_casual_drivers():
    habits = CasualHabits()
    documented = {}
    text = (DOCS / "casual-driver.md").read_text(encoding="utf-8")
    for names, values in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([\d., ]+) \|", text, re.MULTILINE):
        numbers = [float(value) for value in values.split(",")]
        documented.update(zip(re.findall(r"`(\w+)`", names), numbers, strict=True))
    assert documented == {field.name: getattr(habits, field.name) for field in fields(habits)}

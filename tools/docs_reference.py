"""Writes the reference pages of the documentation site: commands from `--help`, names and modules from docstrings."""

import ast
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import hotlap
from hotlap.cli.main import app

PACKAGE = Path(hotlap.__file__).parent
# Further names that programs may import, beside those of the package itself.
NAMES = (
    "hotlap.training.callbacks.RacerMetricsCallback",
    "hotlap.training.checkpoint.CheckpointManager",
    "hotlap.training.checkpoint.CheckpointConfig",
    "hotlap.training.metrics_collector.MetricsCollector",
    "hotlap.training.metrics_collector.TrainingMetrics",
    "hotlap.training.results.ExperimentResults",
    "hotlap.bridge.benchmark.run_benchmark",
    "hotlap.evaluation.evaluate.evaluate",
    "hotlap.runs.find_driver.find_driver",
)


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    return {"commands": commands_page(), "python": python_page(), "modules": modules_page()}


def command_lines(group: Any = None, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command that does something, e.g. `("tracks", "list")`."""
    group = app.built if group is None else group
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found.append((*words, name))
        if getattr(command, "commands", None):
            found += command_lines(command, (*words, name))
    return found


def help_text(words: tuple[str, ...]) -> str:
    """What `hotlap WORDS --help` prints, as plain text."""
    environ = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": ""}
    answer = CliRunner().invoke(app, [*words, "--help"], env=environ, prog_name="hotlap")
    if answer.exit_code != 0:
        raise RuntimeError(f"hotlap {' '.join(words)} --help failed: {answer.output}")
    return "\n".join(line.rstrip() for line in answer.output.strip("\n").splitlines())


def commands_page() -> str:
    """Every command with its help."""
    parts = ["# Commands\n", "What `--help` prints. Bad input gives a one-line error and exit code 2.\n"]
    for words in [(), *command_lines()]:
        level = "##" if len(words) < 2 else "###"
        parts.append(f"{level} {' '.join(('hotlap', *words))}\n\n```text\n{help_text(words)}\n```\n")
    return "\n".join(parts)


def python_page() -> str:
    """The public names, documented by their docstrings."""
    own = [f"hotlap.{name}" for name in hotlap.__all__ if not name.startswith("__") and name.upper() != name]
    first = "`import hotlap` registers the environments with Gymnasium; the names below load on first use.\n"
    parts = ["# Python\n", first]
    for name in [*own, *NAMES]:
        kind = "autofunction" if name.rpartition(".")[2][0].islower() else "autoclass"
        options = "" if kind == "autofunction" else ":members:\n"
        parts.append(f"## {name.rpartition('.')[2]}\n\n```{{eval-rst}}\n.. {kind}:: {name}\n{indented(options)}\n```\n")
    parts.append("## Errors\n\n```{eval-rst}\n.. automodule:: hotlap.errors\n   :members:\n```\n")
    return "\n".join(parts)


def indented(text: str) -> str:
    """The lines of a directive's options."""
    return "".join(f"   {line}\n" for line in text.splitlines())


def modules_page() -> str:
    """Every module with the first line of its docstring."""
    lines = ["# Modules\n", "| module | contains |\n| --- | --- |"]
    for path in sorted(PACKAGE.rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        lines.append(f"| `{name}` | {text.splitlines()[0].replace('|', chr(92) + '|') if text else ''} |")
    return lines[0] + "\n" + "\n".join(lines[1:]) + "\n"

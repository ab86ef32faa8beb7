"""Writes the reference pages of the documentation site: commands from `--help`, names and modules from docstrings."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import hotlap

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


def subcommands(help_text: str) -> list[str]:
    """The commands that a help lists."""
    return re.findall(r"^│ ([a-z]\S*) ", help_text.partition("─ Commands ─")[2], re.MULTILINE)


def help_texts(words: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """What `hotlap WORDS --help` prints, and that of every command below, by their words."""
    environ = {**os.environ, "COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "hotlap", *words, "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, env=environ)
    text = "\n".join(line.rstrip() for line in answer.stdout.strip("\n").splitlines())
    found = {words: text}
    for name in subcommands(text):
        found |= help_texts((*words, name))
    return found


def commands_page() -> str:
    """Every command with its help."""
    parts = ["# Commands\n", "What `--help` prints. Bad input gives a one-line error and exit code 2.\n"]
    for words, text in help_texts().items():
        level = "##" if len(words) < 2 else "###"
        parts.append(f"{level} {' '.join(('hotlap', *words))}\n\n```text\n{text}\n```\n")
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

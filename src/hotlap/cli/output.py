"""Output of the commands: JSON on the last line of stdout, progress on stderr, and the options for both."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer

from hotlap.reports.formatting import counted, percent, seconds

__all__ = ["Json", "Quiet", "counted", "discard", "percent", "print_json", "progress_bar", "seconds"]

# Options of several commands.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors and the output of --json.")]


def discard(stream: TextIO) -> None:
    """Write nothing more to a stream that takes no more; Python would fail on it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(figures: Mapping[str, Any]) -> None:
    """Print one JSON object on one line; NaN and infinity become null."""
    print(json.dumps(_plain(figures), allow_nan=False), flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr for a fraction from 0 to 1; nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda fraction: progress.update(task, completed=fraction)

"""How commands talk: figures as JSON on the last line of stdout, progress and pictures' places on stderr."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotlap.errors import OutputFileError


def print_json(figures: Mapping[str, Any]) -> None:
    """One JSON object on one line; a figure that is not a number is null."""
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
    """A bar on stderr for a share from 0 to 1; silent where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def seconds(value: float | None) -> str:
    """A time for people: 31.42 s, or a dash."""
    return "-" if value is None else f"{value:.2f} s"


def percent(value: float | None) -> str:
    """A share for people: 97 %, or a dash."""
    return "-" if value is None else f"{100.0 * value:.0f} %"


def writable(path: Path) -> Path:
    """`path`, its folder made, or a clear refusal."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFileError(f"{path.parent}: cannot be made ({error.strerror}). Choose another place.") from None
    if path.is_dir():
        raise OutputFileError(f"{path}: is a folder. Name a file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputFileError(f"{path}: may not be written. Choose another place.")
    return path

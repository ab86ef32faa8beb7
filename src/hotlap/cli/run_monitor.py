"""How a command follows a run: its progress, what it and its libraries have to say, and the signals that stop it."""

import contextlib
import logging
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from hotlap.cli.output import percent, seconds

if TYPE_CHECKING:
    from hotlap.training.callbacks.progress import OnProgress, TrainingProgress
    from hotlap.training.trainer import Trainer

STDERR = 2  # its descriptor
# Where there is no terminal to draw a bar on, a line now and then.
LINE_INTERVAL_S = 10.0
# What libraries put into their warnings to colour them.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_log = logging.getLogger(__name__)


def say(text: str, quiet: bool) -> None:
    """A line on stderr, unless nothing but errors is wanted."""
    if not quiet:
        typer.echo(text, err=True)


class _Lines(logging.Handler):
    """What is logged goes to stderr, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        typer.echo("hotlap: " + " ".join(record.getMessage().split()), err=True)


@contextlib.contextmanager
def telling(verbose: bool, quiet: bool) -> Iterator[None]:
    """Pass on what the run, and the libraries under it, have to say."""
    logger, handler = logging.getLogger("hotlap"), _Lines()
    before = logger.level
    logger.setLevel(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING)
    logger.addHandler(handler)

    def log_warning(message: Warning | str, *about: Any, **more: Any) -> None:
        _log.warning("%s", _COLOURS.sub("", str(message)))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = log_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextlib.contextmanager
def stop_signals(trainer: "Trainer", quiet: bool) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) saves and stops, the second stops at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def give_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, frame: Any) -> None:
        give_back()
        trainer.stop()
        if not quiet:
            # Not through Python's streams: the signal may have come in the middle of a write to them.
            os.write(STDERR, b"\nstopping: saving first. Once more stops at once.\n")

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        give_back()


@contextlib.contextmanager
def show_progress(quiet: bool) -> Iterator["OnProgress | None"]:
    """A bar on a terminal, lines elsewhere."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _progress_lines()


def _progress_lines() -> "OnProgress":
    """A line on stderr now and then, and one at the end."""
    said_s, said_step = -LINE_INTERVAL_S, -1

    def show(progress: "TrainingProgress") -> None:
        nonlocal said_s, said_step
        now_s = time.monotonic()
        is_end = progress.step >= progress.total and progress.step != said_step
        if is_end or now_s - said_s >= LINE_INTERVAL_S:
            said_s, said_step = now_s, progress.step
            typer.echo(f"{progress.step}/{progress.total} steps  {_figures(progress)}", err=True)

    return show


@contextlib.contextmanager
def _bar() -> Iterator["OnProgress"]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)

        def show(progress: "TrainingProgress") -> None:
            bar.update(task, total=progress.total, completed=progress.step, description=_figures(progress))

        yield show


def _figures(progress: "TrainingProgress") -> str:
    parts = [f"{progress.steps_per_s:,.0f} steps/s"]
    if progress.mean_return is not None:
        parts.append(f"return {progress.mean_return:.2f}")
    if progress.best_lap_s is not None:
        parts.append(f"best lap {seconds(progress.best_lap_s)}")
    if progress.gap is not None:
        parts.append(f"gap {percent(progress.gap)}")
    return "  ".join(parts)

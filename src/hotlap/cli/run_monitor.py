"""What the commands share while training: status lines, log messages, progress and stop signals."""

import contextlib
import logging
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from hotlap.cli.output import discard, percent, seconds
from hotlap.reports.formatting import clock, gap_percent

if TYPE_CHECKING:
    from hotlap.training.progress import OnProgress, TrainingProgress

STDERR = 2  # file descriptor
BAR_WIDTH = 16  # characters; the figures need the rest of a line
LINE_INTERVAL_S = 10.0  # between progress lines, where stderr is not a terminal
# Terminal colours in the warnings of libraries.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_log = logging.getLogger(__name__)


def print_status(text: str, quiet: bool) -> None:
    """Print a line on stderr, unless only errors are wanted."""
    if not quiet:
        _print_line(text)


def _print_line(text: str) -> None:
    """Print a line on stderr; if its reader is gone (`2>&1 | head`) print no more, since training must go on."""
    try:
        typer.echo(text, err=True)
    except OSError:
        discard(sys.stderr)


class _LineHandler(logging.Handler):
    """Prints each log record as one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        _print_line("hotlap: " + " ".join(record.getMessage().split()))


@contextlib.contextmanager
def log_to_stderr(verbose: bool, quiet: bool) -> Iterator[None]:
    """Print log messages, and the warnings of libraries, on stderr."""
    logger, handler = logging.getLogger("hotlap"), _LineHandler()
    before = logger.level
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING)
    logger.addHandler(handler)

    def log_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        _log.warning("%s", _COLOURS.sub("", str(message)))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = log_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextlib.contextmanager
def stop_signals(stop: Callable[[], None], saves: str, quiet: bool) -> Iterator[None]:
    """Call `stop`, which saves, at the first Ctrl-C (or SIGTERM); stop immediately at the second.

    `saves` tells the user what is saved.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore_handlers() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def begin_to_stop(number: int, frame: Any) -> None:
        restore_handlers()
        stop()
        if not quiet:
            line = f"\nStopping: {saves}. Press Ctrl-C again to stop immediately.\n"
            # Not through Python's streams: the signal may have interrupted a write to them.
            with contextlib.suppress(OSError):  # nobody reads it
                os.write(STDERR, line.encode("ascii"))

    for number in before:
        signal.signal(number, begin_to_stop)
    try:
        yield
    finally:
        restore_handlers()


@contextlib.contextmanager
def show_progress(quiet: bool) -> Iterator["OnProgress | None"]:
    """Show a bar on a terminal, and lines elsewhere; where progress is logged (-v), log messages at INFO instead."""
    if quiet:
        yield None
    elif _log.isEnabledFor(logging.INFO):
        yield _progress_lines(lambda line: _log.info("%s", line))
    elif sys.stderr.isatty():
        with _progress_bar() as show:
            yield show
    else:
        yield _progress_lines(_print_line)


def _progress_lines(write: Callable[[str], None]) -> "OnProgress":
    """Write a line at intervals, and one at the end."""
    last_s = -LINE_INTERVAL_S

    def show(progress: "TrainingProgress") -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if progress.is_end or (progress.step < progress.total and now_s - last_s >= LINE_INTERVAL_S):
            last_s = now_s
            write(f"{progress.step}/{progress.total} steps  {_figures(progress)}{_time_left(progress)}")

    return show


@contextlib.contextmanager
def _progress_bar() -> Iterator["OnProgress"]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=BAR_WIDTH), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    bar = Bar(*columns, console=Console(stderr=True))
    task = bar.add_task("", total=None)

    def show(progress: "TrainingProgress") -> None:
        # Time left first: a narrow terminal cuts the end off.
        description = f"{_time_left(progress).lstrip()}  {_figures(progress)}".lstrip()
        bar.update(task, total=progress.total, completed=progress.step, description=description)
        bar.start()  # only now: a line printed before would leave an empty bar behind

    try:
        yield show
    finally:
        bar.stop()


def _time_left(progress: "TrainingProgress") -> str:
    if progress.left_s is None or progress.step >= progress.total:
        return ""
    return f"  {clock(progress.left_s)} left"


def _figures(progress: "TrainingProgress") -> str:
    parts = [f"{progress.steps_per_s:,.0f} steps/s"]
    if progress.mean_return is not None:
        parts.append(f"return {round(progress.mean_return, 2) + 0.0:.2f}")
    if progress.completion_rate is not None:
        parts.append(f"completed {percent(progress.completion_rate)}")
    if progress.mean_lap_s is not None:
        parts.append(f"lap {seconds(progress.mean_lap_s)}")
    if progress.best_lap_s is not None:
        parts.append(f"best {seconds(progress.best_lap_s)}")
    if progress.gap is not None:
        parts.append(f"gap {gap_percent(progress.gap)}")
    return "  ".join(parts)

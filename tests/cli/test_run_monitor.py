"""Progress of a training on a terminal and elsewhere: figures, time left, and no empty bars."""

import io
import re
import sys

import pytest

from hotlap.cli import run_monitor
from hotlap.cli.run_monitor import print_status, show_progress
from hotlap.training.progress import TrainingProgress

EARLY = TrainingProgress(40_000, 1_000_000, 10_000.0, -0.001)
LATE = TrainingProgress(400_000, 1_000_000, 10_000.0, 0.5, 0.666, 44.951, 44.2, 0.5876)
END = TrainingProgress(1_000_448, 1_000_000, 9_000.0, 0.5, 1.0, 33.44, 33.35, -0.0001, is_end=True)
COLOURS, CURSOR = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal(io.StringIO):
    """A terminal of 120 columns that keeps what is written to it."""

    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Makes stderr a terminal; to be called within a test, since pytest replaces stderr before it."""

    def make():
        found = Terminal()
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stderr", found)
        return found

    return make


def shown(terminal):
    """What is on the terminal's lines, without colours; a bar that was drawn over is one of them."""
    plain = CURSOR.sub("\n", COLOURS.sub("", terminal.getvalue()))
    return [line.strip() for line in plain.splitlines() if line.strip()]


def test_lines_before_the_first_progress_leave_no_bar_behind(open_terminal):
    terminal = open_terminal()
    hint = f"watch it: tensorboard --logdir {'folder/' * 20}run"  # longer than a line
    with show_progress(False) as on_progress:
        print_status(hint, quiet=False)
        assert terminal.getvalue() == f"{hint}\n"
        on_progress(EARLY)
    assert shown(terminal)[0] == hint
    assert all("%" in line and "steps/s" in line for line in shown(terminal)[1:])


def test_the_bar_shows_the_time_left_with_the_first_rate(open_terminal):
    terminal = open_terminal()
    with show_progress(False) as on_progress:
        on_progress(TrainingProgress(0, 1_000_000, 0.0))
        on_progress(EARLY)
    assert "left" not in shown(terminal)[0]
    assert "4%" in shown(terminal)[-1]
    assert shown(terminal)[-1].endswith("1:36 left  10,000 steps/s  return 0.00")


def test_a_run_that_ends_before_its_first_progress_draws_nothing(open_terminal):
    terminal = open_terminal()
    with show_progress(False):
        pass
    assert shown(terminal) == []


def test_lines_hold_the_laps_and_the_time_left_and_the_end_comes_once(capsys, monkeypatch):
    monkeypatch.setattr(run_monitor, "LINE_INTERVAL_S", 0.0)
    with show_progress(False) as on_progress:
        on_progress(EARLY)
        on_progress(LATE)
        on_progress(TrainingProgress(1_000_448, 1_000_000, 9_000.0))  # the last step, before the evaluation at the end
        on_progress(END)
    assert capsys.readouterr().err.splitlines() == [
        "40000/1000000 steps  10,000 steps/s  return 0.00  1:36 left",
        "400000/1000000 steps  10,000 steps/s  return 0.50  completed 66.6 %  lap 44.95 s  best 44.20 s  gap 58.8 %"
        "  1:00 left",
        "1000448/1000000 steps  9,000 steps/s  return 0.50  completed 100 %  lap 33.44 s  best 33.35 s  gap 0.0 %",
    ]

"""Fixtures that run commands in this process and capture their output and exit code."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hotlap.cli.main import main


@dataclass(frozen=True)
class Answer:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def figures(self) -> Any:
        """The JSON object on the last line."""
        return json.loads(self.out.splitlines()[-1])


Run = Callable[..., Answer]


@pytest.fixture
def hotlap(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `hotlap` with the given arguments."""

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["hotlap", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return Answer(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture
def refused(hotlap: Run) -> Callable[..., str]:
    """Runs `hotlap` with arguments it must refuse: exit code 2, nothing on stdout. Returns the one line on stderr."""

    def run(*arguments: object) -> str:
        answer = hotlap(*arguments)
        assert answer.code == 2, answer
        assert answer.out == ""
        [line] = answer.err.splitlines()
        assert line.startswith("hotlap: ")
        assert "Traceback" not in line
        return line

    return run


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty HOTLAP_HOME."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HOTLAP_HOME", str(folder))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, in which every command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unevaluated(monkeypatch):
    """Skips evaluations and the comparison with the casual driver."""
    from tiny_runs import skip_evaluation  # imports torch, which most commands do without

    skip_evaluation(monkeypatch)
    monkeypatch.setattr("hotlap.cli.run_summary.print_laps", lambda *_: None)


@pytest.fixture
def signalled(monkeypatch):
    """Sends this process signals at a training step; returns the list of what the handler writes."""
    from hotlap.training.checkpointing import Checkpointing

    written = []
    write = os.write

    def recorded(descriptor, text):
        return written.append((descriptor, text)) if descriptor == 2 else write(descriptor, text)

    monkeypatch.setattr("hotlap.cli.run_monitor.os.write", recorded)

    def at(step, *numbers):
        left, on_step = list(numbers), Checkpointing.note_step

        def signalling(self):
            while left and self._step == step:
                signal.raise_signal(left.pop(0))
            return on_step(self)

        monkeypatch.setattr(Checkpointing, "note_step", signalling)
        return written

    return at

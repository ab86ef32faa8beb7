"""Fixtures of the attacks on run folders: an empty folder, commands, and a run that was stopped."""

import shutil
import sys

import pytest

from attacks.run_folders.attacked_runs import RUN, KeptRuns, PoisonEnv, write_recipe
from hotlap.cli.main import main
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.checkpointing import Checkpointing
from tiny_runs import skip_evaluation


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every command runs in an empty folder, with a harmless environment and without evaluations."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PoisonEnv, "poison", None)
    monkeypatch.setattr(PoisonEnv, "steps", 0)
    skip_evaluation(monkeypatch)
    monkeypatch.setattr("hotlap.cli.run_summary.print_laps", lambda *_: None)
    return tmp_path


@pytest.fixture(scope="session")
def kept_runs(tmp_path_factory):
    return KeptRuns(tmp_path_factory.mktemp("kept"))


class Commands:
    """Runs a command in this process; returns its exit code and the lines on stderr."""

    def __init__(self, monkeypatch, capsys, kept_runs):
        self._monkeypatch, self._capsys, self.kept_runs = monkeypatch, capsys, kept_runs

    def __call__(self, *arguments):
        self._monkeypatch.setattr(sys, "argv", ["hotlap", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), self._capsys.readouterr().err.splitlines()


@pytest.fixture
def hotlap(monkeypatch, capsys, kept_runs):
    """The commands, and the runs that tests share."""
    return Commands(monkeypatch, capsys, kept_runs)


@pytest.fixture
def stopped(hotlap):
    """A run stopped at step 60, with checkpoints at 40 and 60."""
    on_step = Checkpointing.note_step

    def stopping(self):
        self.is_stop_requested |= self._step == 60
        return on_step(self)

    def train():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpointing, "note_step", stopping)
            code, _ = hotlap("train", "--recipe", write_recipe())
        assert (code, CheckpointManager(RUN).steps()) == (130, [40, 60])

    kept = hotlap.kept_runs.get("stopped", RUN, train)
    shutil.copytree(kept, RUN, dirs_exist_ok=True)
    return RUN

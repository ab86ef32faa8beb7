"""Several processes of one command: who prints, and with which code an error ends."""

import pytest
import typer

from hotlap.cli import exit_codes, process_group
from hotlap.errors import ConfigError, DivergedError
from hotlap.learning.distributed import processes as module


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        ({}, False),
        ({"RANK": "1"}, False),  # not started by torchrun
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0"}, False),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "1"}, True),
    ],
)
def test_only_a_process_beside_the_first_follows(monkeypatch, variables, answer):
    for name in ("TORCHELASTIC_RUN_ID", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert process_group.is_follower() is answer


def test_torch_is_silenced_only_among_other_processes(monkeypatch):
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "")  # so that it is removed at the end, whoever sets it
    monkeypatch.delenv("TORCH_CPP_LOG_LEVEL")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    process_group.silence_torch()
    assert "TORCH_CPP_LOG_LEVEL" not in process_group.os.environ
    monkeypatch.setenv("WORLD_SIZE", "2")
    process_group.silence_torch()
    assert process_group.os.environ["TORCH_CPP_LOG_LEVEL"] == "ERROR"


class Pair:
    """Stands for this process and another one."""

    is_alone, uses_gpu = False, False

    def __init__(self, may_report):
        self._may_report, self.ends = may_report, []

    def may_report(self, error):
        return self._may_report

    def leave(self, *, in_order):
        self.ends.append(in_order)


@pytest.mark.parametrize("may_report", [True, False])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("steps:\n  too few"), exit_codes.COULD_NOT_RUN),
        (DivergedError("the loss is nan"), exit_codes.BELOW_ASKED),
    ],
)
def test_an_error_is_one_line_of_the_process_that_reports(monkeypatch, capsys, error, code, may_report):
    pair = Pair(may_report)
    monkeypatch.setattr(module, "join_processes", lambda: pair)
    with pytest.raises(typer.Exit) as end, process_group.joined_processes():
        raise error
    assert end.value.exit_code == code
    line = "hotlap: " + " ".join(str(error).split()) + "\n"
    assert capsys.readouterr().err == (line if may_report else "")
    assert pair.ends == [False]


def test_who_leaves_after_the_end_or_a_common_stop_leaves_in_order(monkeypatch):
    pair = Pair(True)
    monkeypatch.setattr(module, "join_processes", lambda: pair)
    with process_group.joined_processes() as found:
        assert found is pair
    with pytest.raises(typer.Exit), process_group.joined_processes():
        raise typer.Exit(130)
    assert pair.ends == [True, True]

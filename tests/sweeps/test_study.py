"""The journal: what it holds, who may write it, and damaged ones."""

import json

import pytest

from hotlap.errors import ModelError, OutputFileError
from hotlap.sweeps.run_messages import RunReport
from hotlap.sweeps.status import read_status
from hotlap.sweeps.study import SweepStudy
from sweeps.tiny_sweeps import make_sweep, run_all

EPOCHS = "ppo.n_epochs"


def by_epochs(task):
    return RunReport("finished", (float(task.config["ppo"]["n_epochs"]),))


def test_optuna_reads_the_journal_as_its_own(tmp_path):
    optuna = pytest.importorskip("optuna")
    _, folder, _ = run_all(tmp_path, by_epochs, space={EPOCHS: {"choices": [1, 5, 3]}})
    backend = optuna.storages.journal.JournalFileBackend(str(folder.journal))
    study = optuna.load_study(study_name=None, storage=optuna.storages.JournalStorage(backend))
    assert study.best_trial.number == 1
    assert study.best_params == {EPOCHS: 5}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3


def test_a_reader_changes_nothing_and_needs_no_journal(tmp_path):
    sweep, folder, _ = run_all(tmp_path, by_epochs)
    before = folder.journal.read_bytes()
    folder.journal.write_bytes(before + b'{"op_code": 4, "wor')  # the sweep is writing
    assert read_status(folder).is_finished
    assert folder.journal.read_bytes() == before + b'{"op_code": 4, "wor'
    folder.journal.unlink()
    assert SweepStudy(folder.journal, "tiny", sweep, is_writer=False).trials == []
    assert not folder.journal.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [lines[0], b"\x00" * 40 + b"\n", *lines[1:]],
        lambda lines: [b'{"op_code": 99}\n', *lines],
        lambda lines: [*lines[:1], lines[1].replace(b"ppo.learning_rate", b"ppo.other"), *lines[2:]],
        lambda lines: [b"[]\n", *lines],
    ],
)
def test_a_damaged_journal_is_one_line(tmp_path, damage):
    sweep, folder, _ = run_all(tmp_path, by_epochs)
    lines = folder.journal.read_bytes().splitlines(keepends=True)
    folder.journal.write_bytes(b"".join(damage(lines)))
    for is_writer in (False, True):
        with pytest.raises(ModelError, match="not a readable journal of this sweep") as refusal:
            SweepStudy(folder.journal, "tiny", sweep, is_writer=is_writer)
        assert "\n" not in str(refusal.value)


def test_a_link_instead_of_a_journal_is_refused(tmp_path):
    sweep, folder = make_sweep(tmp_path)
    (tmp_path / "precious").write_text("not a journal")
    folder.journal.symlink_to(tmp_path / "precious")
    with pytest.raises(OutputFileError, match="a link"):
        SweepStudy(folder.journal, "tiny", sweep, is_writer=True)
    assert (tmp_path / "precious").read_text() == "not a journal"


def test_the_journal_is_json_lines(tmp_path):
    _, folder, _ = run_all(tmp_path, by_epochs)
    assert all(isinstance(json.loads(line), dict) for line in folder.journal.read_text().splitlines())


def test_the_setting_that_matters_is_the_important_one(tmp_path):
    space = {EPOCHS: {"low": 1, "high": 20}, "ppo.gamma": {"low": 0.9, "high": 0.99}}
    study = run_all(tmp_path, by_epochs, sampler="random", trials=40, seeds=[1], space=space)[2]
    found = study.importances()
    assert found[EPOCHS] > 0.8
    assert sum(found.values()) == pytest.approx(1.0)

"""Signals that stop `hotlap train`, and `hotlap resume`: what is saved, continued, extended and refused."""

import signal
from pathlib import Path
from unittest.mock import Mock

import pytest

from cli.trained_runs import DEFAULT, everything_under, recipe, total_steps
from hotlap.errors import OutputFileError
from hotlap.models.model_file import read_model
from hotlap.runs.run_config import load_config
from hotlap.training import trainer as trainer_module
from hotlap.training.checkpoint import CheckpointManager
from tiny_runs import assert_same_run, tiny_config

pytestmark = pytest.mark.usefixtures("here")


# --- signals ---


def current_handlers():
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_saves_and_prints_how_to_resume(hotlap, unevaluated, signalled, number):
    handlers = current_handlers()
    written = signalled(50, number)
    answer = hotlap("train", "--recipe", recipe())
    assert (answer.code, answer.out) == (130, "")
    assert written == [(2, b"\nStopping: saving first. Press Ctrl-C again to stop immediately.\n")]
    assert answer.err.splitlines()[-1] == f"stopped and saved at step 50. Continue with: hotlap resume {DEFAULT}"
    assert CheckpointManager(DEFAULT).steps() == [40, 50]
    assert current_handlers() == handlers
    hotlap("train", "--recipe", recipe(), "--run-name", "whole")
    answer = hotlap("resume", "ppo_seed42")
    assert f"{DEFAULT}: resuming from step 32." in answer.err
    assert_same_run(DEFAULT, DEFAULT.parent / "whole", tiny_config())


def test_the_second_signal_stops_immediately(hotlap, unevaluated, signalled):
    signalled(50, signal.SIGINT, signal.SIGINT)
    answer = hotlap("train", "--recipe", recipe())
    assert (answer.code, answer.out) == (130, "")
    assert "Traceback" not in answer.err
    assert CheckpointManager(DEFAULT).steps() == [40]
    assert hotlap("resume", "ppo_seed42").code == 0


def test_after_the_first_signal_the_default_handlers_are_back(hotlap, unevaluated, signalled, monkeypatch):
    before, seen = current_handlers(), []
    monkeypatch.setattr(trainer_module.Trainer, "stop", lambda self: seen.append(current_handlers()))
    signalled(50, signal.SIGTERM)
    hotlap("train", "--recipe", recipe())
    assert seen == [before]


def test_a_quiet_run_stopped_at_its_first_step_prints_nothing_and_can_be_resumed(hotlap, unevaluated, signalled):
    written = signalled(1, signal.SIGINT)
    answer = hotlap("train", "--recipe", recipe(), "-q")
    assert (answer.code, answer.out, answer.err, written) == (130, "", "", [])
    assert hotlap("resume", DEFAULT).code == 0


def test_a_stop_that_could_not_be_saved_is_an_error(hotlap, unevaluated, signalled, monkeypatch):
    monkeypatch.setattr(CheckpointManager, "save", Mock(side_effect=OutputFileError("No space left on device.")))
    signalled(50, signal.SIGINT)
    answer = hotlap("train", "--recipe", recipe())
    assert answer.code == 2
    assert "stopped at step 50, but could not be saved" in answer.err.splitlines()[-1]


# --- resume ---


def test_resuming_a_finished_run_prints_that_and_changes_nothing(hotlap, unevaluated):
    hotlap("train", "--recipe", recipe())
    before = everything_under(DEFAULT)
    for more in ([], ["--steps", 100], ["--steps", 50]):
        answer = hotlap("resume", DEFAULT, *more)
        assert (answer.code, answer.out) == (0, "")
        assert f"{DEFAULT}: is finished (100 steps)" in answer.err
    assert total_steps(hotlap("resume", DEFAULT, "--json").figures) == 100
    assert everything_under(DEFAULT) == before


def test_a_finished_run_can_be_extended_and_stopped_but_not_shortened(hotlap, refused, unevaluated, signalled):
    hotlap("train", "--recipe", recipe(steps=60))
    signalled(70, signal.SIGINT)
    assert hotlap("resume", "ppo_seed42", "--steps", 100).code == 130
    assert "--steps 50: the run is already at step 64" in refused("resume", DEFAULT, "--steps", 50)
    assert load_config(DEFAULT / "config.toml").steps == 100
    answer = hotlap("resume", "ppo_seed42", "--json")
    assert (answer.code, total_steps(answer.figures)) == (0, 100)
    hotlap("train", "--recipe", recipe(), "--run-name", "whole")
    assert_same_run(DEFAULT, DEFAULT.parent / "whole", tiny_config())


@pytest.mark.parametrize("name", [DEFAULT / "checkpoint_40.zip", "ppo_seed42/checkpoint_40.zip"])
@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_resumes_from_the_checkpoint_that_is_named(hotlap, unevaluated, signalled, name, is_finished):
    evaluation = {"evaluation": {"interval": 30, "episodes": 1}}
    if not is_finished:
        signalled(90, signal.SIGINT)
    hotlap("train", "--recipe", recipe(**evaluation))
    later = "checkpoint_80.zip" if is_finished else "checkpoint_80.zip, checkpoint_90.zip"
    answer = hotlap("resume", name)
    assert answer.code == 0
    assert f"{DEFAULT}: resuming from step 32." in answer.err
    assert f"dropped what came after it: points, events, {later}." in answer.err
    hotlap("train", "--recipe", recipe(**evaluation), "--run-name", "whole")
    assert_same_run(DEFAULT, DEFAULT.parent / "whole", tiny_config(**evaluation))
    assert CheckpointManager(DEFAULT).steps() == [40, 80]


def test_a_best_model_from_after_the_named_checkpoint_is_dropped_and_selected_anew(hotlap, unevaluated):
    hotlap("train", "--recipe", recipe(evaluation={"interval": 30, "episodes": 1}))
    best = DEFAULT / "ppo_seed42_best.zip"
    best.write_bytes((DEFAULT / "ppo_seed42_model.zip").read_bytes())
    answer = hotlap("resume", DEFAULT / "checkpoint_40.zip", "--steps", 60)
    assert "checkpoint_80.zip, ppo_seed42_best.zip." in answer.err
    assert read_model(best).card.step == 60


def test_a_checkpoint_that_is_missing_damaged_or_without_its_replay_buffer_is_refused(hotlap, refused, unevaluated):
    hotlap("train", "--recipe", recipe("sac", steps=200))
    run = DEFAULT.with_name("sac_seed42")
    (run / "checkpoint_160.zip").write_bytes(b"PK")
    before = everything_under(run)
    assert "no such file" in refused("resume", run / "checkpoint_1.zip")
    assert "damaged or not a zip" in refused("resume", run / "checkpoint_160.zip")
    assert "replay buffer was removed" in refused("resume", run / "checkpoint_40.zip")
    assert "no run there" in refused("resume", "nowhere/checkpoint_1.zip")
    assert everything_under(run) == before


def test_without_a_checkpoint_it_starts_over_and_prints_that(hotlap, unevaluated):
    hotlap("train", "--recipe", recipe(checkpoint={"interval": 0}))
    (DEFAULT / "ppo_seed42_results.json").unlink()
    assert "resuming from the start: there is no intact checkpoint" in hotlap("resume", "ppo_seed42").err
    assert (DEFAULT / "ppo_seed42_results.json").is_file()


def test_a_run_that_cannot_be_resumed_is_unchanged(hotlap, refused, unevaluated):
    hotlap("train", "--recipe", recipe())
    config = DEFAULT / "config.toml"
    config.write_text(config.read_text().replace("n_epochs = 2", "n_epochs = 3"))
    before = everything_under(DEFAULT)
    assert "was written under another configuration" in refused("resume", DEFAULT, "--steps", 150)
    assert everything_under(DEFAULT) == before


def test_a_bad_resume_is_refused_in_one_line(refused):
    for name, text in (("run", tiny_config().to_toml()), ("broken", "algo = ")):
        Path(name).mkdir()
        (Path(name) / "config.toml").write_text(text)
    assert "nothing: no run there (no config.toml)" in refused("resume", "nothing")
    assert "is not a valid name for a run" in refused("resume", "")
    assert "steps must be from 1" in refused("resume", "run", "--steps", 0)
    assert "'--steps'" in refused("resume", "run", "--steps", "x")
    assert "config.toml: not valid TOML" in refused("resume", "broken")
    assert "Missing argument 'RUN|CHECKPOINT'" in refused("resume")

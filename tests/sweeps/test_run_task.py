"""One run of a sweep as any process executes it: to its rung, to its end, and again after a kill."""

import msgspec
import pytest

from hotlap.runs.run_folder import RunFolder
from hotlap.sweeps.run_messages import RunTask
from hotlap.sweeps.run_task import execute
from sweeps.tiny_sweeps import make_sweep


@pytest.fixture
def task(tmp_path):
    sweep, folder = make_sweep(tmp_path, seeds=[1])
    config = sweep.config_of({"ppo.learning_rate": 1e-3}, 1)
    return RunTask(0, 1, str(folder.run_path(0, 1)), config.as_plain(), (("final_reward_mean", "maximize"),), 100)


def test_it_pauses_after_the_first_evaluation_at_its_rung_and_then_goes_on_to_the_end(task, tmp_path):
    paused = execute(task)
    assert (paused.kind, paused.has_rung, paused.step, paused.values) == ("paused", True, 128, ())
    # Killed before the sweep noted it: it is not trained again.
    again = execute(task, lambda _: pytest.fail("it trains"))
    assert msgspec.structs.replace(again, elapsed_s=paused.elapsed_s) == paused
    finished = execute(msgspec.structs.replace(task, rung=None))
    assert (finished.kind, finished.step, len(finished.values)) == ("finished", 256, 1)
    assert RunFolder(tmp_path / task.folder, "ppo_seed1").is_finished
    assert execute(msgspec.structs.replace(task, rung=None)).values == finished.values


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"config": {"algo": "dqn"}}, "algo"),
        ({"allow_import": ("no_such_module",)}, "no_such_module"),
    ],
)
def test_an_error_is_a_report_in_one_line(task, changes, words):
    report = execute(msgspec.structs.replace(task, **changes))
    assert report.kind == "failed"
    assert words in report.error
    assert report.error.isprintable()


def test_a_folder_of_another_trial_is_not_trained_in(task):
    execute(task)
    other = msgspec.structs.replace(task, config={**task.config, "seed": 1, "steps": 512})
    assert "is not this trial's" in execute(other).error

"""The order of runs, halving, retries, and that a sweep cut off anywhere ends like one that never was."""

import math
from typing import Any

import pytest

from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.scheduler import MAX_LOSSES
from hotlap.sweeps.status import read_status
from hotlap.sweeps.sweep_runner import run_sweep
from sweeps.tiny_sweeps import AnsweringPool, make_sweep, open_scheduler, outcome

LEARNING_RATE = "ppo.learning_rate"
WIDE: dict[str, Any] = {
    "sampler": "tpe",
    "trials": 14,
    "space": {
        LEARNING_RATE: {"low": 1e-4, "high": 1e-2, "log": True},
        "ppo.n_epochs": {"low": 1, "high": 8},
        "policy.net_arch": {"choices": [[8], [16, 16]]},
    },
}
HALVING = {"halving": {"first_steps": 64, "factor": 2}}


def quality(task: RunTask) -> float:
    """A smooth function of the settings, best at a learning rate of 1e-3, plus a little for the seed."""
    return (
        -abs(math.log10(task.config["ppo"]["learning_rate"]) + 3.0) - task.config["ppo"]["n_epochs"] + task.seed / 100
    )


def answer(task: RunTask) -> RunReport:
    if task.rung is not None:
        return RunReport("paused", rung_value=quality(task) * task.rung, has_rung=True, step=task.rung)
    return RunReport("finished", (quality(task),))


def run_all(tmp_path, name, num_slots=1, is_lifo=False, **changes):
    sweep, folder = make_sweep(tmp_path, name, **changes)
    scheduler, study = open_scheduler(sweep, folder)
    pool = AnsweringPool(answer, num_slots, is_lifo)
    assert run_sweep(scheduler, pool)
    return sweep, folder, study, pool


def test_every_setting_of_a_grid_runs_with_every_seed_and_counts_as_the_median(tmp_path):
    space = {LEARNING_RATE: {"choices": [1e-4, 1e-3]}, "ppo.n_epochs": {"low": 1, "high": 3}}
    _, _, study, pool = run_all(tmp_path, "grid", space=space, seeds=[1, 2, 30])
    assert [(task.trial, task.seed) for task in pool.started] == [(t, s) for t in range(6) for s in (1, 2, 30)]
    assert [tuple(trial.params.values()) for trial in study.trials] == [
        (rate, epochs) for rate in (1e-4, 1e-3) for epochs in (1, 2, 3)
    ]
    assert study.trials[3].values == pytest.approx((-1 + 0.02,))
    assert {trial.state for trial in study.trials} == {"complete"}


@pytest.mark.parametrize("sampler", ["grid", "random"])
def test_the_order_in_which_runs_end_and_the_number_of_slots_change_nothing(tmp_path, sampler):
    changes = WIDE | HALVING | {"sampler": sampler}
    if sampler == "grid":
        changes["space"] = {LEARNING_RATE: {"choices": [1e-4, 1e-3, 1e-2, 2e-3]}, "ppo.n_epochs": {"low": 1, "high": 3}}
        changes["trials"] = None
    first = run_all(tmp_path, "one", **changes)[2]
    for name, slots, is_lifo in (("two", 2, True), ("five", 5, True), ("many", 40, False)):
        assert outcome(run_all(tmp_path, name, slots, is_lifo, **changes)[2].trials) == outcome(first.trials)
    assert {trial.state for trial in first.trials} == {"complete", "pruned"}


@pytest.mark.parametrize("changes", [WIDE, WIDE | HALVING, WIDE | HALVING | {"sampler": "random"}])
def test_a_sweep_whose_journal_is_cut_off_anywhere_ends_like_one_that_was_not(tmp_path, changes):
    sweep, folder, whole, _ = run_all(tmp_path, "whole", **changes)
    journal = folder.journal.read_bytes()
    lines = journal.splitlines(keepends=True)
    for count in range(0, len(lines), 7):
        part = len(lines[count]) // 2 if count % 2 else 0  # a kill within a line
        folder.journal.write_bytes(b"".join(lines[:count]) + lines[count][:part])
        scheduler, study = open_scheduler(sweep, folder)
        assert run_sweep(scheduler, AnsweringPool(answer))
        assert outcome(study.trials) == outcome(whole.trials), count


def test_tpe_finds_better_settings_than_its_random_start(tmp_path):
    study = run_all(tmp_path, "tpe", **(WIDE | {"trials": 30}))[2]
    values = [trial.values[0] for trial in study.trials]
    assert sum(values[10:]) / 20 > sum(values[:10]) / 10
    assert len({trial.params[LEARNING_RATE] for trial in study.trials}) == 30
    assert {str(trial.params["policy.net_arch"]) for trial in study.trials} == {"[8]", "[16, 16]"}


def test_a_trial_goes_on_where_it_is_among_the_best_of_those_up_to_it(tmp_path):
    # Rungs at 64 and 128 of 256 steps, factor 2. Epochs are the cost: 3, 1, 2, 1, 4.
    space = {"ppo.n_epochs": {"choices": [3, 1, 2, 5, 4]}}
    _, _, study, pool = run_all(tmp_path, "halving", space=space, seeds=[1], **HALVING)
    # 0 is alone at its rung; 1 is the best of two; 2 is second of three (one may pass); 3 and 4 are worse.
    assert [trial.state for trial in study.trials] == ["complete", "complete", "pruned", "pruned", "pruned"]
    assert [(task.trial, task.rung) for task in pool.started] == [
        (0, 64), (0, 128), (0, None), (1, 64), (1, 128), (1, None), (2, 64), (3, 64), (4, 64)
    ]  # fmt: skip


def test_a_trial_waits_at_its_rung_for_the_trials_before_it_and_others_run_meanwhile(tmp_path):
    sweep, folder = make_sweep(tmp_path, space={"ppo.n_epochs": {"choices": [1, 2, 3]}}, seeds=[1], **HALVING)
    scheduler, study = open_scheduler(sweep, folder)
    first, second = scheduler.next_task(), scheduler.next_task()
    scheduler.note(second, answer(second))
    assert study.trials[1].state == "running"
    third = scheduler.next_task()
    assert (third.trial, third.rung) == (2, 64)
    assert scheduler.next_task() is None
    scheduler.note(first, answer(first))
    assert study.trials[1].state == "pruned"
    assert scheduler.next_task().rung == 128


def test_a_run_that_fails_is_tried_again_twice_and_then_its_trial_has_failed(tmp_path):
    def fail_second(task):
        return RunReport("failed", error="no wheels") if task.config["ppo"]["n_epochs"] == 2 else answer(task)

    sweep, folder = make_sweep(tmp_path, space={"ppo.n_epochs": {"choices": [1, 2, 3]}})
    events: list[str] = []
    scheduler, study = open_scheduler(sweep, folder, events)
    pool = AnsweringPool(fail_second)
    assert run_sweep(scheduler, pool)
    assert [trial.state for trial in study.trials] == ["complete", "failed", "complete"]
    assert study.trials[1].reason == "seed 1: no wheels"
    assert len([task for task in pool.started if task.trial == 1 and task.seed == 1]) == 3
    assert any("no wheels" in line and "tried again (2 of 2)" in line for line in events)
    assert read_status(folder).as_dict()["trials"][1]["error"] == "seed 1: no wheels"


def test_a_run_that_fails_once_succeeds(tmp_path):
    seen = set()

    def fail_first_time(task):
        if (task.trial, task.seed) in seen:
            return answer(task)
        seen.add((task.trial, task.seed))
        return RunReport("failed", error="flaky")

    sweep, folder = make_sweep(tmp_path)
    scheduler, study = open_scheduler(sweep, folder)
    assert run_sweep(scheduler, AnsweringPool(fail_first_time, 2))
    assert [trial.state for trial in study.trials] == ["complete"] * 2
    assert study.trials[0].failures == {1: ("flaky",), 2: ("flaky",)}


def test_a_run_that_keeps_killing_its_process_fails_but_progress_forgives(tmp_path):
    sweep, folder = make_sweep(tmp_path, seeds=[1])
    scheduler, study = open_scheduler(sweep, folder)
    task = scheduler.next_task()
    for count in range(MAX_LOSSES + 3):
        if count < 4:  # a new checkpoint each time
            folder.run_path(0, 1).mkdir(parents=True, exist_ok=True)
            (folder.run_path(0, 1) / f"checkpoint_{count + 1}.zip").touch()
        assert study.trials[0].state == "running"
        scheduler.note(task, RunReport("lost", error="its process was killed by signal 9"))
        if count < MAX_LOSSES + 2:
            assert scheduler.next_task().trial == 0
    assert study.trials[0].state == "failed"
    assert "signal 9, 5 times in a row" in study.trials[0].reason


def test_a_missing_figure_counts_as_the_worst(tmp_path):
    def miss_one(task):
        return RunReport("finished", (None,)) if task.config["ppo"]["n_epochs"] == 1 else answer(task)

    sweep, folder = make_sweep(tmp_path, space={"ppo.n_epochs": {"choices": [1, 9]}}, seeds=[1, 2])
    scheduler, study = open_scheduler(sweep, folder)
    assert run_sweep(scheduler, AnsweringPool(miss_one))
    assert study.trials[0].values == (-math.inf,)
    document = read_status(folder).as_dict()
    assert document["trials"][0]["value"] is None
    assert document["best"]["number"] == 1


def test_settings_that_do_not_fit_together_fail_their_trial_only(tmp_path):
    # PPO's n_steps = 1 needs two environments; each end alone is valid beside the other's first value.
    space = {"ppo.n_steps": {"choices": [32, 1]}, "num_envs": {"choices": [2, 1]}}
    sweep, folder = make_sweep(tmp_path, sampler="random", trials=12, space=space, seeds=[1])
    scheduler, study = open_scheduler(sweep, folder)
    assert run_sweep(scheduler, AnsweringPool(answer))
    bad = [trial for trial in study.trials if trial.params == {"ppo.n_steps": 1, "num_envs": 1}]
    assert bad
    assert {trial.state for trial in bad} == {"failed"}
    assert "n_steps times num_envs" in bad[0].reason
    assert {trial.state for trial in study.trials if trial not in bad} == {"complete"}

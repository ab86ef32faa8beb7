"""Records of runs: their figures, and how they are grouped."""

import re
from pathlib import Path

import pytest

from hotlap.errors import ReportError
from hotlap.reports.run_record import EvaluationFigures, RunGroup, group_runs
from reports.written_runs import RACER_CURVES, curve, lander, record


def seeds(groups: list[RunGroup]) -> list[list[int]]:
    return [[run.seed for run in group.runs] for group in groups]


def test_figures_are_those_of_one_evaluation_the_final_or_else_the_last():
    assert record().figures == EvaluationFigures(4000, 1.5, 0.1, 500.0, 1.0, 0.9, 32.0, 0.1)
    running = record(final=None, is_finished=False)
    assert running.figures == EvaluationFigures(4000, 1.6, None, None, 1.0, 0.9, 32.0, 0.13)
    later = {**RACER_CURVES, "eval/mean_reward": curve((2000, 0.9), (4000, 1.6), (4500, 0.1))}
    assert record(final=None, curves=later).figures == EvaluationFigures(4500, 0.1)
    assert record(final=None, curves={}).figures is None
    assert len(record(curves={}).curve("reward/wall")) == 0


def test_solved_at_the_first_evaluation_above_the_threshold():
    assert lander().solved_at == (3000, 300.0)
    assert lander(curves={"eval/mean_reward": curve((1000, 199.9))}).solved_at is None
    assert lander(reward_threshold=None).solved_at is None


def test_runs_that_differ_only_in_their_seed_are_grouped():
    groups = group_runs([record(3), record(1), record(2)])
    assert seeds(groups) == [[1, 2, 3]]
    assert groups[0].label == "PPO"


def test_runs_of_the_same_name_are_named_by_their_paths():
    folders = [Path("a") / "run", Path("b") / "run", Path("c") / "other"]
    runs = [record(seed, name=folder.name, folder=folder) for seed, folder in enumerate(folders)]
    [group] = group_runs(runs)
    assert [run.name for run in group.runs] == [str(folders[0]), str(folders[1]), "other"]


@pytest.mark.parametrize(
    "key", ["steps", "torch_threads", "recording_interval", "checkpoint.interval", "evaluation.episodes"]
)
def test_settings_that_do_not_affect_learning_are_ignored(key):
    other = record(2, settings={"ppo.gamma": 0.99, "seed": 2, key: 7})
    assert seeds(group_runs([record(1), other])) == [[1, 2]]


def test_groups_are_labelled_by_the_settings_that_differ():
    settings = {"ppo.gamma": 0.995, "ppo.n_steps": 64}
    longer = [record(seed, settings=settings, folder=Path(f"longer{seed}")) for seed in (1, 2)]
    groups = group_runs([record(1), *longer, record(2)])
    assert seeds(groups) == [[1, 2], [1, 2]]
    assert [group.label for group in groups] == ["PPO, gamma 0.99, n_steps unset", "PPO, gamma 0.995, n_steps 64"]
    soft = record(2, algorithm="sac", settings={"sac.gamma": 0.9})
    assert [group.label for group in group_runs([record(1), soft])] == ["PPO", "SAC"]
    # Only the first differences are named.
    other = record(2, settings={f"ppo.x{place}": place for place in range(9)})
    assert group_runs([record(1, settings={}), other])[1].label == "PPO, x0 0, x1 1, x2 2, …"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (record(2, environment="CartPole-v1"), "environment is CartPole-v1, but that of {first} is hotlap/Racer-v0"),
        (record(2, track="track-02"), "its track is track-02, but that of {first} is track-01"),
        (record(1), "{first}: the run is given twice"),
        (record(2, folder=Path("runs") / "x" / ".." / "run1"), "the run is given twice"),
    ],
)
def test_runs_that_cannot_be_compared_are_an_error(other, words):
    with pytest.raises(ReportError, match=re.escape(words.format(first=record(1).folder))):
        group_runs([record(1), other])

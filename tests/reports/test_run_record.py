"""Records of runs: their figures, and which of them belong together."""

import re
from pathlib import Path

import pytest

from hotlap.errors import ReportError
from hotlap.reports.run_record import Figures, RunGroup, group_runs
from reports.written_runs import RACER_CURVES, curve, lander, record


def seeds(groups: list[RunGroup]) -> list[list[int]]:
    return [[run.seed for run in group.runs] for group in groups]


def test_a_finished_run_has_its_final_figures():
    assert record().figures == Figures(4000, 1.5, 0.1, 500.0, 1.0, 0.9, 32.0, 0.1)


def test_until_then_the_last_evaluation_counts():
    running = record(final=None, is_finished=False)
    assert running.figures == Figures(4000, 1.6, completion_rate=1.0, clean_lap_rate=0.9, median_lap_s=32.0, gap=0.13)


def test_a_lap_of_an_earlier_evaluation_is_not_the_last_ones():
    curves = {**RACER_CURVES, "eval/mean_reward": curve((2000, 0.9), (4000, 1.6), (4500, 0.1))}
    found = record(final=None, curves=curves).figures
    assert found is not None
    assert (found.step, found.mean_return, found.median_lap_s, found.completion_rate) == (4500, 0.1, None, None)


def test_a_run_that_was_never_evaluated_has_no_figures():
    assert record(final=None, curves={}).figures is None
    assert len(record(curves={}).curve("reward/wall")) == 0


def test_solved_at_the_first_evaluation_over_the_threshold():
    assert lander().solved_at == (3000, 300.0)
    assert lander(curves={"eval/mean_reward": curve((1000, 199.9))}).solved_at is None
    assert lander(reward_threshold=None).solved_at is None


def test_runs_that_differ_in_their_seed_alone_belong_together():
    groups = group_runs([record(3), record(1), record(2)])
    assert seeds(groups) == [[1, 2, 3]]
    assert groups[0].label == "PPO"


def test_runs_of_the_same_name_are_called_by_their_paths():
    folders = [Path("a") / "run", Path("b") / "run", Path("c") / "other"]
    runs = [record(seed, name=folder.name, folder=folder) for seed, folder in enumerate(folders)]
    [group] = group_runs(runs)
    assert [run.name for run in group.runs] == [str(folders[0]), str(folders[1]), "other"]


@pytest.mark.parametrize(
    "aside",
    [
        {"steps": 9},
        {"torch_threads": 2},
        {"recording_interval": 7},
        {"checkpoint.interval": 5},
        {"evaluation.episodes": 3},
    ],
)
def test_how_closely_a_run_was_followed_sets_nothing_apart(aside):
    other = record(2, settings={"ppo.gamma": 0.99, "seed": 2, **aside})
    assert seeds(group_runs([record(1), other])) == [[1, 2]]


def test_other_settings_set_runs_apart_and_are_named():
    settings = {"ppo.gamma": 0.995, "ppo.n_steps": 64}
    longer = [record(seed, settings=settings, folder=Path(f"longer{seed}")) for seed in (1, 2)]
    groups = group_runs([record(1), *longer, record(2)])
    assert seeds(groups) == [[1, 2], [1, 2]]
    assert [group.label for group in groups] == ["PPO, gamma 0.99, n_steps unset", "PPO, gamma 0.995, n_steps 64"]


def test_algorithms_are_told_apart_by_their_names_alone():
    soft = record(2, algorithm="sac", settings={"sac.gamma": 0.9})
    assert [group.label for group in group_runs([record(1), soft])] == ["PPO", "SAC"]


def test_many_differences_are_not_all_named():
    other = record(2, settings={f"ppo.x{place}": place for place in range(9)})
    label = group_runs([record(1, settings={}), other])[1].label
    assert label == "PPO, x0 0, x1 1, x2 2, …"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (record(2, environment="CartPole-v1"), "its environment is CartPole-v1, that of {first} is hotlap/Racer-v0"),
        (record(2, track="track-02"), "its track is track-02, that of {first} is track-01"),
        (record(1), "{first}: is named twice"),
        (record(2, folder=Path("runs") / "x" / ".." / "run1"), "is named twice"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, words):
    with pytest.raises(ReportError, match=re.escape(words.format(first=record(1).folder))):
        group_runs([record(1), other])

"""A run's metrics: points where they are due, figures that numpy agrees with, and nothing lost over a crash."""

import json
import logging
from itertools import count

import numpy as np
import pytest

from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.training.metrics_collector import MetricsCollector, TrainingMetrics, read_points
from hotlap.training.run_files.metrics_document import Aggregates, MetricPoint, MetricsMetadata

RUN = {"experiment_id": "ppo_seed1", "algorithm": "ppo", "environment": "hotlap/Racer-v0", "seed": 1}


def ticking():
    """A clock that moves on by a second at each look."""
    return count(1_767_225_600).__next__


def collect(**options):
    return MetricsCollector(**{**RUN, **options})


def drive(collector, steps, seed=0):
    """Let 30 environments do `steps` vector steps, numbered, with ends and losses that depend on nothing else."""
    for step in steps:
        rng = np.random.default_rng([seed, step])
        for _ in range(rng.integers(0, 3)):
            collector.note_episode(rng.normal(10.0, 3.0), int(rng.integers(1, 100)))
        if step % 7 == 0:
            collector.note_loss(rng.random())
        collector.note_step(30 * step)


def without_times(metrics):
    content = metrics.to_dict()["training_metrics"]
    for point in content["time_series"]:
        del point["timestamp"]
    return content


# --- points ---


def test_a_point_is_taken_at_each_multiple_of_the_interval():
    collector = collect(recording_interval=4)
    for step in range(1, 11):
        collector.note_step(step)
    assert [point.timestep for point in collector.metrics().time_series] == [4, 8]
    assert collector.metrics().aggregated.total_timesteps == 10


def test_the_interval_is_100_steps_if_nothing_is_said():
    collector = collect()
    for step in range(1, 251):
        collector.note_step(step)
    assert [point.timestep for point in collector.metrics().time_series] == [100, 200]


@pytest.mark.parametrize(
    ("num_envs", "steps"), [(30, [120, 210, 300, 420, 510, 600]), (512, [512, 1024, 1536]), (100, [100, 200, 300])]
)
def test_a_vector_step_gives_one_point_at_most(num_envs, steps):
    collector = collect()
    for step in range(num_envs, steps[-1] + 1, num_envs):
        collector.note_step(step)
    assert [point.timestep for point in collector.metrics().time_series] == steps


def test_before_the_first_episode_there_is_nothing_to_say():
    collector = collect(recording_interval=1, clock=ticking())
    collector.note_step(1)
    assert collector.metrics().time_series == (MetricPoint(1, 0, None, None, None, "2026-01-01T00:00:00.000Z"),)
    assert collector.metrics().aggregated == Aggregates(None, None, None, None, None, 1)


def test_a_point_has_the_means_of_the_last_hundred_episodes_and_the_last_loss():
    collector = collect(recording_interval=1)
    rewards = np.random.default_rng(0).normal(size=130)
    for number, reward in enumerate(rewards):
        collector.note_episode(reward, number)
        collector.note_loss(number)
        collector.note_step(number + 1)
    points = collector.metrics().time_series
    assert [point.episode for point in points] == list(range(1, 131))
    for last in (0, 50, 99, 100, 129):
        window = slice(max(0, last - 99), last + 1)
        assert points[last].reward == pytest.approx(rewards[window].mean(), abs=1e-12)
        assert points[last].episode_length == np.arange(130)[window].mean()
        assert points[last].loss == last


def test_figures_over_all_episodes_are_numpys():
    collector = collect()
    # A large mean and a small spread: the sum of squares would lose it.
    rewards = 1e8 + np.random.default_rng(0).normal(size=3000)
    lengths = np.random.default_rng(1).integers(1, 3000, 3000)
    for reward, length in zip(rewards, lengths, strict=True):
        collector.note_episode(reward, length)
    collector.note_step(77)
    found = collector.metrics().aggregated
    assert found.reward_mean == pytest.approx(rewards.mean(), rel=1e-13)
    assert found.reward_std == pytest.approx(rewards.std(), rel=1e-6)
    assert (found.reward_min, found.reward_max) == (rewards.min(), rewards.max())
    assert found.episode_length_mean == pytest.approx(lengths.mean())
    assert found.total_timesteps == 77
    assert collector.num_episodes == 3000


def test_a_return_that_is_no_number_leaves_no_nan_in_the_file(tmp_path):
    collector = collect(recording_interval=1, journal=tmp_path / "a.jsonl")
    collector.note_episode(2.0, 1)
    collector.note_episode(float("-inf"), 1)
    collector.note_loss(float("nan"))
    collector.note_step(1)
    collector = MetricsCollector.resume(tmp_path / "a.jsonl", json.loads(json.dumps(collector.get_state())))
    collector.note_step(2)
    metrics = collector.metrics()
    assert [(point.reward, point.loss) for point in metrics.time_series] == [(None, None)] * 2
    assert metrics.aggregated == Aggregates(None, None, 2.0, 2.0, 1.0, 2)
    metrics.save(tmp_path / "a.json")
    assert "NaN" not in (tmp_path / "a.json").read_text()
    collector.close()


@pytest.mark.parametrize("interval", [0, -1])
def test_an_impossible_interval_is_refused(interval):
    with pytest.raises(ConfigError, match="recording_interval must be at least 1 step"):
        collect(recording_interval=interval)


# --- the document ---


def test_the_document_is_as_agreed():
    collector = collect(recording_interval=50, clock=ticking())
    collector.note_episode(3.0, 10)
    collector.note_episode(5.0, 20)
    collector.note_loss(0.5)
    collector.note_step(50)
    assert collector.metrics().to_dict() == {
        "training_metrics": {
            "metadata": {**RUN, "recording_interval": 50},
            "time_series": [
                {
                    "timestep": 50,
                    "episode": 2,
                    "reward": 4.0,
                    "episode_length": 15.0,
                    "loss": 0.5,
                    "timestamp": "2026-01-01T00:00:00.000Z",
                }
            ],
            "aggregated": {
                "reward_mean": 4.0,
                "reward_std": 1.0,
                "reward_min": 3.0,
                "reward_max": 5.0,
                "episode_length_mean": 15.0,
                "total_timesteps": 50,
            },
        }
    }


def test_a_saved_document_comes_back(tmp_path):
    collector = collect()
    drive(collector, range(1, 100))
    metrics = collector.metrics()
    metrics.save(tmp_path / "a.json")
    assert TrainingMetrics.load(str(tmp_path / "a.json")) == metrics
    assert TrainingMetrics.from_dict(metrics.to_dict()) == metrics


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("metadata", "seed"), "1", "metadata: seed must be a whole number"),
        (("metadata", "recording_interval"), 0, "recording_interval must be at least 1"),
        (("time_series", 0, "timestep"), None, r"time_series\[0\]: timestep must be a whole number"),
        (("time_series", 0, "timestamp"), "noon", "timestamp must be a time in UTC"),
        (("time_series", 0, "lap"), 1, "unknown key 'lap'"),
        (("time_series", 0, "reward"), "1", "reward must be a number"),
        (("time_series", 0), None, r"time_series\[0\] must be an object"),
        (("time_series",), {}, "time_series must be a list"),
        (("aggregated", "reward_mean"), "high", "reward_mean must be a number"),
        (("aggregated",), [], "aggregated must be an object"),
    ],
)
def test_another_document_is_refused_by_its_key(tmp_path, place, value, words):
    collector = collect(recording_interval=1)
    collector.note_step(1)
    document = collector.metrics().to_dict()
    *way, last = ("training_metrics", *place)
    target = document
    for key in way:
        target = target[key]
    target[last] = value
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}"):
        TrainingMetrics.load(tmp_path / "a.json")


def test_a_point_may_be_written_by_another_hand():
    collector = collect(recording_interval=1)
    collector.note_step(1)
    document = collector.metrics().to_dict()
    (point,) = document["training_metrics"]["time_series"]
    point["reward"] = 4
    (found,) = TrainingMetrics.from_dict(document).time_series
    assert isinstance(found.reward, float)
    for key, value in (("reward", float("nan")), ("episode", True)):
        document["training_metrics"]["time_series"] = [{**point, key: value}]
        with pytest.raises(ModelError, match=rf"time_series\[0\]: {key} must be"):
            TrainingMetrics.from_dict(document)


def test_a_missing_document_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such file"):
        TrainingMetrics.load(tmp_path / "a.json")


# --- the journal, and going on ---


def test_the_journal_has_the_points_of_the_document(tmp_path):
    collector = collect(journal=tmp_path / "a.jsonl")
    drive(collector, range(1, 60))
    collector.flush()
    points, num_bytes = read_points(tmp_path / "a.jsonl")
    assert tuple(points) == collector.metrics().time_series
    assert num_bytes == (tmp_path / "a.jsonl").stat().st_size
    collector.close()


def test_a_journal_cut_anywhere_has_the_points_before_the_cut(tmp_path):
    path = tmp_path / "a.jsonl"
    collector = collect(recording_interval=1, journal=path)
    for step in range(1, 4):
        collector.note_step(step)
    collector.close()
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert [point.timestep for point in read_points(path)[0]] == list(range(1, 1 + whole[:size].count(b"\n")))


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"timestep": 1}', b"\xff", b'{"timestep": NaN}'])
def test_a_damaged_line_is_refused_by_its_number(tmp_path, line):
    path = tmp_path / "a.jsonl"
    collector = collect(recording_interval=1, journal=path)
    collector.note_step(1)
    collector.close()
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(ModelError, match=r"a\.jsonl:2"):
        read_points(path)


@pytest.mark.parametrize("crash_after", [25, 26, 40])
def test_a_resumed_run_has_the_metrics_of_one_never_interrupted(tmp_path, crash_after):
    whole = collect(journal=tmp_path / "whole.jsonl")
    drive(whole, range(1, 80))
    path = tmp_path / "parts.jsonl"
    first = collect(journal=path)
    drive(first, range(1, 26))
    state = json.loads(json.dumps(first.get_state()))
    drive(first, range(26, crash_after + 1))
    first.close()
    path.write_bytes(path.read_bytes() + b'{"timestep": 99')
    second = MetricsCollector.resume(path, state)
    drive(second, range(26, 80))
    second.close()
    whole.close()
    assert without_times(second.metrics()) == without_times(whole.metrics())
    assert tuple(read_points(path)[0]) == second.metrics().time_series


def test_a_checkpoint_finds_its_points_in_the_journal_even_if_the_process_dies_at_once(tmp_path):
    collector = collect(recording_interval=1, journal=tmp_path / "a.jsonl")
    collector.note_step(1)
    state = collector.get_state()
    assert state["num_points"] == len(read_points(tmp_path / "a.jsonl")[0]) == 1
    collector.close()


def test_a_point_right_after_a_resume_has_the_means_from_before(tmp_path):
    first = collect(recording_interval=1, journal=tmp_path / "a.jsonl")
    first.note_episode(3.0, 5)
    first.close()
    second = MetricsCollector.resume(tmp_path / "a.jsonl", first.get_state())
    second.note_step(1)
    second.close()
    assert [(point.reward, point.episode_length) for point in second.metrics().time_series] == [(3.0, 5.0)]


def test_a_collector_can_go_back_in_place(tmp_path):
    path = tmp_path / "a.jsonl"
    for collector in (collect(), collect(journal=path)):
        drive(collector, range(1, 30))
        state, expected = collector.get_state(), collector.metrics()
        drive(collector, range(30, 60), seed=9)
        collector.set_state(state)
        assert collector.metrics() == expected
        drive(collector, range(30, 40))
        collector.close()
        whole = collect()
        drive(whole, range(1, 40))
        assert without_times(collector.metrics()) == without_times(whole.metrics())
    assert tuple(read_points(path)[0]) == collector.metrics().time_series


def test_points_missing_from_the_journal_are_said_aloud(tmp_path, caplog):
    collector = collect(recording_interval=1)
    collector.note_step(1)
    with caplog.at_level(logging.WARNING):
        resumed = MetricsCollector.resume(tmp_path / "none.jsonl", collector.get_state())
    resumed.close()
    assert "holds 0 of the 1 points up to step 1" in caplog.text


def test_a_foreign_state_is_refused():
    collector = collect()
    with pytest.raises(ModelError, match="belongs to another run"):
        collector.set_state(collect(seed=2).get_state())
    for broken in ({}, {**collector.get_state(), "timestep": "1"}, {**collector.get_state(), "recent_lengths": [1]}):
        with pytest.raises(ModelError, match="metrics state"):
            collector.set_state(broken)


def test_the_metadata_says_which_run_it_is():
    assert collect().metrics().metadata == MetricsMetadata(**RUN, recording_interval=100)

"""A run's metrics: points at the right steps, statistics that agree with numpy, and nothing lost in a crash."""

import json
from itertools import count

import numpy as np
import pytest

from hotlap.errors import ConfigError, ModelError
from hotlap.runs.json_documents import encode
from hotlap.runs.metrics_document import Aggregates, MetricPoint, MetricsMetadata, RacerPoint
from hotlap.runs.metrics_journal import JournalEnd, encode_journal, read_journal
from hotlap.training.metrics_collector import MetricsCollector, TrainingMetrics

RUN = {"experiment_id": "ppo_seed1", "algorithm": "ppo", "environment": "hotlap/Racer-v0", "seed": 1}


def ticking():
    """A clock that advances by a second per call."""
    return count(1_767_225_600).__next__


def collect(**options):
    return MetricsCollector(**{**RUN, **options})


def drive(collector, steps, seed=0):
    """Note the given vector steps of 30 environments, with episodes and losses that depend on the step only."""
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


@pytest.mark.parametrize(
    ("interval", "num_envs", "last", "steps"),
    [
        (4, 1, 10, [1, 4, 8, 10]),
        (100, 1, 200, [1, 100, 200]),
        (100, 30, 600, [30, 120, 210, 300, 420, 510, 600]),
        (100, 512, 1536, [512, 1024, 1536]),  # several multiples in one vector step: one point
        (10_000, 4, 40, [4, 40]),  # shorter than the interval
        (10_000, 4, 4, [4]),
    ],
)
def test_a_point_is_recorded_at_the_first_step_each_multiple_of_the_interval_and_the_last_step(
    interval, num_envs, last, steps
):
    collector = collect(recording_interval=interval)
    for step in range(num_envs, last + 1, num_envs):
        collector.note_step(step)
    assert [point.timestep for point in collector.metrics().time_series] == steps
    assert collector.metrics().aggregated.total_timesteps == last


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


def test_aggregates_over_all_episodes_agree_with_numpy():
    collector = collect()
    # A large mean and a small deviation, which a plain sum of squares would lose.
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


def test_returns_that_are_not_finite_become_null_in_the_file(tmp_path):
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


def test_an_interval_below_one_step_is_refused():
    with pytest.raises(ConfigError, match="recording_interval must be at least 1 step"):
        collect(recording_interval=0)


def test_a_point_and_the_aggregates_hold_the_figures_so_far():
    collector = collect(recording_interval=50, clock=ticking())
    collector.note_step(50)
    none = MetricPoint(50, 0, None, None, None, "2026-01-01T00:00:00.000Z")
    assert collector.metrics().aggregated == Aggregates(None, None, None, None, None, 50)
    collector.note_episode(3.0, 10)
    collector.note_episode(5.0, 20)
    collector.note_loss(0.5)
    collector.note_step(100)
    found = collector.metrics()
    assert found.metadata == MetricsMetadata(**RUN, recording_interval=50)
    assert found.time_series == (none, MetricPoint(100, 2, 4.0, 15.0, 0.5, "2026-01-01T00:00:01.000Z"))
    assert found.aggregated == Aggregates(4.0, 1.0, 3.0, 5.0, 15.0, 100)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("metadata", "recording_interval"), 0, r"Expected `int` >= 1 - at `\$\.metadata\.recording_interval`"),
        (("time_series", 0, "timestamp"), "noon", r"matching regex .* - at `\$\.time_series\[0\]\.timestamp`"),
    ],
)
def test_a_saved_document_is_read_back_equal_and_a_wrong_one_is_refused(tmp_path, path, value, words):
    collector = collect(recording_interval=1)
    drive(collector, range(1, 100))
    metrics, file = collector.metrics(), tmp_path / "a.json"
    metrics.save(file)
    assert TrainingMetrics.load(str(file)) == metrics
    document = metrics.to_dict()
    *way, last = ("training_metrics", *path)
    target = document
    for key in way:
        target = target[key]
    target[last] = value
    file.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"a\.json: .*{words}"):
        TrainingMetrics.load(file)


def test_the_journal_holds_the_points_and_truncated_anywhere_those_before_it(tmp_path):
    path = tmp_path / "a.jsonl"
    collector = collect(journal=path)
    drive(collector, range(1, 12))
    assert collector.get_state()["num_points"] == len(read_journal(path).points) == 4  # saving the state flushes
    drive(collector, range(12, 15))
    collector.flush()
    found = read_journal(path)
    points = found.points
    assert tuple(points) == collector.metrics().time_series
    assert found.num_bytes == path.stat().st_size
    collector.close()
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read_journal(path).points == points[: whole[:size].count(b"\n")]


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
    assert tuple(read_journal(path).points) == second.metrics().time_series[:-1]  # the last step is not in the journal


def test_a_point_right_after_a_resume_uses_the_episodes_from_before(tmp_path):
    first = collect(recording_interval=1, journal=tmp_path / "a.jsonl")
    first.note_episode(3.0, 5)
    first.close()
    second = MetricsCollector.resume(tmp_path / "a.jsonl", first.get_state())
    second.note_step(1)
    second.close()
    assert [(point.reward, point.episode_length) for point in second.metrics().time_series] == [(3.0, 5.0)]


def test_a_collector_can_be_reset_to_an_earlier_state(tmp_path):
    path = tmp_path / "a.jsonl"
    for collector in (collect(), collect(journal=path)):
        drive(collector, range(1, 30))
        state, expected = collector.get_state(), without_times(collector.metrics())
        drive(collector, range(30, 60), seed=9)
        collector.set_state(state)
        assert without_times(collector.metrics()) == expected
        drive(collector, range(30, 40))
        collector.close()
        whole = collect()
        drive(whole, range(1, 40))
        assert without_times(collector.metrics()) == without_times(whole.metrics())
    assert tuple(read_journal(path).points) == collector.metrics().time_series[:-1]


def test_points_missing_from_the_journal_are_warned_about(tmp_path, caplog):
    collector = collect(recording_interval=1)
    collector.note_step(1)
    MetricsCollector.resume(tmp_path / "none.jsonl", collector.get_state()).close()
    assert "holds 0 of the 1 points up to step 1" in caplog.text


def test_the_state_of_another_run_and_a_damaged_one_are_refused():
    collector = collect()
    with pytest.raises(ModelError, match="belongs to another run"):
        collector.set_state(collect(seed=2).get_state())
    state = collector.get_state()
    shorter = {name: value for name, value in state.items() if name != "total_length"}
    for broken in ({}, shorter, {**state, "timestep": "1"}, {**state, "recent_lengths": [1]}, {**state, "wings": 2}):
        with pytest.raises(ModelError, match="metrics state"):
            collector.set_state(broken)


# --- what is logged under racer/* ---

LOGGED = {
    "racer/mean_lap_time_sec": 40.1,
    "racer/best_lap_time_sec": 39.7,
    "racer/completion_rate": 1 / 3,
    "racer/episodes_this_rollout": 12,
    "racer/gap_to_optimal": 0.4,
    "reward/progress": 1.0,
}


def single(value):
    """As TensorBoard stores it."""
    return float(np.float32(value))


def test_the_racers_figures_are_a_series_of_what_was_logged_in_single_precision():
    collector = collect()
    collector.note_racer(10, {"reward/progress": 1.0})
    collector.note_racer(20, {"racer/completion_rate": 0.0, "racer/episodes_this_rollout": 5.0})
    collector.note_racer(30, LOGGED)
    assert collector.metrics().racer_series == (
        RacerPoint(20, None, None, 0.0, 5, None),
        RacerPoint(30, single(40.1), single(39.7), single(1 / 3), 12, single(0.4)),
    )


def test_the_latest_value_of_each_of_the_racers_figures():
    collector = collect()
    assert collector.latest_racer == {}
    collector.note_racer(20, LOGGED)
    collector.note_racer(30, {"racer/completion_rate": 0.0, "racer/episodes_this_rollout": 5})
    found = collector.latest_racer
    assert (found["completion_rate"], found["episodes_this_rollout"]) == (0.0, 5)
    assert (found["mean_lap_time_sec"], found["gap_to_optimal"]) == (single(40.1), single(0.4))


@pytest.mark.parametrize("crash_after", [25, 26, 40])
def test_the_racers_series_of_a_resumed_run_is_that_of_one_never_interrupted(tmp_path, crash_after):
    def drive_and_log(collector, steps):
        for step in steps:
            drive(collector, [step])
            if step % 5 == 0:
                collector.note_racer(30 * step, {"racer/completion_rate": step / 100.0})

    whole = collect()
    drive_and_log(whole, range(1, 80))
    path = tmp_path / "parts.jsonl"
    first = collect(journal=path)
    drive_and_log(first, range(1, 26))
    state = json.loads(json.dumps(first.get_state()))
    drive_and_log(first, range(26, crash_after + 1))
    first.close()
    second = MetricsCollector.resume(path, state)
    drive_and_log(second, range(26, 80))
    second.close()
    assert without_times(second.metrics()) == without_times(whole.metrics())
    found = read_journal(path)
    assert (len(found.racer_points), found.num_bytes) == (15, path.stat().st_size)


def test_a_finished_runs_journal_is_made_again_from_its_document_without_the_last_step(tmp_path):
    """The last step is a point of the document only: an extended run does not have it."""
    collector = collect(recording_interval=100, journal=tmp_path / "a.jsonl")
    for step in range(30, 241, 30):
        collector.note_step(step)
        collector.note_racer(step, {"racer/completion_rate": step / 1000.0})
    state = collector.get_state()
    collector.close()
    written, end = (tmp_path / "a.jsonl").read_bytes(), JournalEnd(240, state["num_points"], state["num_racer_points"])
    assert [point.timestep for point in collector.metrics().time_series] == [30, 120, 210, 240]
    assert encode_journal(collector.metrics(), end) == written
    (tmp_path / "a.jsonl").write_bytes(written + encode(collector.metrics().time_series[-1]) + b"\n")
    extended = MetricsCollector.resume(tmp_path / "a.jsonl", state)
    extended.note_step(270)
    extended.close()
    assert [point.timestep for point in extended.metrics().time_series] == [30, 120, 210, 270]

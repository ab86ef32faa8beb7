"""The racer's recipe for minutes: returns and completed laps rise, lap times fall, and the files show it."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.training.recipe import resolve_config
from hotlap.training.run_files.metrics_document import TrainingMetrics
from tiny_runs import folder_at, train

STEPS = 8_000_000


def first_and_last_fifth(values):
    fifth = max(1, len(values) // 5)
    return np.mean(values[:fifth]), np.mean(values[-fifth:])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_racer_learns_to_lap_and_then_to_lap_faster(tmp_path):
    asked = {"steps": STEPS, "evaluation.interval": 0, "evaluation.final_episodes": 20, "checkpoint.interval": 0}
    config = resolve_config("racer-ppo", asked)
    outcome = train(config, tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard"), {"scalars": 0}).Reload()
    metrics = TrainingMetrics.load(folder_at(tmp_path, config).metrics)

    first, last = first_and_last_fifth([event.value for event in events.Scalars("rollout/ep_rew_mean")])
    assert last > first + 0.5
    first, last = first_and_last_fifth([point.reward for point in metrics.time_series if point.reward is not None])
    assert last > first + 0.5
    completed = [event.value for event in events.Scalars("racer/completion_rate")]
    assert np.mean(completed[: len(completed) // 20]) == pytest.approx(0.0, abs=0.02)
    assert first_and_last_fifth(completed)[1] == pytest.approx(0.5, abs=0.4)
    for name in ("racer/mean_lap_time_sec", "racer/best_lap_time_sec", "racer/gap_to_optimal"):
        first, last = first_and_last_fifth([event.value for event in events.Scalars(name)])
        assert last < 0.95 * first, name
    assert metrics.time_series[-1].timestep == outcome.step
    assert outcome.results.evaluation["completion_rate"] >= 0.8
    assert outcome.results.evaluation["gap_to_optimal"] < 0.4

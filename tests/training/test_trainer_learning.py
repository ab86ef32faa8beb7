"""The default recipe for minutes: what a user watches shows that the car learns, and agrees with the results."""

import numpy as np
import pytest

from hotlap.runs.metrics_document import TrainingMetrics
from hotlap.runs.recipe import resolve_config
from tiny_runs import folder_at, read_events, train

STEPS = 1_000_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_completed_laps_rise_and_lap_times_fall_in_tensorboard_and_in_the_metrics_file(tmp_path):
    config = resolve_config("racer-ppo", {"steps": STEPS})
    outcome = train(config, tmp_path)
    events = read_events(tmp_path)
    curves = {name: [value for _, value in points] for name, points in events.items()}

    completed = curves["racer/completion_rate"]
    assert len(completed) >= 15
    assert max(completed[:3]) == 0.0
    half = completed[len(completed) // 2 :]
    assert np.mean([rate >= 0.9 for rate in half]) >= 0.5  # a policy may fail for a while
    # The first laps that are completed are fast already: about a fifth slower than the optimal one.
    for name in ("mean_lap_time_sec", "best_lap_time_sec"):
        values = curves[f"racer/{name}"]
        assert len(values) >= 5, name
        assert np.mean(values[-3:]) < 0.98 * values[0], name
    # Clean laps, of which alone there is a gap, come later.
    gaps = curves["racer/gap_to_optimal"]
    assert len(gaps) >= 3
    assert gaps[-1] < 0.95 * gaps[0]
    assert gaps[-1] < 0.2

    # The evaluation at the end, of the same model from other starts, says the same.
    results = outcome.results.evaluation
    assert events["racer/completion_rate"][-1][0] == outcome.step
    assert completed[-1] == pytest.approx(results["completion_rate"], abs=0.1)
    assert curves["racer/gap_to_optimal"][-1] == pytest.approx(results["gap_to_optimal"], abs=0.02)

    metrics = TrainingMetrics.load(folder_at(tmp_path, config).metrics)
    for name in ("completion_rate", "mean_lap_time_sec", "best_lap_time_sec", "gap_to_optimal"):
        series = [(point.timestep, getattr(point, name)) for point in metrics.racer_series]
        assert [point for point in series if point[1] is not None] == events[f"racer/{name}"]
    assert (metrics.time_series[0].timestep, metrics.time_series[-1].timestep) == (config.num_envs, outcome.step)
    returns = [point.reward for point in metrics.time_series if point.reward is not None]
    assert np.mean(returns[-10:]) > np.mean(returns[:10]) + 0.2

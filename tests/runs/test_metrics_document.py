"""The metrics document on disk and back."""

import msgspec
import pytest

from hotlap.errors import HotlapError
from hotlap.runs.metrics_document import Aggregates, MetricPoint, MetricsMetadata, RacerPoint, TrainingMetrics

NOW = "2026-01-02T03:04:05Z"
POINT = MetricPoint(10, 0, None, None, 0.5, NOW)
METRICS = TrainingMetrics(
    MetricsMetadata("ppo_seed1", "ppo", "CartPole-v1", 1, 10), (POINT,), Aggregates(None, None, None, None, None, 10)
)


def test_a_document_comes_back_and_laps_are_left_out_where_there_are_none(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_bytes(msgspec.json.encode(METRICS.to_dict()))
    assert TrainingMetrics.load(path) == METRICS
    assert b"racer_series" not in path.read_bytes()
    raced = msgspec.structs.replace(METRICS, racer_series=(RacerPoint(10, 31.5, 31.0, 1.0, 4, 0.1),))
    path.write_bytes(msgspec.json.encode(raced.to_dict()))
    assert TrainingMetrics.load(path) == raced


def test_a_recording_interval_of_nothing_is_refused(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_bytes(
        msgspec.json.encode(METRICS.to_dict()).replace(b'"recording_interval":10', b'"recording_interval":0')
    )
    with pytest.raises(HotlapError, match="recording_interval"):
        TrainingMetrics.load(path)

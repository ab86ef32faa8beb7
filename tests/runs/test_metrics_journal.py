"""A journal read whole or up to a checkpoint, and made again from the document of a run."""

import pytest

from hotlap.errors import ModelError
from hotlap.runs.json_documents import encode
from hotlap.runs.metrics_document import Aggregates, MetricPoint, MetricsMetadata, RacerPoint, TrainingMetrics
from hotlap.runs.metrics_journal import JournalEnd, encode_journal, read_journal

POINTS = tuple(MetricPoint(step, 0, None, None, None, "2026-01-01T00:00:00.000Z") for step in (1, 2, 3))
RACER = tuple(RacerPoint(step, None, None, 0.5, 4, None) for step in (2, 3))


@pytest.mark.parametrize(
    ("end", "num_points", "num_racer_points"),
    [
        (None, 3, 2),
        (JournalEnd(2, 9, 9), 2, 1),  # by its step
        (JournalEnd(9, 2, 1), 2, 1),  # by the points made up to there
        (JournalEnd(9, 3, 1), 3, 1),
    ],
)
def test_a_journal_is_read_up_to_its_end(tmp_path, end, num_points, num_racer_points):
    metrics = TrainingMetrics(MetricsMetadata("x", "ppo", "y", 1, 1), POINTS, Aggregates(*[None] * 5, 3), RACER)
    journal, order = encode_journal(metrics, JournalEnd(3, 3, 2)), (POINTS[0], POINTS[1], RACER[0], POINTS[2], RACER[1])
    assert journal == b"".join(encode(point) + b"\n" for point in order)
    (tmp_path / "a.jsonl").write_bytes(journal)
    assert read_journal(tmp_path / "none.jsonl").points == []
    found = read_journal(tmp_path / "a.jsonl", end)
    assert (tuple(found.points), tuple(found.racer_points)) == (POINTS[:num_points], RACER[:num_racer_points])
    lines = journal.splitlines(keepends=True)
    assert found.num_bytes == sum(map(len, lines[: num_points + num_racer_points]))


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"timestep": 1}', b"\xff", b'{"timestep": NaN}'])
def test_a_damaged_line_is_refused_with_its_number_or_ends_what_a_checkpoint_needs(tmp_path, caplog, line):
    path = tmp_path / "a.jsonl"
    path.write_bytes(encode(POINTS[0]) + b"\n" + line + b"\n")
    with pytest.raises(ModelError, match=r"a\.jsonl:2"):
        read_journal(path)
    assert read_journal(path, JournalEnd(9, 9, 9)).points == [POINTS[0]]
    assert "a.jsonl:2: is damaged" in caplog.text

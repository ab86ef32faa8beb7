"""Reads the journal of a run's metrics: one point per line, in the order in which they were made."""

import logging
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hotlap.errors import InputFileError, ModelError
from hotlap.runs.journal import read_lines
from hotlap.runs.json_documents import encode
from hotlap.runs.metrics_document import MetricPoint, RacerPoint, TrainingMetrics

_RACER_MARK = b'"episodes_this_rollout"'  # a key of every racer point, and of no other
_log = logging.getLogger(__name__)
_point_decoder = msgspec.json.Decoder(MetricPoint)
_racer_decoder = msgspec.json.Decoder(RacerPoint)


@dataclass(frozen=True)
class JournalEnd:
    """Where a checkpoint was in its run's journal: its step, and the points made up to there."""

    step: int
    num_points: int
    num_racer_points: int


@dataclass
class JournalContent:
    """The points of a journal, and their size in bytes."""

    points: list[MetricPoint] = field(default_factory=list)
    racer_points: list[RacerPoint] = field(default_factory=list)
    num_bytes: int = 0

    def is_complete(self, kind: type[MetricPoint | RacerPoint], end: JournalEnd) -> bool:
        """Whether all points of a kind up to `end` are there."""
        if kind is MetricPoint:
            return len(self.points) >= end.num_points
        return len(self.racer_points) >= end.num_racer_points

    def add(self, point: MetricPoint | RacerPoint) -> None:
        """Add a point to its series."""
        if isinstance(point, MetricPoint):
            self.points.append(point)
        else:
            self.racer_points.append(point)


def read_journal(journal: Path, end: JournalEnd | None = None) -> JournalContent:
    """A journal's points up to `end` (default: all); an incomplete last line is ignored.

    A missing journal has no points. A damaged line ends a journal that is read up to an end, and is an error otherwise.
    """
    found = JournalContent()
    try:
        lines = read_lines(journal)
    except InputFileError:
        lines = []
    for number, line in enumerate(lines, 1):
        try:
            point = (_racer_decoder if _RACER_MARK in line else _point_decoder).decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if end is not None:
                # A power cut leaves zeros in what was written after the checkpoint; what was before is on the disk.
                _log.warning("%s:%d: is damaged. The rest of the journal is dropped.", journal, number)
                break
            raise ModelError(f"{journal}:{number}: {error}. Remove the line to continue without it.") from None
        if end is not None and (point.timestep > end.step or found.is_complete(type(point), end)):
            break
        found.add(point)
        found.num_bytes += len(line) + 1
    return found


def encode_journal(metrics: TrainingMetrics, end: JournalEnd) -> bytes:
    """The journal up to `end` that a finished run had, from its document."""
    series: tuple[tuple[MetricPoint | RacerPoint, ...], ...] = (
        metrics.time_series[: end.num_points],
        metrics.racer_series[: end.num_racer_points],
    )
    # At the same step the metrics come first, as they do while training.
    ordered = sorted((point for each in series for point in each), key=lambda point: point.timestep)
    return b"".join(encode(point) + b"\n" for point in ordered if point.timestep <= end.step)

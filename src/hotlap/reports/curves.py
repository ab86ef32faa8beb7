"""Curves over training steps, and how they are read from TensorBoard event files."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import one_line
from hotlap.evaluation.telemetry import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Curve:
    """Finite values at increasing steps; empty for a key that was never logged."""

    step: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (num_points,)
    value: Floats = field(default_factory=lambda: np.zeros(0))  # (num_points,)
    elapsed_s: Floats = field(default_factory=lambda: np.zeros(0))  # (num_points,) training time; empty if unknown

    def __len__(self) -> int:
        return len(self.step)

    @property
    def last(self) -> float | None:
        """The newest value."""
        return float(self.value[-1]) if len(self) else None

    def at(self, step: int) -> float | None:
        """The value logged at exactly this step."""
        found = np.flatnonzero(self.step == step)
        return float(self.value[found[-1]]) if len(found) else None

    def first_reaching(self, goal: float) -> tuple[int, float | None] | None:
        """Step and training time (s; None if unknown) of the first value at or above a goal."""
        found = np.flatnonzero(self.value >= goal)
        if not len(found):
            return None
        index = int(found[0])
        return int(self.step[index]), float(self.elapsed_s[index]) if len(self.elapsed_s) else None


def make_curve(step: list[int], value: list[float | None]) -> Curve:
    """A curve of the points whose value is not None."""
    kept = [(at, number) for at, number in zip(step, value, strict=True) if number is not None]
    return Curve(np.array([at for at, _ in kept], np.int64), np.array([number for _, number in kept], np.float64))


def read_events(folder: Path) -> dict[str, Curve]:
    """Every scalar in the TensorBoard event files of a folder, by key; empty if there is no folder.

    A truncated last record, as in a run that is still training, ends the file. Every start or resume of a run writes
    its own file, so the pause between two files does not count as training time. ValueError for a damaged record.
    """
    from google.protobuf.message import DecodeError
    from tensorboard.backend.event_processing.event_file_loader import (  # type: ignore[import-untyped]
        LegacyEventFileLoader,
    )

    points: defaultdict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    earlier_files_s = 0.0
    for path in sorted(folder.glob("events.out.tfevents.*")):
        start_s = elapsed_s = None
        try:
            for event in LegacyEventFileLoader(str(path)).Load():
                start_s = event.wall_time if start_s is None else start_s
                elapsed_s = earlier_files_s + event.wall_time - start_s
                for entry in event.summary.value:
                    if entry.HasField("simple_value") and math.isfinite(entry.simple_value):
                        points[entry.tag][int(event.step)] = (entry.simple_value, elapsed_s)
        except DecodeError as error:
            raise ValueError(f"{path}: a record is damaged ({one_line(error)}).") from None
        earlier_files_s = earlier_files_s if elapsed_s is None else elapsed_s
    return {key: _to_curve(found) for key, found in points.items()}


def _to_curve(points: dict[int, tuple[float, float]]) -> Curve:
    steps = sorted(points)
    values, elapsed = np.array([points[step] for step in steps], np.float64).T
    return Curve(np.array(steps, np.int64), values, elapsed)

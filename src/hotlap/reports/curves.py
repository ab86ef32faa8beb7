"""A figure over the course of a training run, and the event files such figures are logged to."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap.evaluation.telemetry import Floats

Ints = NDArray[np.int64]


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class Curve:
    """Finite values at growing steps; a figure that was never logged has none."""

    step: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (num_points,)
    value: Floats = field(default_factory=_nothing)  # (num_points,)
    elapsed_s: Floats = field(default_factory=_nothing)  # (num_points,) seconds of training; empty where not known

    def __len__(self) -> int:
        return len(self.step)

    @property
    def last(self) -> float | None:
        """The newest value."""
        return float(self.value[-1]) if len(self) else None

    def at(self, step: int) -> float | None:
        """The value logged at this very step."""
        found = np.flatnonzero(self.step == step)
        return float(self.value[found[-1]]) if len(found) else None

    def first_reaching(self, goal: float) -> tuple[int, float | None] | None:
        """Step, and seconds of training where known, of the first value at or over a goal."""
        found = np.flatnonzero(self.value >= goal)
        if not len(found):
            return None
        index = int(found[0])
        return int(self.step[index]), float(self.elapsed_s[index]) if len(self.elapsed_s) else None


def make_curve(step: list[int], value: list[float | None]) -> Curve:
    """A curve of the points that have a value."""
    kept = [(at, number) for at, number in zip(step, value, strict=True) if number is not None]
    return Curve(np.array([at for at, _ in kept], np.int64), np.array([number for _, number in kept], np.float64))


def read_events(folder: Path) -> dict[str, Curve]:
    """Every number logged to the TensorBoard files in a folder, by its key; without a folder there are none.

    A file's last record may be torn, as while a run goes on: reading ends before it. Each sitting of a run has a file
    of its own, which begins when its training does, so that the time between two sittings counts as no training.
    """
    from tensorboard.backend.event_processing.event_file_loader import (  # type: ignore[import-untyped]
        LegacyEventFileLoader,
    )

    points: defaultdict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    before_s = 0.0
    for path in sorted(folder.glob("events.out.tfevents.*")):
        began_s = elapsed_s = None
        for event in LegacyEventFileLoader(str(path)).Load():
            began_s = event.wall_time if began_s is None else began_s
            elapsed_s = before_s + event.wall_time - began_s
            for entry in event.summary.value:
                if entry.HasField("simple_value") and math.isfinite(entry.simple_value):
                    points[entry.tag][int(event.step)] = (entry.simple_value, elapsed_s)
        before_s = before_s if elapsed_s is None else elapsed_s
    return {key: _curve_of(found) for key, found in points.items()}


def _curve_of(points: dict[int, tuple[float, float]]) -> Curve:
    steps = sorted(points)
    values, elapsed = np.array([points[step] for step in steps], np.float64).T
    return Curve(np.array(steps, np.int64), values, elapsed)

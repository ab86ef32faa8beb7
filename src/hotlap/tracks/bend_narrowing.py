"""Narrows a measured road where a bend is a little too tight for its width.

In a hairpin about as tight as the road is wide, the spline through points several metres apart may have a short peak of
curvature, tighter than the road's inner half-width, so that the inner edge would run backwards. Such a peak comes from
the sampling, not from the road, so the inner half is made a little narrower there. A bend that is too tight by more, or
for longer, is not changed, and the road's own check refuses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hotlap.tracks.centreline import Centreline
from hotlap.tracks.road import ROAD_MARGIN, Road, inner_margin, trace
from hotlap.tracks.spline import IntArray

MAX_EXCESS_SHARE = 0.15  # by which the half-width may exceed the radius
MAX_SEGMENTS = 3  # between points; a longer bend is not a sampling peak
NARROWED_MARGIN = 0.05  # left between the inner edge and the bend's centre, as a share of the radius

_MAX_ROUNDS = 4  # one is nearly always enough


@dataclass(frozen=True)
class Narrowing:
    """Where the road was made narrower, by how much, and on which side."""

    at_m: float
    by_m: float
    side: str


def narrow_tight_bends(centreline: Centreline, spacing_m: float) -> tuple[Centreline, list[Narrowing]]:
    """The line with its inner half narrowed at short peaks; the unchanged line if that is impossible or unnecessary."""
    narrowed = centreline
    narrowings: list[Narrowing] = []
    for _ in range(_MAX_ROUNDS):
        road = trace(narrowed, spacing_m)
        if not isinstance(road, Road):
            return centreline, []
        stretches = list(_tight_stretches(road))
        if not stretches:
            return narrowed, narrowings
        for side, nodes in stretches:
            if not _can_be_narrowed(road, side, nodes):
                return centreline, []
            narrowed, narrowing = _narrow(narrowed, road, side, nodes)
            narrowings.append(narrowing)
    return centreline, []


def _tight_stretches(road: Road) -> Iterator[tuple[str, IntArray]]:
    """Side and nodes of each stretch whose inner half-width exceeds its radius."""
    for side in ("left", "right"):
        tight = np.flatnonzero(inner_margin(road, side) <= ROAD_MARGIN)
        for nodes in np.split(tight, np.flatnonzero(np.diff(tight) > 1) + 1):
            if nodes.size:
                yield side, nodes


def _can_be_narrowed(road: Road, side: str, nodes: IntArray) -> bool:
    return len(set(road.point[nodes].tolist())) <= MAX_SEGMENTS and bool(
        inner_margin(road, side)[nodes].min() >= -MAX_EXCESS_SHARE
    )


def _narrow(line: Centreline, road: Road, side: str, nodes: IntArray) -> tuple[Centreline, Narrowing]:
    name = f"width_{side}_m"
    width = getattr(line, name).copy()
    share = (1.0 - NARROWED_MARGIN) / (1.0 - float(inner_margin(road, side)[nodes].min()))
    segments = road.point[nodes]
    ends = np.unique(np.concatenate((segments, (segments + 1) % width.size)))
    by_m = (1.0 - share) * float(width[ends].max())
    width[ends] *= share
    return replace(line, **{name: width}), Narrowing(float(nodes[0]) * road.step, by_m, side)

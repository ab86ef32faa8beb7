"""Bends of a measured road that are a little too tight for its width.

Where a hairpin turns about as tightly as the road is wide, the curve through points several metres apart may peak
between two of them and come out tighter than the road's inner half, so that the inner edge would run backwards. Such a
peak says more about the measuring than about the road. The inner half is made a little narrower there; a bend that is
too tight by more than that, or for longer, is left for the road's check to refuse.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hotlap.tracks.centreline import Centreline
from hotlap.tracks.road import ROAD_MARGIN, Road, inner_margin, trace
from hotlap.tracks.spline import IntArray

MOST_TOO_TIGHT = 0.15  # of the radius
MOST_PIECES = 3  # of the curve between points; a longer bend is no peak
EASED_MARGIN = 0.05  # what is left between the inner edge and the bend's centre, as a share of the radius

_ROUNDS = 4  # narrowing never moves the line, so one is nearly always enough


@dataclass(frozen=True)
class Easing:
    """Where the road was made narrower, by how much, and on which side."""

    at_m: float
    by_m: float
    side: str


def ease_bends(centreline: Centreline, spacing_m: float) -> tuple[Centreline, list[Easing]]:
    """The same line with its inner half narrowed at short peaks; the very same where nothing can or need be done."""
    eased = centreline
    easings: list[Easing] = []
    for _ in range(_ROUNDS):
        road = trace(eased, spacing_m)
        if not isinstance(road, Road):
            return centreline, []
        peaks = list(_peaks(road))
        if not peaks:
            return eased, easings
        for side, nodes in peaks:
            if not _can_be_eased(road, side, nodes):
                return centreline, []
            eased, easing = _narrow(eased, road, side, nodes)
            easings.append(easing)
    return centreline, []


def _peaks(road: Road) -> Iterator[tuple[str, IntArray]]:
    """Side and nodes of each stretch that is tighter than its road."""
    for side in ("left", "right"):
        tight = np.flatnonzero(inner_margin(road, side) <= ROAD_MARGIN)
        for nodes in np.split(tight, np.flatnonzero(np.diff(tight) > 1) + 1):
            if nodes.size:
                yield side, nodes


def _can_be_eased(road: Road, side: str, nodes: IntArray) -> bool:
    return len(set(road.point[nodes].tolist())) <= MOST_PIECES and bool(
        inner_margin(road, side)[nodes].min() >= -MOST_TOO_TIGHT
    )


def _narrow(line: Centreline, road: Road, side: str, nodes: IntArray) -> tuple[Centreline, Easing]:
    name = f"width_{side}_m"
    width = getattr(line, name).copy()
    share = (1.0 - EASED_MARGIN) / (1.0 - float(inner_margin(road, side)[nodes].min()))
    pieces = road.point[nodes]
    ends = np.unique(np.concatenate((pieces, (pieces + 1) % width.size)))
    by_m = (1.0 - share) * float(width[ends].max())
    width[ends] *= share
    return replace(line, **{name: width}), Easing(float(nodes[0]) * road.step, by_m, side)

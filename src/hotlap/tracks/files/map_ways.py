"""Roads of a map as ways: lines of points in degrees, with tags, joined into one loop in metres.

Readers of map formats (`osm_file`, `geojson_file`) give the ways; `join_loop` selects the roads, finds the longest loop
among them and projects it.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hotlap.errors import TrackError
from hotlap.tracks.geometry.centreline import MIN_POINTS, Centreline

DEFAULT_WIDTH_M = 10.0  # of a road whose tags say nothing
LANE_M = 3.5
MIN_WIDTH_M, MAX_WIDTH_M = 3.0, 40.0
MAX_PIECES = 400  # between junctions: more is a town, not a circuit
MAX_VISITS = 50_000  # of the search for the longest loop

_NEAR_M = 0.5  # closer points are one
_LONG_M, _FILL_M = 120.0, 60.0  # a longer stretch without points gets some, so that the spline stays straight there
_EARTH_M, _FLATTENING = 6_378_137.0, 1.0 / 298.257223563  # WGS 84
_PIT = re.compile(r"\bpit", re.IGNORECASE)
_WIDTH = re.compile(r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*(m|ft|')?\s*")
_METRES = {"m": 1.0, "ft": 0.3048, "'": 0.3048, None: 1.0}

Degrees = tuple[float, float]  # longitude, latitude


@dataclass(frozen=True)
class Way:
    """A line of a map; where two ways share a node, they meet."""

    name: str
    nodes: Sequence[Hashable]
    tags: Mapping[str, str]

    @property
    def width_m(self) -> float | None:
        """The width that the tags give, or None."""
        found = _WIDTH.fullmatch(self.tags.get("width", ""))
        if found is None:
            lanes = self.tags.get("lanes", "")
            width_m = LANE_M * int(lanes) if lanes.isdecimal() and len(lanes) < 3 else 0.0
        else:
            width_m = float(found[1]) * _METRES[found[2]]
        return width_m if MIN_WIDTH_M <= width_m <= MAX_WIDTH_M else None


@dataclass(frozen=True)
class RoadMap:
    """The ways of a file, where their nodes are, and whose data it is, if the file or its format says so."""

    ways: Sequence[Way]
    places: Mapping[Hashable, Degrees]
    attribution: str


@dataclass(frozen=True)
class Piece:
    """A stretch of a way from junction to junction."""

    way: Way
    nodes: tuple[Hashable, ...]
    length_m: float = 0.0  # measured where it is needed

    @property
    def ends(self) -> tuple[Hashable, Hashable]:
        """Its first and its last node."""
        return self.nodes[0], self.nodes[-1]

    def along(self, start: Hashable) -> tuple[Hashable, ...]:
        """Its nodes, driven from one of its ends."""
        return self.nodes if self.nodes[0] == start else self.nodes[::-1]


@dataclass(frozen=True)
class Loop:
    """A closed road in metres, the names of its ways, and whether any of them says how wide it is."""

    centreline: Centreline
    names: list[str]
    has_widths: bool


def join_loop(path: Path, found: RoadMap) -> Loop:
    """The longest loop that the roads of a map form; a TrackError in one line if there is none."""
    roads, places = _roads(found.ways), found.places
    if not roads:
        raise TrackError(f"{path}: has no road. It needs ways tagged highway=raceway, or other lines that form a loop.")
    pieces = _prune(_split(roads))
    if not pieces:
        ends = Counter(node for way in roads for node in (way.nodes[0], way.nodes[-1]))
        lon, lat = places[next((node for node, count in ends.items() if count == 1), roads[0].nodes[0])]
        raise TrackError(
            f"{path}: its roads form no loop; one ends at latitude {lat:.5f}, longitude {lon:.5f}. "
            "Add the missing ways."
        )
    if len(pieces) > MAX_PIECES:
        raise TrackError(
            f"{path}: has {len(pieces)} roads between junctions, at most {MAX_PIECES} are searched. "
            "Cut out one circuit."
        )
    measured = [replace(piece, length_m=_length_m([places[node] for node in piece.nodes])) for piece in pieces]
    return _to_metres(path, _driven(_longest_loop(measured), roads), places)


def _roads(ways: Sequence[Way]) -> list[Way]:
    """The raceways if there are any, else all ways with a highway, else all lines; pit lanes are left out."""
    lines = [way for way in ways if len(way.nodes) > 1]
    roads = [way for way in lines if way.tags.get("highway") == "raceway"]
    roads = roads or [way for way in lines if "highway" in way.tags] or lines
    return [
        way for way in roads if not any(_PIT.search(way.tags.get(key, "")) for key in ("service", "raceway", "name"))
    ]


def _split(roads: Sequence[Way]) -> list[Piece]:
    """The ways cut where they meet each other or themselves."""
    visits = Counter(node for way in roads for node in way.nodes)
    found = []
    for way in roads:
        begin = 0
        for index in range(1, len(way.nodes)):
            if index == len(way.nodes) - 1 or visits[way.nodes[index]] > 1:
                found.append(Piece(way, tuple(way.nodes[begin : index + 1])))
                begin = index
    return found


def _prune(pieces: list[Piece]) -> list[Piece]:
    """The pieces without dead ends, in time that grows with their number only."""
    at: dict[Hashable, list[int]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        for node in piece.ends:
            at[node].append(number)
    num_left = {node: len(numbers) for node, numbers in at.items()}
    dead_ends = [node for node, num in num_left.items() if num == 1]
    dropped = set[int]()
    while dead_ends:
        for number in at[dead_ends.pop()]:
            if number in dropped:
                continue
            dropped.add(number)
            for node in pieces[number].ends:
                num_left[node] -= 1
                if num_left[node] == 1:
                    dead_ends.append(node)
    return [piece for number, piece in enumerate(pieces) if number not in dropped]


def _longest_loop(pieces: Sequence[Piece]) -> list[tuple[Piece, Hashable]]:
    """The pieces of the longest loop that passes no junction twice, each with the end at which it is entered."""
    at: dict[Hashable, list[Piece]] = defaultdict(list)
    for piece in pieces:
        for node in set(piece.ends):
            at[node].append(piece)
    best: tuple[float, list[tuple[Piece, Hashable]]] = (-1.0, [])
    visits = 0
    for start in at:
        # Depth first, without recursion: the way so far, the pieces to try next, the length.
        stack: list[tuple[Hashable, list[tuple[Piece, Hashable]], float]] = [(start, [], 0.0)]
        while stack and visits < MAX_VISITS:
            node, way, length_m = stack.pop()
            visits += 1
            passed = {entered for _, entered in way}
            for piece in at[node]:
                if any(piece is other for other, _ in way):
                    continue
                end = piece.along(node)[-1]
                longer = [*way, (piece, node)]
                if end == start:
                    best = max(best, (length_m + piece.length_m, longer), key=lambda found: found[0])
                elif end not in passed:
                    stack.append((end, longer, length_m + piece.length_m))
    return best[1]


def _driven(loop: list[tuple[Piece, Hashable]], roads: Sequence[Way]) -> list[tuple[Piece, Hashable]]:
    """The loop from the file's first way on, in the direction of its one-way roads, else as most of it is drawn."""
    for tags in ({"yes": 1.0, "true": 1.0, "1": 1.0, "-1": -1.0}, {}):
        signs = [tags.get(piece.way.tags.get("oneway", ""), 0.0 if tags else 1.0) for piece, _ in loop]
        along = [
            sign if piece.nodes[0] == entered else -sign for sign, (piece, entered) in zip(signs, loop, strict=True)
        ]
        forward = sum(sign * piece.length_m for sign, (piece, _) in zip(along, loop, strict=True))
        if forward != 0.0:
            break
    if forward < 0.0:
        loop = [(piece, piece.along(entered)[-1]) for piece, entered in reversed(loop)]
    order = {id(way): index for index, way in enumerate(roads)}
    first = min(range(len(loop)), key=lambda index: order[id(loop[index][0].way)])
    return loop[first:] + loop[:first]


def _to_metres(path: Path, loop: Sequence[tuple[Piece, Hashable]], places: Mapping[Hashable, Degrees]) -> Loop:
    """The loop projected, with the width of each way."""
    degrees, widths = list[Degrees](), list[float | None]()
    for piece, entered in loop:
        nodes = piece.along(entered)[:-1]
        degrees += [places[node] for node in nodes]
        widths += [piece.way.width_m] * len(nodes)
    x, y = project(degrees)
    half_m = 0.5 * np.array([DEFAULT_WIDTH_M if width is None else width for width in widths])
    x, y, half_m = _thin_and_fill(x, y, half_m)
    if x.size < MIN_POINTS:
        raise TrackError(f"{path}: its loop has {x.size} points, at least {MIN_POINTS} are needed. Is it a circuit?")
    names = list(dict.fromkeys(piece.way.name for piece, _ in loop))
    return Loop(Centreline(x, y, half_m, half_m.copy()), names, any(width is not None for width in widths))


def project(degrees: Sequence[Degrees]) -> tuple[np.ndarray, np.ndarray]:
    """Metres east and north of the middle, to second order: to centimetres over a circuit."""
    lon, lat = np.array(degrees, np.float64).T
    east = (lon - lon[0] + 180.0) % 360.0 - 180.0  # across the date line, too
    east, north = np.radians(east - east.mean()), np.radians(lat - lat.mean())
    latitude = np.radians(lat)
    square = _FLATTENING * (2.0 - _FLATTENING)
    curve = 1.0 - square * np.sin(latitude.mean()) ** 2
    meridian_m, vertical_m = _EARTH_M * (1.0 - square) / curve**1.5, _EARTH_M / np.sqrt(curve)
    x = vertical_m * np.cos(latitude) * east
    y = meridian_m * north + 0.5 * vertical_m * np.sin(latitude) * np.cos(latitude) * east * east
    return x, y


def _length_m(degrees: Sequence[Degrees]) -> float:
    x, y = project(degrees)
    return float(np.hypot(np.diff(x), np.diff(y)).sum())


def _thin_and_fill(x: np.ndarray, y: np.ndarray, half_m: np.ndarray) -> Iterator[np.ndarray]:
    """The loop without points that nearly coincide, and with some more on long straights."""
    rows: list[tuple[float, float, float]] = []
    for row in zip(x.tolist(), y.tolist(), half_m.tolist(), strict=True):
        if not rows or math.dist(row[:2], rows[-1][:2]) >= _NEAR_M:
            rows.append(row)
    while len(rows) > 1 and math.dist(rows[0][:2], rows[-1][:2]) < _NEAR_M:
        rows.pop()
    filled = list[tuple[float, float, float]]()
    for row, after in zip(rows, [*rows[1:], *rows[:1]], strict=True):
        distance_m = math.dist(row[:2], after[:2])
        parts = math.ceil(distance_m / _FILL_M) if distance_m > _LONG_M else 1
        weights = [part / parts for part in range(parts)]
        filled += [tuple((1.0 - w) * a + w * b for a, b in zip(row, after, strict=True)) for w in weights]  # type: ignore[misc]
    yield from np.array(filled, np.float64).T.copy()

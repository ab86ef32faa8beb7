"""GeoJSON files: lines in degrees of longitude and latitude (RFC 7946), with properties as tags."""

import json
from collections import deque
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from hotlap.errors import TrackError
from hotlap.tracks.files.map_ways import Degrees, RoadMap, Way

MAX_POINTS = 300_000
MAX_PARTS = 2_000_000  # objects and lists: a few for each point
_DIGITS = 6  # of a degree: lines whose ends differ by less than a decimetre meet
_ATTRIBUTIONS = ("attribution", "copyright", "license")
_WGS84 = ("CRS84", "EPSG::4326", "EPSG:4326")


def read_geojson(path: Path, text: str) -> RoadMap:
    """The map in a GeoJSON file; its attribution is what its members of such names say."""
    try:
        return _read(path, text)
    except RecursionError:  # also where a part of it is written into a message
        raise TrackError(f"{path}: is not GeoJSON; it is nested too deeply. Export the map again.") from None


def _read(path: Path, text: str) -> RoadMap:
    if text.count("[") + text.count("{") > MAX_PARTS:
        raise TrackError(f"{path}: has more than {MAX_POINTS} points. Cut out one circuit.")
    try:
        found = json.loads(text)
    except ValueError as error:
        place = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise TrackError(f"{path}{place}: is not JSON. Export the map again.") from None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise TrackError(f"{path}: is not GeoJSON; it needs an object with a type. Export the map again.")
    crs = json.dumps(found.get("crs", ""))
    if found.get("crs") and not any(name in crs for name in _WGS84):
        raise TrackError(
            f"{path}: has coordinates of another projection ({crs:.80}). Export it in degrees (WGS 84, EPSG:4326)."
        )
    places: dict[Hashable, Degrees] = {}
    ways = list[Way]()
    for number, (name, line, tags) in enumerate(_lines(found, {}), start=1):
        nodes = list[Hashable]()
        for point in line:
            lon, lat = _degrees(path, number, point)
            key = (round(lon, _DIGITS), round(lat, _DIGITS))
            places[key] = lon, lat
            if not nodes or nodes[-1] != key:
                nodes.append(key)
        if len(places) > MAX_POINTS:
            raise TrackError(f"{path}: has more than {MAX_POINTS} points. Cut out one circuit.")
        ways.append(Way(name or f"line {number}", nodes, tags))
    stated = (found.get(name) for name in _ATTRIBUTIONS)
    return RoadMap(ways, places, " ".join(text[:500] for text in stated if isinstance(text, str)))


def _lines(found: Any, tags: dict[str, str]) -> Iterator[tuple[str, list[Any], dict[str, str]]]:
    """Every line of an object with its name and tags; a polygon's outer ring is one."""
    waiting: deque[tuple[Any, dict[str, str]]] = deque([(found, tags)])
    while waiting:
        item, tags = waiting.popleft()
        if not isinstance(item, dict):
            continue
        kind, points = item.get("type"), item.get("coordinates")
        if kind == "FeatureCollection" and isinstance(item.get("features"), list):
            waiting.extendleft((feature, {}) for feature in reversed(item["features"]))
        elif kind == "Feature":
            given = item.get("properties")
            texts = {key: str(value)[:255] for key, value in given.items()} if isinstance(given, dict) else {}
            waiting.appendleft((item.get("geometry"), texts))
        elif kind == "GeometryCollection" and isinstance(item.get("geometries"), list):
            waiting.extendleft((geometry, tags) for geometry in reversed(item["geometries"]))
        elif isinstance(points, list):
            parts = {"LineString": [points], "MultiLineString": points, "Polygon": points[:1]}.get(str(kind), [])
            yield from ((tags.get("@id", tags.get("name", "")), part, tags) for part in parts if isinstance(part, list))


def _degrees(path: Path, number: int, point: Any) -> Degrees:
    is_pair = isinstance(point, list) and len(point) >= 2 and all(type(value) in (int, float) for value in point[:2])
    if not is_pair:
        raise TrackError(f"{path}: line {number} has a point that is no pair of numbers ({point!r:.40}).")
    lon, lat = point[:2]
    if not (abs(lon) <= 180.0 and abs(lat) <= 90.0):
        shown = ", ".join(str(value)[:20] for value in (lon, lat))
        raise TrackError(
            f"{path}: line {number} has the point {shown}, which is not in degrees. Is it in another "
            "projection? Export it as WGS 84 (EPSG:4326)."
        )
    return float(lon), float(lat)

"""OpenStreetMap files: the XML that openstreetmap.org and its editors export."""

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from hotlap.errors import TrackError
from hotlap.tracks.files.map_ways import Degrees, RoadMap, Way

ATTRIBUTION = "© OpenStreetMap contributors, Open Database License 1.0"

MAX_NODES = 300_000
MAX_TAG_CHARACTERS = 255  # as in the database itself
_MAX_DEPTH = 8
_CHUNK = 1 << 16


def read_osm(path: Path, text: str) -> RoadMap:
    """The map in a file of OpenStreetMap."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise TrackError(f"{path}: a map has no document type or entities, this has. Export it again.")
    places: dict[Hashable, Degrees] = {}
    ways = list[Way]()
    try:
        for element in _children(path, text):
            if element.tag == "node":
                places[element.get("id", "")] = _place(path, element)
                if len(places) > MAX_NODES:
                    raise TrackError(f"{path}: has more than {MAX_NODES} nodes. Cut out one circuit.")
            elif element.tag == "way":
                tags = {tag.get("k", ""): tag.get("v", "")[:MAX_TAG_CHARACTERS] for tag in element.iter("tag")}
                nodes = [node.get("ref", "") for node in element.iter("nd")]
                ways.append(Way(f"way {element.get('id', '')[:20]}", nodes, tags))
    except ParseError as error:
        line = error.position[0]
        raise TrackError(f"{path}:{line}: is not XML ({error}). Export the map again.") from None
    # An extract may leave out nodes of ways that leave its area: such a way is cut there.
    parts = [part for way in ways for part in _known_parts(way, places)]
    return RoadMap(parts, places, ATTRIBUTION)


def _children(path: Path, text: str) -> Iterator[Element]:
    """The children of the root, one after the other; none is kept."""
    parser: XMLPullParser[Element] = XMLPullParser(["start", "end"])
    depth = 0
    root: Element | None = None
    for start in range(0, len(text) + 1, _CHUNK):
        parser.feed(text[start : start + _CHUNK])
        if start + _CHUNK > len(text):
            parser.close()
        for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
            depth += 1 if event == "start" else -1
            if depth > _MAX_DEPTH:
                raise TrackError(f"{path}: its elements are nested more than {_MAX_DEPTH} deep. Export the map again.")
            root = element if root is None else root
            if event == "end" and depth == 1:
                yield element
                root.clear()


def _place(path: Path, node: Element) -> Degrees:
    try:
        lon, lat = float(node.get("lon", "")), float(node.get("lat", ""))
    except ValueError:
        lon = lat = float("nan")
    if not (abs(lon) <= 180.0 and abs(lat) <= 90.0):
        raise TrackError(
            f"{path}: node {node.get('id', '')[:20]!r} needs lat and lon in degrees. Export the map again."
        )
    return lon, lat


def _known_parts(way: Way, places: dict[Hashable, Degrees]) -> Iterator[Way]:
    """The stretches of a way whose nodes are in the file."""
    part = list[Hashable]()
    for node in [*way.nodes, None]:
        if node in places:
            part.append(node)
        elif part:
            yield Way(way.name, part, way.tags)
            part = []

"""Lines of a GeoJSON file, wherever in it they are."""

import json
from pathlib import Path

import pytest

from hotlap.tracks.files.geojson_file import read_geojson

PATH = Path("map.geojson")
LINE = [[8.0, 50.0], [8.1, 50.0], [8.1, 50.1]]


def read(**found):
    return read_geojson(PATH, json.dumps(found))


@pytest.mark.parametrize(
    ("kind", "coordinates"),
    [("LineString", LINE), ("MultiLineString", [LINE]), ("Polygon", [LINE, [[0.0, 0.0]] * 4])],
)
def test_a_line_a_part_and_an_outer_ring_are_ways(kind, coordinates):
    [way] = read(type=kind, coordinates=coordinates).ways
    assert way.nodes == [tuple(point) for point in LINE]


def test_features_keep_their_order_and_have_names_and_tags():
    def feature(geometry, **properties):
        return {"type": "Feature", "properties": properties, "geometry": geometry}

    line = {"type": "LineString", "coordinates": LINE}
    several = {"type": "GeometryCollection", "geometries": [line, {"type": "Point", "coordinates": [1, 2]}, line]}
    features = [feature(line, name="Ring", width=9), feature(several), feature(None), feature(line, **{"@id": "way/7"})]
    ways = read(type="FeatureCollection", features=features).ways
    assert [way.name for way in ways] == ["Ring", "line 2", "line 3", "way/7"]
    assert ways[0].tags == {"name": "Ring", "width": "9"}


def test_points_within_a_decimetre_are_one_and_not_repeated():
    found = read(type="LineString", coordinates=[[8.0, 50.0], [8.0000001, 50.0], [8.1, 50.0, 120.0]])
    assert found.ways[0].nodes == [(8.0, 50.0), (8.1, 50.0)]


def test_wgs_84_may_be_named():
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    assert len(read(type="LineString", coordinates=LINE, crs=crs).ways) == 1

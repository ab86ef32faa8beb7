"""A circuit of known length as a map, in OpenStreetMap's XML and in GeoJSON."""

import json
import math

EAST_M, NORTH_M = 71_696.0, 111_229.0  # of a degree at latitude 50


def stadium_degrees():
    """A stadium of two straights of 300 m and two half circles of 60 m."""
    points = []
    for end in (0, 1):
        for k in range(16):
            angle = math.pi * (k / 15 - 0.5) + math.pi * end
            x = (150.0 if end == 0 else -150.0) + 60.0 * math.cos(angle)
            points.append((8.0 + x / EAST_M, 50.0 + 60.0 * math.sin(angle) / NORTH_M))
    return points


LENGTH_M = 600.0 + 2.0 * math.pi * 60.0


def osm_text():
    points = stadium_degrees()
    nodes = "".join(f'<node id="{k}" lat="{lat:.7f}" lon="{lon:.7f}"/>\n' for k, (lon, lat) in enumerate(points))
    tags = '<tag k="highway" v="raceway"/><tag k="width" v="12"/><tag k="name" v="Testring"/>'
    first = "".join(f'<nd ref="{k}"/>' for k in range(17))
    second = "".join(f'<nd ref="{k}"/>' for k in [*range(16, 32), 0])
    ways = f'<way id="71">{first}{tags}</way><way id="72">{second}{tags}</way>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6">\n{nodes}{ways}</osm>\n'


def geojson_text(**more):
    points = [list(point) for point in stadium_degrees()]
    feature = {"type": "Feature", "properties": {"highway": "raceway", "width": "12"}}
    feature["geometry"] = {"type": "LineString", "coordinates": [*points, points[0]]}
    return json.dumps({"type": "FeatureCollection", "features": [feature], **more})

"""Ways and places of a file of OpenStreetMap."""

from pathlib import Path

import pytest

from hotlap.errors import TrackError
from hotlap.tracks.files import osm_file
from hotlap.tracks.files.osm_file import ATTRIBUTION, read_osm
from tracks.map_texts import osm_text, stadium_degrees

PATH = Path("ring.osm")
NODES = "".join(f'<node id="{k}" lat="50" lon="{k}"/>' for k in (1, 2, 3, 5))


def test_a_map_has_its_ways_tags_and_places():
    found = read_osm(PATH, osm_text())
    assert [way.name for way in found.ways] == ["way 71", "way 72"]
    assert found.ways[0].tags == {"highway": "raceway", "width": "12", "name": "Testring"}
    assert [way.nodes[0] for way in found.ways] == ["0", "16"]
    assert found.attribution == ATTRIBUTION
    for number, (lon, lat) in enumerate(stadium_degrees()):
        assert found.places[str(number)] == pytest.approx((lon, lat), abs=1e-7)


def test_a_way_is_cut_where_its_nodes_are_not_in_the_file():
    refs = "".join(f'<nd ref="{k}"/>' for k in (1, 2, 4, 3, 5))
    found = read_osm(PATH, f'<osm>{NODES}<way id="7">{refs}</way></osm>')
    assert [way.nodes for way in found.ways] == [["1", "2"], ["3", "5"]]


def test_a_file_larger_than_one_part_is_read_whole(monkeypatch):
    whole = read_osm(PATH, osm_text())
    monkeypatch.setattr(osm_file, "_CHUNK", 7)
    assert read_osm(PATH, osm_text()) == whole


def test_too_many_nodes_are_refused(monkeypatch):
    monkeypatch.setattr(osm_file, "MAX_NODES", 3)
    with pytest.raises(TrackError, match="has more than 3 nodes"):
        read_osm(PATH, f"<osm>{NODES}</osm>")

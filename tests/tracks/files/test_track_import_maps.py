"""Maps in OpenStreetMap's XML and in GeoJSON: imported and driven, or refused in one line."""

import json
import random
import time

import pytest

from hotlap.errors import HotlapError, TrackError
from hotlap.tracks.files.track_import import import_centreline, import_track
from hotlap.tracks.geometry.centreline import length_m
from tracks.map_texts import LENGTH_M, geojson_text, osm_text

NUM_MUTATIONS = 40
TEXTS = {"ring.osm": osm_text(), "ring.geojson": geojson_text(), "ring.json": geojson_text()}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("name", TEXTS)
def test_a_circuit_of_a_map_has_its_length_and_width(write, caplog, name):
    track = import_track(write(name, TEXTS[name]))
    assert length_m(track.centreline) == pytest.approx(LENGTH_M, rel=3e-3)
    assert track.centreline.width_left_m == pytest.approx(6.0)
    assert caplog.text == ""


def test_reversed_width_and_start_work_as_for_a_table(write):
    path = write("ring.osm", TEXTS["ring.osm"])
    line = import_centreline(path, reverse_travel=True, width_m=9.0, start_m=100.0)
    assert line.width_right_m == pytest.approx(4.5)
    assert length_m(line) == pytest.approx(LENGTH_M, rel=3e-3)


def test_a_road_without_width_says_which_it_got(write, caplog):
    import_track(write("ring.osm", TEXTS["ring.osm"].replace('<tag k="width" v="12"/>', "")))
    [record] = caplog.records
    text = "ring.osm: the map gives no width for way 71, way 72: the road is 10 m wide"
    assert record.message == f"{text} (--width of `hotlap tracks import`)."


def test_a_width_of_the_users_is_not_called_missing(write, caplog):
    import_track(write("ring.osm", TEXTS["ring.osm"].replace('<tag k="width" v="12"/>', "")), width_m=9.0)
    assert caplog.text == ""


def test_what_a_geojson_file_says_of_its_origin_is_kept(write):
    text = geojson_text(copyright="Surveyed by the club.", license="CC0", generator=7)
    assert import_track(write("ring.geojson", text)).attribution == "Surveyed by the club. CC0 (line 1)"
    assert import_track(write("ring.geojson", geojson_text())).attribution == "(line 1)"


UTM = json.dumps({"type": "LineString", "coordinates": [[500_000.0, 5_500_000.0], [500_100.0, 5_500_000.0]]})
LAUGHS = '<?xml version="1.0"?><!DOCTYPE osm [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><osm>&b;</osm>'
BAD = {
    "not a road": ("a.geojson", '{"type": "Point", "coordinates": [8, 50]}', "has no road"),
    "no loop": ("a.geojson", '{"type": "LineString", "coordinates": [[8, 50], [8.01, 50], [8.01, 50.01]]}', "no loop"),
    "another projection": ("a.geojson", UTM, "which is not in degrees. Is it in another projection"),
    "a named projection": ("a.geojson", geojson_text(crs={"properties": {"name": "EPSG:25832"}}), "another projection"),
    "a zip": ("a.osm", b"PK\x03\x04\0\0\0", "this one is binary. Unpack it"),
    "a planet extract": ("a.osm.pbf", b"\0\0\0\x0d\x0a\x09OSMHeader", "this one is binary"),
    "empty": ("a.osm", "", "is not XML"),
    "not XML": ("a.osm", "x_m,y_m\n1,2\n", ":1: is not XML"),
    "cut off": ("a.osm", osm_text()[:-20], "is not XML"),
    "entities": ("a.osm", LAUGHS, "no document type or entities"),
    "deep": ("a.osm", "<a>" * 100_000, "nested more than 8 deep"),
    "no places": ("a.osm", '<osm><node id="1"/></osm>', "node '1' needs lat and lon"),
    "beyond the pole": ("a.osm", '<osm><node id="1" lat="91" lon="0"/></osm>', "needs lat and lon in degrees"),
    "not JSON": ("a.geojson", "{", ":1: is not JSON"),
    "deep JSON": ("a.geojson", "[" * 200_000, "nested too deeply"),
    "a list": ("a.geojson", "[]", "is not GeoJSON"),
    "not a number": ("a.geojson", '{"type": "LineString", "coordinates": [["8", 50]]}', "no pair of numbers"),
    "a huge number": ("a.geojson", UTM.replace("[500000.0", f"[{9 * 10**399}"), "000, 5500000.0, which is not in"),
    "too many parts": ("a.geojson", "[" * 2_000_001, "has more than 300000 points"),
    "NaN": ("a.geojson", '{"type": "LineString", "coordinates": [[NaN, 50]]}', "not in degrees"),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD.values(), ids=BAD)
def test_a_bad_map_is_refused_in_one_line(write, name, content, words):
    with pytest.raises(TrackError) as caught:
        import_track(write(name, content))
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_chain_of_dead_ends_is_refused_in_time_that_grows_with_its_length(write):
    lines = [{"type": "LineString", "coordinates": [[8 + k, 50], [9 + k, 50]]} for k in range(-9, 9)]
    short = [{"type": "LineString", "coordinates": [[k / 1e4, 50], [(k + 1) / 1e4, 50]]} for k in range(20_000)]
    for features in (lines, short):
        path = write("a.geojson", json.dumps({"type": "FeatureCollection", "features": features}))
        begun_s = time.process_time()
        with pytest.raises(TrackError, match="form no loop"):
            import_track(path)
        assert time.process_time() - begun_s < 10.0


def test_names_in_a_map_cannot_write_lines_of_their_own(write, caplog):
    found = json.loads(geojson_text(copyright="a\nb"))
    found["features"][0]["properties"] = {"name": "a\n\x1b[2J" + "x" * 200}
    track = import_track(write("a.geojson", json.dumps(found)))
    assert track.attribution == f"a b (a [2J{'x' * 54})"
    [record] = caplog.records
    assert record.message.isprintable()


@pytest.mark.parametrize("depth", range(900, 1000, 3))
def test_a_map_is_refused_or_read_however_deep_it_is(write, depth):
    nested = "[" * depth + "]" * depth
    for text in (f'{{"type": "LineString", "coordinates": [{nested}]}}', f'{{"type": "Point", "crs": {nested}}}'):
        with pytest.raises(TrackError):
            import_track(write("a.geojson", text))


def mutate(rng: random.Random, text: str) -> bytes:
    """The text with a byte changed, a part cut out or doubled, something else put in, or other digits."""
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 3)):
        kind, at = rng.randrange(8), rng.randrange(len(data))
        end = min(len(data), at + rng.randint(1, 400))
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at : at + 3] = rng.choice([b"1e9", b"nan", b"-0.", b'"":', b"<a>", b"]]]", b"\xff\xfe\0"])
        else:  # a digit is another one, which leaves most files readable
            digits = [index for index, byte in enumerate(data) if 48 <= byte <= 57]
            data[rng.choice(digits) if digits else at] = rng.choice(b"0123456789")
        data = data or bytearray(b" ")
    return bytes(data)


@pytest.mark.parametrize("name", ["ring.osm", "ring.geojson"])
def test_mutated_maps_do_no_harm(write, name):
    rng = random.Random(7)
    imported, refusals = 0, []
    slowest_s = 0.0
    for _ in range(NUM_MUTATIONS):
        path = write(name, mutate(rng, TEXTS[name]))
        begun_s = time.process_time()
        try:
            import_track(path)
            imported += 1
        except HotlapError as error:
            refusals.append(str(error))
        slowest_s = max(slowest_s, time.process_time() - begun_s)
    assert min(imported, len(refusals)) > 3
    assert all(map(str.isprintable, refusals))
    assert slowest_s < 5.0

"""The tool that describes the generated tracks for lists."""

import json

import describe_generated
from hotlap.tracks.geometry.road_statistics import CornerStatistics, RoadStatistics
from hotlap.tracks.registry import about_generated, load_track, split_ids


def make_road(turning_radpkm: float, *corners: CornerStatistics) -> RoadStatistics:
    return RoadStatistics(1000.0, 9.0, 10.0, 11.0, 204.0, 0.4, turning_radpkm, corners)


def test_a_road_is_fast_flowing_or_technical_by_how_much_it_turns():
    hairpin, sweeper = CornerStatistics(0.0, 12.0, 10.0, 3.0), CornerStatistics(0.0, 90.0, 10.0, -1.0)
    assert describe_generated.characterise(make_road(5.0, sweeper, sweeper)) == (
        "fast: 2 corners and a straight of 200 m"
    )
    assert describe_generated.characterise(make_road(10.0, hairpin, sweeper)) == (
        "flowing: 2 corners, a hairpin and a straight of 200 m"
    )
    assert describe_generated.characterise(make_road(13.0, hairpin, hairpin, sweeper)).startswith(
        "technical: 3 corners, 2 hairpins"
    )


def test_the_file_is_what_the_tool_writes_and_every_name_is_another():
    ids = [*split_ids("train"), *split_ids("test")]
    assert len({about_generated(track_id)["name"] for track_id in ids}) == 125
    number = 103
    described = describe_generated.describe(load_track(ids[number]), number)
    assert json.loads(json.dumps(described)) == about_generated(ids[number])
    assert list(json.loads(describe_generated.OUTPUT.read_text(encoding="utf-8"))) == ids

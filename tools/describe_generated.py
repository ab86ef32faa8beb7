"""Writes what lists say of the generated tracks: name, character, length, road, optimum and the shape of a thumbnail.

usage: python tools/describe_generated.py

To build all of them takes half a minute, too long for a list. Run it after a change of the generated tracks.
"""

import json
from pathlib import Path

import numpy as np

from hotlap.optimal.reference import find_reference
from hotlap.tracks.digest import track_digest
from hotlap.tracks.geometry.road_statistics import RoadStatistics, measure_road
from hotlap.tracks.registry import SPLITS, Track, load_track, split_ids

OUTPUT = Path(__file__).resolve().parent.parent / "src" / "hotlap" / "tracks" / "data" / "generated.json"
FIRST_WORDS = (
    "Alder", "Amber", "Ashen", "Birch", "Bramble", "Cedar", "Cinder", "Copper", "Curlew", "Ember", "Falcon", "Flint",
    "Gannet", "Hazel", "Heron", "Juniper", "Larch", "Linden", "Marten", "Osprey", "Plover", "Quarry", "Rowan",
    "Saffron", "Willow",
)  # fmt: skip
SECOND_WORDS = ("Ring", "Park", "Heath", "Valley", "Moor")
FAST_RADPKM, TECHNICAL_RADPKM = 8.0, 12.0  # of turning, by which a third each is fast, flowing and technical
HAIRPIN_RAD, HAIRPIN_M = 2.2, 25.0
NUM_SHAPE_POINTS = 48
SHAPE_STEPS = 99


def describe_all() -> dict[str, dict[str, object]]:
    """Every track of the splits, by id."""
    track_ids = [track_id for split in SPLITS for track_id in split_ids(split)]
    return {track_id: describe(load_track(track_id), number) for number, track_id in enumerate(track_ids)}


def describe(track: Track, number: int) -> dict[str, object]:
    """One track; every number has another name."""
    first, second = FIRST_WORDS[number % len(FIRST_WORDS)], SECOND_WORDS[number // len(FIRST_WORDS)]
    reference = find_reference(track)
    return {
        "name": f"{first} {second}",
        "character": characterise(measure_road(track.nodes)),
        "length_m": round(track.nodes.length_m, 3),
        "road": track_digest(track.nodes),
        "optimal_lap_time_s": reference.lap_time_s if reference else None,
        "optimal_standing_lap_time_s": reference.standing_lap_time_s if reference else None,
        "shape": outline(track),
    }


def characterise(road: RoadStatistics) -> str:
    """The kind of a road, and what there is to drive."""
    is_fast, is_technical = road.turning_radpkm < FAST_RADPKM, road.turning_radpkm > TECHNICAL_RADPKM
    kind = "fast" if is_fast else "technical" if is_technical else "flowing"
    hairpins = sum(abs(one.turn_rad) > HAIRPIN_RAD and one.radius_m < HAIRPIN_M for one in road.corners)
    parts = [f"{len(road.corners)} corners"]
    if hairpins:
        parts.append(f"{hairpins} hairpins" if hairpins > 1 else "a hairpin")
    parts.append(f"a straight of {10 * round(road.longest_straight_m / 10)} m")
    return f"{kind}: {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"{kind}: {parts[0]}"


def outline(track: Track) -> list[int]:
    """The centreline as x and y by turns, in whole steps of its larger extent."""
    every = np.linspace(0, track.nodes.num_nodes, NUM_SHAPE_POINTS, endpoint=False).astype(int)
    points = np.stack([track.nodes.x_m[every], track.nodes.y_m[every]], axis=1)
    points -= points.min(axis=0)
    steps: list[int] = np.rint(points * (SHAPE_STEPS / points.max())).astype(int).reshape(-1).tolist()
    return steps


if __name__ == "__main__":
    lines = (f"  {json.dumps(track_id)}: {json.dumps(about)}" for track_id, about in describe_all().items())
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

"""Write the shipped track files: the built-in tracks from hand-placed corners, and the generated frozen split."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import hotlap.tracks
from hotlap.tracks.files.centreline_file import write_centreline
from hotlap.tracks.generation.generator import LINE_AT, SPACING_M, generate
from hotlap.tracks.generation.split_seeds import TEST_SEEDS, TRAIN_SEEDS
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.clothoid_path import PolygonCorner, round_corners, to_millimetres

DATA = Path(hotlap.tracks.__file__).parent / "data"


class TrackLayout(NamedTuple):
    """A hand-placed layout; `scale` multiplies the corners' positions but not their radii."""

    name: str
    scale: float
    half_width_m: float
    corners: tuple[tuple[float, float, float], ...]  # x_m, y_m, radius_m


LAYOUTS = {
    # Clockwise: a fast sweeper off the straight, a right-left chicane, a hairpin, and a run back through two bends.
    "track-01": TrackLayout(
        name="Lantern Bay",
        scale=1.0,
        half_width_m=5.75,
        corners=(
            (-110.0, 0.0, 24.0),
            (266.0, 0.0, 72.0),
            (240.0, -126.0, 25.0),
            (203.0, -146.0, 25.0),
            (174.0, -264.0, 14.5),
            (154.0, -98.0, 42.0),
            (-30.0, -88.0, 42.0),
        ),
    ),
    # Anticlockwise: two long straights, sweepers taken flat out or nearly, one slow chicane.
    "track-02": TrackLayout(
        name="Kestrel Aerodrome",
        scale=0.93,
        half_width_m=6.5,
        corners=(
            (720.0, 0.0, 130.0),
            (538.0, 390.0, 120.0),
            (640.0, 620.0, 70.0),
            (300.0, 508.0, 20.0),
            (278.0, 465.0, 20.0),
            (-48.0, 436.0, 90.0),
            (-81.0, 249.0, 90.0),
            (-275.0, 200.0, 80.0),
            (-290.0, 0.0, 85.0),
        ),
    ),
    # Clockwise in all, but nearly every corner turns the other way than the one before.
    "track-03": TrackLayout(
        name="Thornback Ridge",
        scale=1.05,
        half_width_m=4.75,
        corners=(
            (0.0, -4.0, 18.0),
            (0.0, 210.0, 18.0),
            (58.0, 228.0, 24.0),
            (112.0, 345.0, 14.0),
            (150.0, 185.0, 20.0),
            (222.0, 168.0, 16.0),
            (245.0, 355.0, 13.0),
            (305.0, 120.0, 34.0),
            (255.0, 65.0, 18.0),
            (80.0, 118.0, 14.0),
            (170.0, 0.0, 18.0),
            (150.0, -50.0, 22.0),
            (60.0, -50.0, 15.0),
            (48.0, 12.0, 15.0),
        ),
    ),
}


def make_centreline(layout: TrackLayout) -> Centreline:
    """The layout as a centreline, with the start line on its longest straight."""
    path = round_corners([PolygonCorner(x * layout.scale, y * layout.scale, radius) for x, y, radius in layout.corners])
    x, y = path.sample(path.point_on_longest_straight(LINE_AT), SPACING_M)
    width = np.full(len(x), layout.half_width_m)
    return Centreline(to_millimetres(x - x[0]), to_millimetres(y - y[0]), to_millimetres(width), to_millimetres(width))


def main() -> None:
    """Write every shipped track file."""
    (DATA / "generated").mkdir(parents=True, exist_ok=True)
    for track_id, layout in LAYOUTS.items():
        write_centreline(DATA / f"{track_id}.csv", make_centreline(layout))
    for seed in (*TRAIN_SEEDS, *TEST_SEEDS):
        write_centreline(DATA / "generated" / f"{seed:05d}.csv", generate(seed))


if __name__ == "__main__":
    main()

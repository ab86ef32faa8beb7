"""Generated circuits: valid by an independent check, as long and as uneven as real ones, the same everywhere."""

import functools

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.generation.circuit_generator import MAX_LENGTH_M, MIN_LENGTH_M, generate_circuit
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.geometry.road_statistics import measure_road
from tracks.track_rules import corners, curvature, digest, faults, longest_straight_m

GOLDEN_SEEDS = (0, 1, 2, 3, 5, 8, 13, 21, 30_000)
GOLDEN_SHA256 = "d7f836ae3aefb8a572db4f1ae5ea90c8981a77065f3181f89f0c5d3aa21c63e6"
NUM_CIRCUITS = 60


@functools.cache
def circuits():
    return [generate_circuit(seed) for seed in range(NUM_CIRCUITS)]


def broken_rules(track):
    # Kinks bend the start straight too, to a radius of 50 m at most, and a bend may leave less room than 7 m of road.
    return faults(
        track,
        length_m=(0.99 * MIN_LENGTH_M, 1.01 * MAX_LENGTH_M),
        width_m=(6.0, 20.0),
        start_curvature=0.02,
        is_narrowed=True,
    )


def test_sixty_circuits_are_valid():
    assert {seed: broken for seed, track in enumerate(circuits()) if (broken := broken_rules(track))} == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_seed_up_to_1000_is_valid_and_can_be_driven():
    for seed in range(1000):
        track = generate_circuit(seed)
        build_nodes(track)
        assert broken_rules(track) == [], f"seed {seed}"


def test_circuits_are_as_long_and_uneven_as_real_ones():
    lengths = [curvature(track)[1].sum() for track in circuits()]
    straights = [longest_straight_m(track) for track in circuits()]
    widths = [track.width_left_m + track.width_right_m for track in circuits()]
    assert np.percentile(lengths, 10) < 2200.0
    assert np.percentile(lengths, 90) > 4500.0
    assert np.percentile(straights, 90) > 700.0
    assert np.median([width.max() / width.min() for width in widths]) > 1.4
    assert min(width.min() for width in widths) < 7.5
    assert max(width.max() for width in widths) > 19.0
    assert (
        np.median([1000.0 * len(corners(track)) / length for track, length in zip(circuits(), lengths, strict=True)])
        < 6
    )


def test_circuits_have_corners_of_every_kind_to_both_sides():
    found = [bend for track in circuits() for bend in corners(track)]
    radii = [radius for _, radius, _, _ in found]
    assert min(radii) < 7.5
    assert np.percentile(radii, 90) > 60.0
    assert np.percentile([abs(turn) for turn, _, _, _ in found], 90) > 120.0
    assert 0.42 < np.mean([turn > 0.0 for turn, _, _, _ in found]) < 0.58


def test_long_straights_of_wide_roads_end_in_slow_corners():
    found = [corner for track in circuits()[:20] for corner in measure_road(build_nodes(track)).corners]
    wide = [corner for corner in found if corner.entry_m > 200.0 and corner.width_m > 10.0]
    assert len(wide) > 30
    assert np.mean([corner.radius_m < 22.0 for corner in wide]) > 0.45


def test_a_road_changes_its_width_quickly_in_places_but_never_in_a_step():
    steepest = []
    for track in circuits():
        width = track.width_left_m + track.width_right_m
        steepest.append(np.abs(np.roll(width, -15) - width).max())
    assert np.percentile(steepest, 90) > 4.0  # metres of width within 60 m of road
    assert max(np.abs(np.diff(track.width_left_m)).max() for track in circuits()) < 2.5


def test_a_circuit_is_another_track_than_the_short_one_of_its_seed():
    assert len(circuits()[7].x_m) != len(generate(7).x_m)


def test_circuits_have_the_same_digits_on_every_machine():
    assert digest(generate_circuit(seed) for seed in GOLDEN_SEEDS) == GOLDEN_SHA256


def test_a_negative_seed_is_refused():
    with pytest.raises(TrackError, match="seed is -1"):
        generate_circuit(-1)

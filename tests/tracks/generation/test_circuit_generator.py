"""Generated circuits: valid by an independent check, as long and as uneven as real ones, the same everywhere."""

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.generation.circuit_generator import MIN_HALF_WIDTH_M, generate_circuit
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.geometry.node_builder import build_nodes
from tracks.track_rules import corners, curvature, digest, faults, longest_straight_m

GOLDEN_SEEDS = (0, 1, 2, 3, 5, 8, 13, 21, 30_000)
GOLDEN_SHA256 = "b8b6391539cca7db797ce61d53d7d0fff022879b53ae88a3534c09ce4f368256"


def broken_rules(track):
    # Kinks bend the start straight too, to a radius of 50 m at most.
    return faults(track, length_m=(1200.0, 7000.0), width_m=(2.0 * MIN_HALF_WIDTH_M, 19.0), start_curvature=0.02)


def test_sixty_circuits_are_valid():
    assert {seed: broken for seed in range(60) if (broken := broken_rules(generate_circuit(seed)))} == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_seed_up_to_1000_is_valid_and_can_be_driven():
    for seed in range(1000):
        track = generate_circuit(seed)
        build_nodes(track)
        assert broken_rules(track) == [], f"seed {seed}"


def test_circuits_are_as_long_and_uneven_as_real_ones():
    tracks = [generate_circuit(seed) for seed in range(60)]
    lengths = [curvature(track)[1].sum() for track in tracks]
    straights = [longest_straight_m(track) for track in tracks]
    widths = [track.width_left_m + track.width_right_m for track in tracks]
    assert np.percentile(lengths, 10) < 2200.0
    assert np.percentile(lengths, 90) > 4500.0
    assert np.percentile(straights, 90) > 500.0
    assert np.median([width.max() / width.min() for width in widths]) > 1.3
    assert min(width.min() for width in widths) < 8.0
    assert max(width.max() for width in widths) > 16.0
    assert np.median([1000.0 * len(corners(track)) / length for track, length in zip(tracks, lengths, strict=True)]) < 6


def test_a_circuit_is_another_track_than_the_short_one_of_its_seed():
    assert len(generate_circuit(7).x_m) != len(generate(7).x_m)


def test_circuits_have_the_same_digits_on_every_machine():
    assert digest(generate_circuit(seed) for seed in GOLDEN_SEEDS) == GOLDEN_SHA256


def test_a_negative_seed_is_refused():
    with pytest.raises(TrackError, match="seed is -1"):
        generate_circuit(-1)

"""Generated tracks: valid by an independent check, varied, the same everywhere, equal to the shipped files."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hotlap.tracks
from hotlap.errors import TrackError
from hotlap.tracks.files.centreline_file import read_centreline, write_centreline
from hotlap.tracks.generation import generator
from hotlap.tracks.generation.generator import MAX_ATTEMPTS, generate
from hotlap.tracks.generation.split_seeds import TEST_SEEDS, TRAIN_SEEDS
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes
from tracks.track_rules import corners, curvature, digest, faults, has_chicane, has_hairpin, longest_straight_m

DATA = Path(hotlap.tracks.__file__).parent / "data"
BUILT_IN = ("track-01", "track-02", "track-03")
GOLDEN_SEEDS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 10_000, 123_456_789)
GOLDEN_SHA256 = "a8b608d260f444d7c65948502c56c52f9a3f3a5c9d9c9cb005e44f5fdcc1b633"


def assert_spread(tracks, short_m=800.0):
    lengths = [curvature(t)[1].sum() for t in tracks]
    radii = [1.0 / np.abs(curvature(t)[0]).max() for t in tracks]
    counts = [len(corners(t)) for t in tracks]
    turns = np.array([math.degrees(np.sum(np.prod(curvature(t), axis=0))) for t in tracks])
    lefts = np.mean([sum(turn > 0 for turn, *_ in corners(t)) * 2 > len(corners(t)) for t in tracks])
    widths = [np.mean(t.width_left_m + t.width_right_m) for t in tracks]
    assert np.percentile(lengths, 5) < short_m
    assert np.percentile(lengths, 95) > 3200.0
    assert np.percentile(radii, 5) < 11.0
    assert np.percentile(radii, 95) > 22.0
    assert min(counts) <= 5
    assert max(counts) >= 16
    assert np.percentile(counts, 90) - np.percentile(counts, 10) >= 10
    assert min(widths) < 9.0
    assert max(widths) > 13.5
    assert 0.4 < np.mean([has_hairpin(t) for t in tracks]) < 0.9
    assert 0.5 < np.mean([has_chicane(t) for t in tracks]) < 1.0
    assert 0.3 < np.mean([longest_straight_m(t) > 250.0 for t in tracks]) < 0.8
    assert 0.35 < lefts < 0.65
    assert 0.35 < np.mean(turns < 0.0) < 0.65
    assert np.abs(np.abs(turns) - 360.0).max() < 4.0


def test_sixty_tracks_are_valid():
    assert {seed: broken for seed in range(200, 260) if (broken := faults(generate(seed)))} == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_seed_up_to_1000_is_valid_and_can_be_driven():
    for seed in (*range(1000), *TEST_SEEDS):
        track = generate(seed)
        build_nodes(track)
        assert faults(track) == [], f"seed {seed}"


def test_the_independent_check_finds_bad_tracks():
    turns = np.arange(200) / 200.0 * 2.0 * np.pi
    half = np.full(200, 5.0)
    eight = Centreline(130.0 * np.sin(turns), 60.0 * np.sin(2.0 * turns), half, half)
    assert {"simple", "clearance", "road polygon"} <= set(faults(eight))
    tight = Centreline(190.0 * np.cos(turns), 25.0 * np.sin(turns), half, half)
    assert {"radius", "even spacing"} <= set(faults(tight))
    assert "simple" not in faults(tight)


def test_the_training_tracks_are_a_wide_spread():
    assert_spread([read_shipped(seed) for seed in TRAIN_SEEDS], short_m=900.0)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_three_hundred_tracks_are_a_wide_spread():
    assert_spread([generate(seed) for seed in range(300)])


def read_shipped(seed):
    rows = np.loadtxt(DATA / "generated" / f"{seed:05d}.csv", delimiter=",")
    return Centreline(*rows.T)


def test_the_shipped_sets_are_what_the_generator_makes(tmp_path):
    seeds = (*TRAIN_SEEDS, *TEST_SEEDS)
    assert seeds == (*range(100), *range(10_000, 10_025))
    assert {path.name for path in (DATA / "generated").iterdir()} == {f"{seed:05d}.csv" for seed in seeds}
    for seed in seeds:
        write_centreline(tmp_path / "track.csv", generate(seed))
        shipped = (DATA / "generated" / f"{seed:05d}.csv").read_bytes()
        assert shipped == (tmp_path / "track.csv").read_bytes(), f"seed {seed}"


def test_generated_tracks_have_the_same_digits_on_every_machine():
    assert digest(generate(seed) for seed in GOLDEN_SEEDS) == GOLDEN_SHA256


def test_a_negative_seed_is_refused_and_generation_gives_up_after_twenty_attempts(monkeypatch):
    with pytest.raises(TrackError, match="seed is -1"):
        generate(-1)
    tried = []
    monkeypatch.setattr(generator, "Random", lambda *seed: seed)
    monkeypatch.setattr(generator, "_attempt", lambda seed: tried.append(seed))
    with pytest.raises(TrackError, match="no valid track for seed 3 in 20 attempts"):
        generate(3)
    assert tried == [(3, attempt) for attempt in range(MAX_ATTEMPTS)]


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_the_built_in_tracks_are_valid(track_id):
    track = read_centreline(DATA / f"{track_id}.csv")
    assert faults(track) == []
    assert has_chicane(track)


def test_the_built_in_tracks_have_their_characters():
    track = read_centreline(DATA / "track-01.csv")
    assert has_hairpin(track)
    assert any(abs(turn) > 90.0 and 65.0 < radius < 110.0 for turn, radius, _, _ in corners(track))
    assert longest_straight_m(track) >= 200.0
    assert next(first for _, _, first, _ in corners(track)) > 120.0
    turns = [turn for turn, *_ in corners(read_centreline(DATA / "track-03.csv"))]
    assert len(turns) >= 12
    assert sum(a * b < 0.0 for a, b in pairwise(turns)) >= 7  # both ways

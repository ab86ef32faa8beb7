"""The stream of generated roads: a function of seed and number, apart from the roads of evaluations."""

import itertools

import pytest

from hotlap.errors import TrackError
from hotlap.sim.guide_line import add_guides
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.registry import (
    EVALUATION_SEEDS,
    MAX_ATTEMPTS,
    START_GRIP_FRACTION,
    evaluation_ids,
    list_tracks,
    load_track,
)
from hotlap.tracks.road_stream import MAX_ROAD_NODES, circuit_seeds, make_road

LAST_RUN_SEED = 2**32 - 1


def bits(ribbons):
    return [part.tobytes() for part in ribbons]


def of_seed(seed):
    """The circuit of a seed, packed here."""
    nodes = build_nodes(generate_circuit(seed))
    start_speed_mps = speed_profile(nodes.curvature_radpm, nodes.step_m, CarParameters(), START_GRIP_FRACTION)
    return add_guides(pack_ribbons([nodes], [start_speed_mps]), [nodes])


def test_no_two_roads_share_a_seed_and_none_has_that_of_an_evaluation():
    runs, numbers = (0, 1, 42, LAST_RUN_SEED), (0, 1, 2, 10**6, 10**9)
    seeds = [seed for run, number in itertools.product(runs, numbers) for seed in circuit_seeds(run, number)]
    assert len(set(seeds)) == len(runs) * len(numbers) * MAX_ATTEMPTS
    evaluated = range(len(EVALUATION_SEEDS) * MAX_ATTEMPTS)
    assert min(seeds) > max(evaluated)


def test_a_road_is_the_circuit_of_its_seed():
    assert bits(make_road(7, 3)) == bits(of_seed(circuit_seeds(7, 3)[0]))


def test_evaluation_roads_are_the_circuits_of_the_first_seeds_and_are_in_no_list():
    ids = evaluation_ids()
    assert (ids[0], ids[-1], len(ids)) == ("generated-000", "generated-049", 50)
    assert bits(load_track("generated-001").guided_ribbon) == bits(of_seed(1))
    assert not {entry.track_id for entry in list_tracks()} & set(ids)


def test_seeds_without_a_road_that_fits_are_passed_over(monkeypatch):
    long, short = sorted((load_track(name) for name in ("track-01", "track-02")), key=lambda one: -one.nodes.num_nodes)
    first, second, third, *_ = circuit_seeds(0, 0)
    found = {second: long.centreline, third: short.centreline}

    def generate(seed):
        if seed not in found:
            raise TrackError("none")
        return found[seed]

    monkeypatch.setattr("hotlap.tracks.generation.circuit_generator.generate_circuit", generate)
    monkeypatch.setattr("hotlap.tracks.road_stream.MAX_ROAD_NODES", short.nodes.num_nodes)
    assert bits(make_road(0, 0)) == bits(short.guided_ribbon)
    del found[third]
    with pytest.raises(
        TrackError, match=rf"^track generated: the seeds from {first} to \d+ give no circuit\. Use other"
    ):
        make_road(0, 0)


def test_the_longest_circuit_fits_into_a_slot():
    """Kinks make a line of 7 km longer: a wave of 60 m and 1.5 m on each side, by 0.6 %."""
    assert MAX_ROAD_NODES >= 1.01 * 7000

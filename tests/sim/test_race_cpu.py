"""Races on CPU threads: the same bits however they are computed."""

import numpy as np

from hotlap.sim.race import START_ROLLING
from sim.kernels import F
from sim.race_worlds import RaceWorld, assert_same_bits
from sim.worlds import nodes_of

COAST = [0.0, 0.0, 0.0]
OVAL = nodes_of("oval")


def test_threads_batches_and_neighbours_change_nothing():
    """24 races at once on two threads, and each of them alone."""
    nodes, rng = nodes_of("track-01"), np.random.default_rng(5)
    actions = rng.uniform([-0.3, 0.5, -2.0], [0.3, 1.0, 0.5], (150, 24, 5, 3)).astype(F)
    many = RaceWorld(nodes, 5, 24, start=START_ROLLING)
    few = [RaceWorld(nodes, 5, 1, start=START_ROLLING, seed=race) for race in range(24)]
    for tick in actions:
        many.step(tick.reshape(-1, 3), num_threads=2, autoreset=True, repeat=2)
        for race, world in enumerate(few):
            world.step(tick[race], autoreset=True, repeat=2)
    assert_same_bits(many.states, np.concatenate([world.states for world in few]))
    assert_same_bits(many.entrants, np.concatenate([world.entrants for world in few]))
    assert many.batch.obs.tobytes() == np.concatenate([world.batch.obs for world in few]).tobytes()
    assert (many.entrants["laps_done"] >= 0).any()

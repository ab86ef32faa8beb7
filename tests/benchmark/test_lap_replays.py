"""Recorded drives give the laps that the evaluation drives, to the bit, on any number of threads."""

import numpy as np

from benchmark.small_entries import FIRST_SEED, SEEDS
from hotlap.benchmark.actions import to_runs
from hotlap.benchmark.entry_file import open_entry
from hotlap.benchmark.lap_replays import replay_laps
from hotlap.evaluation.evaluate import evaluate
from hotlap.runs.find_driver import find_driver


def test_the_laps_are_those_of_the_evaluation_on_one_thread_and_on_three(protocol, entry):
    [starts] = protocol.tracks_of(protocol.parts)
    with open_entry(entry, protocol) as opened:
        drives = opened.drives_on("track-01")
    one, three = (replay_laps(starts, drives, num_threads) for num_threads in (1, 3))
    assert one.times_s.tobytes() == three.times_s.tobytes()
    # The evaluation has its laps in the order in which they ended.
    reference = evaluate(
        find_driver("champion", "track-01"), "track-01", episodes=len(SEEDS), start="random", seed=FIRST_SEED
    )
    assert sorted(one.times_s.tolist()) == sorted(reference.lap_times_s)
    assert one.is_clean.all()
    assert not one.ticks_left.any()


def test_a_car_that_stands_is_given_up_and_what_follows_is_left(protocol):
    [starts] = protocol.tracks_of(protocol.parts)
    braking = np.zeros((36_000, 3), np.float32)
    braking[:, 2] = 1.0
    found = replay_laps(starts, [to_runs(braking)] * len(starts.seeds))
    assert not found.is_completed.any()
    assert not found.is_clean.any()
    assert (found.ticks_left > 30_000).all()
    assert (found.num_ticks + found.ticks_left == 36_000).all()

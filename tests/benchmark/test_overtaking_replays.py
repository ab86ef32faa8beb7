"""Recorded drives of scenarios give what the overtaking benchmark counts."""

from hotlap.benchmark.entry_file import open_entry
from hotlap.benchmark.overtaking_replays import replay_overtaking
from hotlap.evaluation.overtaking import drive_scenarios
from hotlap.runs.find_driver import find_driver


def test_what_is_counted_is_what_the_overtaking_benchmark_counts(protocol, entry):
    with open_entry(entry, protocol) as opened:
        drives = opened.passings()
    found = replay_overtaking(protocol.scenarios, drives, num_threads=1)
    reference = drive_scenarios("champion", protocol.scenarios, find_driver)
    assert found.is_safe.tolist() == reference.is_safe.tolist()
    assert found.is_overtake.tolist() == reference.is_overtake.tolist()
    assert found.has_contact.tolist() == reference.has_contact.tolist()
    assert found.is_overtake.tolist() == [False, True]

"""Hostile entries of the benchmark: each is refused in one line, or drives what it claims."""

import random
import resource
import time
from collections import Counter

import pytest

from attacks.entry_mutations import KINDS, mutate
from benchmark.small_entries import members_of, small_protocol, write_small_entry
from hotlap.benchmark.verification import verify_entry
from hotlap.errors import HotlapError

MAX_S = 10.0  # the processor's time for one entry
MAX_MORE_BYTES = 512 << 20


@pytest.mark.parametrize(
    ("count", "num_scenarios"), [(20, 0), pytest.param(1200, 2, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_a_mutated_entry_is_refused_in_one_line_or_drives_what_it_claims(
    tmp_path, record_property, count, num_scenarios
):
    protocol = small_protocol(num_scenarios)
    entry = write_small_entry(tmp_path / "entry.zip", protocol)
    whole, members, target = entry.read_bytes(), members_of(entry), tmp_path / "mutated.zip"
    times_s = verify_entry(entry, protocol).laps["track-01"].times_s.tolist()
    rng, outcomes, lines, slowest_s = random.Random(7), Counter(), [], 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        kind, content = mutate(rng, whole, members)
        target.write_bytes(content)
        start = time.process_time()
        try:
            found = verify_entry(target, protocol)
            outcome = "accepted"
            if kind != "actions":  # other actions may truly drive the same laps
                assert found.laps["track-01"].times_s.tolist() == times_s, (number, kind)
        except HotlapError as error:
            outcome = "refused"
            lines.append(f"{number} {kind}: {error}")
        slowest_s = max(slowest_s, time.process_time() - start)
        outcomes[f"{kind} {outcome}"] += 1
    assert [line for line in lines if not line.isprintable() or len(line) > 700] == []
    more_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert slowest_s < MAX_S
    assert more_bytes < MAX_MORE_BYTES
    assert {name.split()[0] for name in outcomes} == set(KINDS) or count < 1200
    num_refused = sum(number for name, number in outcomes.items() if name.endswith("refused"))
    assert num_refused > 0.8 * count
    record_property("figure", f"{count} mutated entries: {num_refused} refused, {dict(sorted(outcomes.items()))}")

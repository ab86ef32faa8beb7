"""Measures how fast entries are verified: python benchmarks/benchmark_speed.py --json FILE.json.

An entry of 10,000 laps is written and verified: the generalist's from other starts on the tracks of the benchmark, each
of them ten times. So is a file of 10,000 laps of people, which repeats a shipped drive.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hotlap.atomic_files import writable
from hotlap.benchmark import people
from hotlap.benchmark.entry_file import write_entry
from hotlap.benchmark.lap_replays import replay_laps
from hotlap.benchmark.protocol import Protocol, TrackStarts, load_protocol
from hotlap.benchmark.recording import record_protocol
from hotlap.benchmark.replay_kernels import warm_up
from hotlap.benchmark.verification import verify_entry
from hotlap.errors import HotlapError
from hotlap.reports.formatting import whole
from hotlap.runs.find_driver import find_driver
from hotlap.sim.batch_cpu import default_threads
from hotlap.tracks.registry import load_track
from hotlap.web.replays import find_recorded
from results_file import write_results

NUM_LAPS, REPEATS = 10_000, 10
PEOPLE_TRACK = "track-01"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laps", type=int, metavar="N", default=NUM_LAPS, help=f"how many laps, default {NUM_LAPS}")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures")
    options = parser.parse_args(arguments)
    try:
        out = options.json and writable(options.json)
        warm_up()
        with TemporaryDirectory() as folder:
            figures = {
                "threads": default_threads(),
                "entry": time_entry(Path(folder) / "entry.zip", options.laps),
                "people": time_people(Path(folder) / "laps.json", options.laps),
            }
        if out is not None:
            write_results(out, figures)
    except HotlapError as error:
        print(f"benchmark_speed: {error}", file=sys.stderr)
        return 2
    print(describe(figures), end="")
    return 0


def other_starts(protocol: Protocol, num_laps: int) -> Protocol:
    """The laps of the protocol with other starts, as many as asked for, and without scenarios."""
    tracks = protocol.tracks_of(protocol.parts)
    counts = {one.track_id: num_laps // len(tracks) + (i < num_laps % len(tracks)) for i, one in enumerate(tracks)}
    laps = {
        part: tuple(TrackStarts(one.track_id, one.road, tuple(range(counts[one.track_id]))) for one in starts)
        for part, starts in protocol.laps.items()
    }
    return replace(protocol, laps=laps, scenarios=())


def repeated(protocol: Protocol) -> Protocol:
    """The same starts again and again."""
    laps = {
        part: tuple(replace(one, seeds=one.seeds * REPEATS) for one in starts) for part, starts in protocol.laps.items()
    }
    return replace(protocol, laps=laps)


def time_entry(path: Path, num_laps: int) -> dict[str, Any]:
    """Seconds for an entry of so many starts."""
    few = other_starts(load_protocol(), num_laps // REPEATS)
    recording = record_protocol(lambda track: find_driver("generalist", track), few, few.parts)
    recording = replace(recording, laps={track: list(drives) * REPEATS for track, drives in recording.laps.items()})
    protocol = repeated(few)
    tracks = protocol.tracks_of(protocol.parts)
    laps = {one.track_id: replay_laps(one, recording.laps[one.track_id]) for one in tracks}
    write_entry(path, "generalist", protocol, recording, laps, None)
    found, seconds = timed(lambda: verify_entry(path, protocol))
    ticks = sum(int(one.num_ticks.sum()) for one in found.laps.values())
    return {"laps": found.num_laps, "ticks": ticks, "bytes": path.stat().st_size, **seconds}


def time_people(path: Path, num_laps: int) -> dict[str, Any]:
    """Seconds for a file of replays of two laps each, all of them the casual driver's."""
    replay = find_recorded("casual", load_track(PEOPLE_TRACK))
    assert replay is not None
    text = replay.to_text()
    entries = [{"track": PEOPLE_TRACK, "driver": f"person {number}", "replay": text} for number in range(num_laps // 2)]
    path.write_text(json.dumps({"format": people.FORMAT, "entries": entries}), encoding="utf-8")
    protocol = load_protocol()
    found, seconds = timed(lambda: people.verify_people(path, protocol, lambda track: None))
    return {"laps": 2 * found.replays, "bytes": path.stat().st_size, **seconds}


def timed(work: Any) -> tuple[Any, dict[str, float]]:
    """What `work` returns, with its seconds, the processor's seconds, and how busy the machine was."""
    load = os.getloadavg()[0]
    start, start_cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - start_cpu,
        "load_before": load,
    }


def describe(found: Mapping[str, Any]) -> str:
    """What a result file says for the documentation."""
    entry, laps = found["entry"], found["people"]
    return (
        f"On {found['threads']} threads, {whole(entry['laps'])} laps of an entry were verified in "
        f"{entry['seconds']:.0f} s ({entry['cpu_seconds']:.1f} s of processor time), and {whole(laps['laps'])} laps of "
        f"people in {laps['seconds']:.0f} s ({laps['cpu_seconds']:.1f} s), on a machine with a load of "
        f"{entry['load_before']:.0f}.\n"
    )


if __name__ == "__main__":
    sys.exit(main())

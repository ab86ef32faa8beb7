"""Generate what a generalist is trained on beside the split `train`: short tracks `gen-…` and circuits `circ-…`.

usage: python tools/generate_training_tracks.py [--short 600] [--circuits 900]

They go to your own tracks (`HOTLAP_HOME`), where the recipe's patterns find them. Their seeds, from 20000 and from
40000, are others than those of the splits. A track that exists is written again with the same content.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from hotlap.errors import HotlapError
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.registry import save_track, user_folder

FIRST_SHORT, FIRST_CIRCUIT = 20_000, 40_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tracks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", type=int, default=600, help="number of short tracks, up to 4 km")
    parser.add_argument("--circuits", type=int, default=900, help="number of circuits, up to 7 km")
    options = parser.parse_args(arguments)
    if min(options.short, options.circuits) < 0:
        parser.error(f"numbers of tracks must be 0 or more, got {min(options.short, options.circuits)}")
    try:
        save_all("gen", generate, range(FIRST_SHORT, FIRST_SHORT + options.short))
        save_all("circ", generate_circuit, range(FIRST_CIRCUIT, FIRST_CIRCUIT + options.circuits))
    except HotlapError as error:
        print(f"generate_training_tracks: {error}", file=sys.stderr)
        return 2
    print(f"{options.short} short tracks and {options.circuits} circuits are in {user_folder()}")
    return 0


def save_all(prefix: str, make: Callable[[int], Centreline], seeds: range) -> None:
    """Save the track of every seed."""
    for seed in seeds:
        save_track(f"{prefix}-{seed}", make(seed), f"generated from seed {seed}")


if __name__ == "__main__":
    sys.exit(main())

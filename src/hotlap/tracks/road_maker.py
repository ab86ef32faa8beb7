"""A process that makes roads of a stream: reads numbers from stdin and writes roads to stdout.

`python -m hotlap.tracks.road_maker RUN_SEED`. It ends when stdin closes, whatever it does at that time: when the
training is killed, so are its workers.
"""

import os
import queue
import struct
import sys
import threading
from contextlib import suppress
from typing import BinaryIO

from hotlap.errors import HotlapError
from hotlap.sim.ribbon import Ribbons
from hotlap.tracks.road_stream import make_road

# Number of the road, its nodes and its portals; without nodes the rest is an error message of so many bytes.
HEADER = struct.Struct("<qii")
NICENESS = 10  # training comes first
PARENT_ENDED = 0


def write_road(file: BinaryIO, number: int, road: Ribbons) -> None:
    """One road as bytes."""
    file.write(HEADER.pack(number, len(road.nodes), len(road.portals)))
    for part in road:
        file.write(part.tobytes())
    file.flush()


def write_problem(file: BinaryIO, number: int, text: str) -> None:
    """The reason why there is no such road."""
    content = " ".join(text.split()).encode()
    file.write(HEADER.pack(number, 0, len(content)) + content)
    file.flush()


def _read_numbers(numbers: "queue.SimpleQueue[int]") -> None:
    for line in sys.stdin.buffer:
        numbers.put(int(line))
    # Not sys.exit: the main thread may be in a long call.
    os._exit(PARENT_ENDED)


def main() -> None:
    """Make roads until stdin closes."""
    run_seed = int(sys.argv[1])
    # Roads get a descriptor of their own: what a library prints goes to stderr.
    roads = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICENESS)
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    threading.Thread(target=_read_numbers, args=(numbers,), name="numbers", daemon=True).start()
    with suppress(BrokenPipeError):  # the training was killed
        while True:
            _make(roads, run_seed, numbers.get())
    os._exit(PARENT_ENDED)


def _make(roads: BinaryIO, run_seed: int, number: int) -> None:
    """Make a road and write it, or why there is none."""
    try:
        road = make_road(run_seed, number)
    except HotlapError as error:
        write_problem(roads, number, str(error))
    else:
        write_road(roads, number, road)


if __name__ == "__main__":
    main()

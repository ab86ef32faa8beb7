"""A process that makes roads: what it writes, and that it ends with its training."""

import io
import subprocess
import sys

import numpy as np

from forked_python import Popen
from hotlap.sim.ribbon import Ribbons
from hotlap.tracks.road_maker import HEADER, write_problem, write_road
from hotlap.tracks.road_stream import make_road


def test_a_road_and_a_problem_are_written_with_their_sizes():
    road, file = make_road(7, 3), io.BytesIO()
    write_road(file, 3, road)
    write_problem(file, 4, "no\n  road é")
    file.seek(0)
    assert HEADER.unpack(file.read(HEADER.size)) == (3, len(road.nodes), len(road.portals))
    for part in road:
        assert file.read(part.nbytes) == part.tobytes()
    number, num_nodes, num_bytes = HEADER.unpack(file.read(HEADER.size))
    assert (number, num_nodes, file.read().decode()) == (4, 0, "no road é")
    assert num_bytes == len("no road é".encode())


def test_the_process_writes_the_roads_of_its_seed_and_ends_when_its_input_does():
    command = [sys.executable, "-m", "hotlap.tracks.road_maker", "7"]
    with Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"3\n")
        process.stdin.flush()
        expected = make_road(7, 3)
        assert HEADER.unpack(process.stdout.read(HEADER.size)) == (3, len(expected.nodes), len(expected.portals))
        found = Ribbons(*(np.frombuffer(process.stdout.read(part.nbytes), part.dtype) for part in expected))
        process.stdin.close()
        assert process.wait(30) == 0
    for mine, other in zip(found, expected, strict=True):
        assert mine.tobytes() == other.tobytes()

"""The processes that make roads: their bits, and their end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotlap.errors import RoadStreamError
from hotlap.tracks.road_stream import make_road
from hotlap.tracks.road_workers import RoadWorkers

pytestmark = pytest.mark.timeout(60)  # a process that imports numba takes long on a busy machine


def is_running(process_id):
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for_end(process_id):
    for _ in range(200):
        if not is_running(process_id):
            return True
        time.sleep(0.05)
    return False


def test_roads_are_those_of_the_stream_in_any_order_and_a_killed_process_is_one_clear_line():
    roads = RoadWorkers(run_seed=5, num_workers=1)
    try:
        [process_id] = roads.process_ids
        roads.ask([0, 1])
        roads.ask([1, 2])
        for number in (2, 0, 1):
            assert [part.tobytes() for part in roads.take(number)] == [part.tobytes() for part in make_road(5, number)]
        os.kill(process_id, signal.SIGKILL)
        roads.ask([3])
        with pytest.raises(
            RoadStreamError, match=rf"^the process {process_id} that makes roads was killed by signal 9$"
        ):
            roads.take(3)
    finally:
        roads.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_the_processes_end_with_a_parent_that_is_killed():
    code = (
        "import time; from hotlap.tracks.road_workers import RoadWorkers; roads = RoadWorkers(0, 1)\n"
        "print(roads.process_ids[0], flush=True); roads.ask(range(100)); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        assert is_running(worker)
        parent.kill()
    assert wait_for_end(worker)

"""One of several processes that exchange known values; an assertion that fails is its exit code.

They do it three times: by `memory`, as if one had `no-memory` to share, and as if each were on another `machine`; the
last two by gloo. Its arguments are a port for each.
"""

import os
import random
import sys
import time

import torch

from hotlap.learning.distributed import peer_exchange
from hotlap.learning.distributed.processes import join_processes


def have_no_memory(*_: object) -> None:
    raise OSError("No space left on device")


def exchange(way: str, port: str) -> None:
    os.environ["MASTER_PORT"] = port
    if way == "machine":
        os.environ["LOCAL_WORLD_SIZE"] = "1"
    reserve = peer_exchange._reserve
    if way == "no-memory" and os.environ["RANK"] == "1":
        peer_exchange._reserve = have_no_memory  # one process without is enough
    processes = join_processes()
    peer_exchange._reserve = reserve
    rank, size = processes.rank, processes.size
    assert (processes._peers is not None) == (way == "memory")
    own = torch.tensor([float(rank), 10.0 + rank])
    assert processes.gather(own).tolist() == [[float(each), 10.0 + each] for each in range(size)]

    # In float32 the order of these sums matters: in the order of ranks, the 1 is lost.
    values = torch.tensor([1.0, 1e8, -1e8][rank : rank + 1])
    processes.average(values)
    assert values.item() == 0.0

    # Larger than the slots of the memory: in several chunks, the last of them short.
    large = torch.full(((1 << 20) + 5,), float(rank))
    assert [part.unique().tolist() for part in processes.gather(large)] == [[float(each)] for each in range(size)]

    # Whoever is early must not overwrite what another has not read yet.
    pauses = random.Random(rank)
    for turn in range(200):
        time.sleep(pauses.choice((0.0, 0.0, 0.001)))
        found = processes.gather(torch.full((1000,), 1000 * turn + rank))
        assert [part.unique().tolist() for part in found] == [[1000 * turn + each] for each in range(size)]

    begun = processes.begin_gather(torch.tensor(rank))
    assert processes.gather_bytes(b"x" * rank) == [b"x" * each for each in range(size)]
    assert begun().tolist() == list(range(size))
    assert processes.any(rank == size - 1)
    assert not processes.any(False)
    assert processes.from_leader(lambda: [rank, "leader", None]) == [0, "leader", None]
    print(way, int(processes.may_report(ValueError())))
    processes.wait()
    processes.leave()


if __name__ == "__main__":
    for way, port in zip(("memory", "no-memory", "machine"), sys.argv[1:], strict=True):
        exchange(way, port)

"""One of several processes that exchange known values; an assertion that fails is its exit code."""

import torch

from hotlap.training.processes import join_processes


def main() -> None:
    processes = join_processes()
    rank, size = processes.rank, processes.size
    own = torch.tensor([float(rank), 10.0 + rank])
    assert processes.gather(own).tolist() == [[float(each), 10.0 + each] for each in range(size)]

    # In float32 the order of these sums matters: in the order of ranks, the 1 is lost.
    values = torch.tensor([1.0, 1e8, -1e8][rank : rank + 1])
    processes.average(values)
    assert values.item() == 0.0

    # Larger than the buffers of the sockets.
    large = torch.full((1 << 20,), float(rank))
    assert [part.unique().tolist() for part in processes.gather(large)] == [[float(each)] for each in range(size)]

    begun = processes.begin_gather(torch.tensor(rank))
    assert processes.gather_bytes(b"x" * rank) == [b"x" * each for each in range(size)]
    assert begun().tolist() == list(range(size))
    assert processes.any(rank == size - 1)
    assert not processes.any(False)
    assert processes.from_leader(lambda: [rank, "leader", None]) == [0, "leader", None]
    print(int(processes.may_report(ValueError())))
    processes.wait()
    processes.leave()


if __name__ == "__main__":
    main()

from pathlib import Path

import pytest
import torch

from hotlap.errors import ConfigError
from hotlap.learning.distributed.processes import ALONE, Place, Processes, join_processes
from process_pairs import free_port, run_pair

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


def test_the_place_is_read_from_the_variables_of_torchrun():
    assert Place.of(TORCHRUN) == Place(rank=1, size=4, local_rank=1, local_size=2)


@pytest.mark.parametrize("variables", [{}, {"RANK": "3"}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_without_them_a_process_is_alone(variables):
    assert join_processes(variables) is ALONE
    assert ALONE.is_alone
    assert ALONE.is_leader


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": "4"}, "RANK 4 does not fit WORLD_SIZE 4"),
        ({"RANK": "-1"}, "RANK must be a whole number from 0, got '-1'"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE must be a whole number from 0, got 'two'"),
        ({"LOCAL_WORLD_SIZE": "0"}, "does not fit"),
    ],
)
def test_bad_variables_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Place.of({**TORCHRUN, **change})


def test_a_process_that_is_alone_exchanges_with_nobody():
    tensor = torch.tensor([1.0, 2.0])
    ALONE.average(tensor)
    assert tensor.tolist() == [1.0, 2.0]
    assert ALONE.gather(tensor).tolist() == [[1.0, 2.0]]
    assert ALONE.gather_bytes(b"a") == [b"a"]
    assert ALONE.from_leader(lambda: "result") == "result"
    assert [ALONE.any(flag) for flag in (True, False)] == [True, False]
    assert ALONE.may_report(ValueError())
    ALONE.leave()


def test_shares_are_equal_or_refused():
    three = Processes(Place(rank=2, size=3))
    assert three.share(12, "num_envs") == 4
    with pytest.raises(ConfigError, match="num_envs must be a multiple of the number of processes, 3, got 16"):
        three.share(16, "num_envs")


def test_the_cores_of_a_machine_are_divided_over_its_processes():
    assert [Processes(Place(0, 8, 0, local)).num_threads(4) for local in (1, 2, 3, 8)] == [4, 2, 1, 1]


def test_a_resumed_run_needs_as_many_processes():
    assert ALONE.resume_command == "hotlap resume"
    assert Processes(Place(0, 4)).resume_command == "torchrun --nproc-per-node 4 -m hotlap resume"


@pytest.mark.timeout(120)
def test_processes_exchange_tensors_and_bytes_in_the_order_of_ranks():
    """On one machine, with and without shared memory; by gloo where each says that it has a machine of its own."""
    program = Path(__file__).with_name("exchanging_process.py")
    ends = run_pair([program, *(free_port() for _ in range(3))], size=3)
    assert [code for code, _, _ in ends] == [0, 0, 0], ends
    printed = [out.splitlines() for _, out, _ in ends]
    for way, reports in zip(("memory", "no-memory", "machine"), zip(*printed, strict=True), strict=True):
        assert sorted(reports) == [f"{way} 0", f"{way} 0", f"{way} 1"]  # one of them reports

"""The processes that train one run together: which of them this is, and what they tell each other.

`torchrun` starts them and sets the environment variables read here. They join by gloo. Tensors in main memory travel by
shared memory on one machine, and by gloo between machines or without such memory; those on GPUs by NCCL. Sums over
processes are taken in the order of ranks, so every process has the same bits, and so has every run.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hotlap.errors import ConfigError, ProcessLostError, TrainingError, one_line
from hotlap.learning.distributed.peer_exchange import PeerExchange, connect_peers
from hotlap.learning.distributed.process_watch import ProcessWatch

if TYPE_CHECKING:  # slow to import, and commands that find nothing to do need only `ALONE`
    from torch import Tensor

T = TypeVar("T")

REPORT_WAIT = timedelta(seconds=10.0)  # for another process to say why the run ended
ASK_WAIT_S = 5.0  # for the other processes to come to the same end
END_WAIT_S = 15.0  # for a process to end that has an error to report
_REPORT_KEY = "hotlap/report"
_GPUS = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Place:
    """Where a process stands among those that `torchrun` started."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # on this machine
    local_size: int = 1

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Place":
        """The place in the environment variables of `torchrun`; without them this process is alone."""
        if not {"RANK", "WORLD_SIZE"} <= set(variables):
            return cls()
        names = {"rank": "RANK", "size": "WORLD_SIZE", "local_rank": "LOCAL_RANK", "local_size": "LOCAL_WORLD_SIZE"}
        found: dict[str, int] = {}
        for field, name in names.items():
            text = variables.get(name, str(getattr(cls, field)))
            if not text.isdecimal():
                raise ConfigError(f"{name} must be a whole number from 0, got {text!r:.40}. Start with torchrun.")
            found[field] = int(text)
        place = cls(**found)
        if not 0 <= place.rank < place.size or place.local_size < 1:
            raise ConfigError(f"RANK {place.rank} does not fit WORLD_SIZE {place.size}. Start with torchrun.")
        return place


class Processes:
    """The processes of one run, as one of them sees them. Where it is alone, every call returns at once.

    All of them must make the same calls in the same order. One that has died makes the calls of the others raise
    ProcessLostError.
    """

    def __init__(self, place: Place | None = None, store: Any = None, peers: PeerExchange | None = None) -> None:
        place = place or Place()
        self.rank, self.size, self._local_size = place.rank, place.size, place.local_size
        self._store, self._peers = store, peers
        # A connection of its own for what must be said at the end: another thread may wait for an answer on the first.
        self._reports: Any = store.clone() if store is not None else None
        self._finish_pending: Callable[[], None] = _nothing
        self._gpu_group: Any = None
        self._watch: ProcessWatch | None = None
        self._ends_by_error = False
        # What to raise when another process is gone, and what to do where this one waits for a GPU that will never
        # answer; called in another thread, and it should end the process.
        self.explain_loss: Callable[[str], ProcessLostError] = ProcessLostError
        self.on_stuck: Callable[[ProcessLostError], object] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether there are no other processes."""
        return self.size == 1

    @property
    def is_leader(self) -> bool:
        """Whether this process writes the files, evaluates and prints."""
        return self.rank == 0

    @property
    def resume_command(self) -> str:
        """What a user types to resume with as many processes; the run's folder follows."""
        return "hotlap resume" if self.is_alone else f"torchrun --nproc-per-node {self.size} -m hotlap resume"

    def num_threads(self, num_cores: int) -> int:
        """How many of a machine's cores are for this process."""
        return max(1, num_cores // self._local_size)

    def share(self, number: int, name: str) -> int:
        """The part of each process; ConfigError where the processes cannot have equal parts."""
        if number % self.size:
            raise ConfigError(f"{name} must be a multiple of the number of processes, {self.size}, got {number}.")
        return number // self.size

    def use_gpu(self) -> None:
        """Prepare to exchange tensors on GPUs."""
        if not self.is_alone and self._gpu_group is None:
            import torch.distributed as dist

            self._gpu_group = dist.new_group(backend="nccl")
            with _lost_processes():
                self.watch()

    @property
    def uses_gpu(self) -> bool:
        """Whether the processes exchange tensors on GPUs; one of them that waits for a lost one cannot end in order."""
        return self._gpu_group is not None

    def watch(self) -> None:
        """Watch in a thread for the others to be gone; see `on_stuck`."""
        self._watch = ProcessWatch(self._store, self.rank, self.size, self._end_if_stuck)

    def _end_if_stuck(self) -> None:
        cause = "another process of this run has ended"
        if self._ends_by_error:  # its own thread is about to say more; this one sees to it that the process ends
            time.sleep(END_WAIT_S)
        try:
            error = self.explain_loss(cause)
        except Exception:  # the process must end, whatever has become of its folder
            error = ProcessLostError(cause)
        if self.on_stuck is not None:
            self.on_stuck(error)

    # --- tensors ---

    def gather(self, tensor: "Tensor") -> "Tensor":
        """The tensor of every process, (size, …), in the order of ranks."""
        return self.begin_gather(tensor)()

    def begin_gather(self, tensor: "Tensor") -> "Callable[[], Tensor]":
        """Begin a `gather`; the result waits for its end. The tensor must not change meanwhile."""
        if self.is_alone:
            return lambda: tensor[None]
        found = tensor.new_empty(self.size, *tensor.shape)
        with _lost_processes():
            self._finish_pending()  # messages arrive in the order in which they were sent
            finish = self._exchange(tensor.contiguous(), list(found.unbind(0)))

        def finish_once() -> None:
            if self._finish_pending is finish_once:
                self._finish_pending = _nothing
                finish()

        def wait() -> "Tensor":
            with _lost_processes():
                finish_once()
            return found

        self._finish_pending = finish_once
        return wait

    def _exchange(self, own: "Tensor", parts: "list[Tensor]") -> Callable[[], None]:
        import torch.distributed as dist

        if own.device.type == "cuda":
            dist.all_gather(parts, own, group=self._gpu_group)
            return _nothing
        parts[self.rank].copy_(own)
        if self._peers is not None:
            return self._peers.begin_exchange(_bytes_of(own), [_bytes_of(part) for part in parts])
        # Not gloo's `all_gather`, which is three times as slow for the small tensors of a step.
        others = [rank for rank in range(self.size) if rank != self.rank]
        sent = [dist.isend(own, rank) for rank in others]
        works = [*(dist.irecv(parts[rank], rank) for rank in others), *sent]

        def finish() -> None:
            for work in works:
                work.wait()  # type: ignore[union-attr]

        return finish

    def average(self, tensor: "Tensor") -> None:
        """Replace a tensor by its mean over the processes."""
        if self.is_alone:
            return
        first, *others = self.gather(tensor)
        for other in others:
            first.add_(other)
        tensor.copy_(first.div_(self.size))

    # --- plain data ---

    def gather_bytes(self, own: bytes) -> list[bytes]:
        """The bytes of every process, in the order of ranks."""
        if self.is_alone:
            return [own]
        import torch

        sizes = [int(size) for size in self.gather(torch.tensor(len(own)))]
        padded = torch.zeros(max(1, *sizes), dtype=torch.uint8)
        if own:
            padded[: len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        return [part[:size].numpy().tobytes() for part, size in zip(self.gather(padded), sizes, strict=True)]

    def from_leader(self, make: Callable[[], T]) -> T:
        """What `make` returns in the leader, which alone calls it: plain data that JSON can hold."""
        if self.is_alone:
            return make()
        own = msgspec.msgpack.encode(make()) if self.is_leader else b""
        found: T = msgspec.msgpack.decode(self.gather_bytes(own)[0])
        return found

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return bytes([1]) in self.gather_bytes(bytes([flag]))

    def wait(self) -> None:
        """Wait for the others."""
        self.any(False)

    # --- the end ---

    def may_report(self, error: Exception) -> bool:
        """Whether this process is the one that says why the run ends: one line, however many processes end with it.

        A process that fails says so before the others can notice; of those that only notice, the leader comes first.
        """
        if self.is_alone:
            return True
        if self._ends_by_error:  # it has asked before
            return False
        self._ends_by_error = True
        with suppress(RuntimeError):  # a store that died with its process
            if isinstance(error, ProcessLostError) and not self.is_leader:
                with suppress(RuntimeError):  # nobody said anything
                    self._reports.wait([_REPORT_KEY], REPORT_WAIT)
            return bool(self._reports.add(_REPORT_KEY, 1) == 1)
        return True

    def leave(self, *, in_order: bool = True) -> None:
        """Close the connections; nothing may follow. `in_order`: unless an error ends this process alone."""
        if not self.is_alone:
            import torch.distributed as dist

            if self._watch is not None:
                self._watch.stop(in_order=in_order)
            if self._peers is not None:
                self._peers.close()
            self.let_others_ask()
            with suppress(RuntimeError):
                dist.destroy_process_group()

    def let_others_ask(self) -> None:
        """After an error, wait for the others to ask whether they may report, too: the store ends with the leader."""
        until_s = time.monotonic() + ASK_WAIT_S
        with suppress(RuntimeError):
            while self.is_leader and self._ends_by_error and time.monotonic() < until_s:
                if self._reports.add(_REPORT_KEY, 0) >= self.size:
                    break
                time.sleep(0.05)


def _nothing() -> None:
    """Nothing to wait for."""


def _bytes_of(tensor: "Tensor") -> memoryview:
    array: Any = tensor.reshape(-1).numpy()
    return memoryview(array).cast("B")


@contextmanager
def _lost_processes() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError) as error:
        raise ProcessLostError(f"another process of this run has ended ({one_line(error)})") from None


ALONE = Processes()


def join_processes(variables: Mapping[str, str] | None = None) -> Processes:
    """Connect to the other processes of this run, if `torchrun` started any. Call it before a GPU is used."""
    place = Place.of(os.environ if variables is None else variables)
    if place.size == 1:
        return ALONE
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    _choose_gpu(place.local_rank)
    try:
        store, rank, size = next(rendezvous("env://", place.rank, place.size))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
        is_one_machine = place.local_size == size and hasattr(socket, "AF_UNIX")
        peers = connect_peers(rank, size, store) if is_one_machine else None
    except (RuntimeError, ValueError, OSError) as error:
        raise TrainingError(f"process {place.rank} cannot reach the others: {one_line(error)}.") from None
    return Processes(place, store, peers)


def _choose_gpu(local_rank: int) -> None:
    """Let this process see only its own GPU; for torch and for the simulator that is then the first one."""
    visible = os.environ.get(_GPUS)
    gpus = visible.split(",") if visible else None
    if gpus is None or local_rank < len(gpus):
        os.environ[_GPUS] = gpus[local_rank] if gpus else str(local_rank)

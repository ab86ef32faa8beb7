"""How the processes of a run on one machine exchange the small tensors of every step: shared memory and sockets.

Gloo serves its sockets in threads of its own, which spin and wait for a core where the trainings keep all cores busy:
an exchange of 50 KB then takes milliseconds. Here a process writes its part to memory that all share and sends the
others a byte, and the process that waits reads its sockets itself. It asks again and again before it sleeps: to wake up
from a sleep takes longer than most waits last, on a virtual machine above all.
"""

import mmap
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 16  # sent before anything is read, so it must fit into a socket's buffer
CONNECT_TIMEOUT_S = 300.0
AWAKE_S = 0.005  # a process that waits longer than this sleeps
# Parts of at most this size go through shared memory. Two slots are enough: whoever has heard of the others' next
# exchange knows that they have read the last one.
SLOT_BYTES = 1 << 20
NUM_SLOTS = 2
_FOLDER_KEY = "hotlap/sockets"
_READY = b"\x01"


class PeerExchange:
    """A connection to each of the other processes. Messages arrive in the order in which they are sent."""

    def __init__(self, rank: int, size: int, store: Any) -> None:
        """Connect; `store` is torch's, which all processes share."""
        self._rank, self._ranks = rank, [other for other in range(size) if other != rank]
        self._num_shared = 0
        # Only this user can reach sockets and files in such a folder.
        own = Path(tempfile.mkdtemp(prefix="hotlap-", dir=_memory_folder())) if rank == 0 else None
        if own is not None:
            store.set(_FOLDER_KEY, str(own))
        folder = own or Path(store.get(_FOLDER_KEY).decode())
        try:
            self._sockets = self._connect(rank, size, folder, store)
            self._memories = _map_memories(rank, size, folder, store)
            store.set(f"{_FOLDER_KEY}/{rank}/connected", b"")
            for other in range(size if rank == 0 else 0):  # the folder must stay until then
                store.get(f"{_FOLDER_KEY}/{other}/connected")
        finally:
            if own is not None:
                shutil.rmtree(own, ignore_errors=True)

    def _connect(self, rank: int, size: int, folder: Path, store: Any) -> dict[int, socket.socket]:
        """Connect to the lower ranks and accept the higher ones; all are connected when this returns."""
        found: dict[int, socket.socket] = {}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(CONNECT_TIMEOUT_S)
            listener.bind(str(folder / str(rank)))
            listener.listen(size)
            store.set(f"{_FOLDER_KEY}/{rank}", b"listens")
            for other in range(rank):
                store.get(f"{_FOLDER_KEY}/{other}")
                found[other] = socket.socket(socket.AF_UNIX)
                found[other].connect(str(folder / str(other)))
                found[other].sendall(rank.to_bytes(4, "little"))
            for _ in range(rank + 1, size):
                accepted, _ = listener.accept()
                accepted.settimeout(None)
                found[int.from_bytes(_receive(accepted, bytearray(4)), "little")] = accepted
        return found

    @property
    def shares_memory(self) -> bool:
        """Whether small parts go through shared memory."""
        return bool(self._memories)

    def begin_exchange(self, own: memoryview, parts: Sequence[memoryview]) -> Callable[[], None]:
        """Give `own` to all others; the result waits until `parts`, by rank and of the same size, have arrived."""
        if self._memories and len(own) <= SLOT_BYTES:
            return self._begin_shared(own, parts)
        begins = range(0, len(own), CHUNK_BYTES)

        def send(begin: int) -> None:
            for rank in self._ranks:
                self._sockets[rank].sendall(own[begin : begin + CHUNK_BYTES])

        def finish() -> None:
            for begin in begins:
                if begin:
                    send(begin)
                for rank in self._ranks:
                    _receive(self._sockets[rank], parts[rank][begin : begin + CHUNK_BYTES])

        send(0)
        return finish

    def _begin_shared(self, own: memoryview, parts: Sequence[memoryview]) -> Callable[[], None]:
        begin = SLOT_BYTES * (self._num_shared % NUM_SLOTS)
        end = begin + len(own)
        self._num_shared += 1
        self._memories[self._rank][begin:end] = own
        for rank in self._ranks:
            self._sockets[rank].sendall(_READY)

        def finish() -> None:
            for rank in self._ranks:
                _receive(self._sockets[rank], bytearray(len(_READY)))
                parts[rank][:] = self._memories[rank][begin:end]

        return finish

    def close(self) -> None:
        """Close the connections."""
        for each in self._sockets.values():
            each.close()


def _memory_folder() -> str | None:
    """Where files are in memory; None: wherever temporary files are."""
    folder = "/dev/shm"  # noqa: S108 (a folder of our own is made there)
    return folder if os.access(folder, os.W_OK) else None


def _map_memories(rank: int, size: int, folder: Path, store: Any) -> list[memoryview]:
    """The slots of every process, in the order of ranks; none where a process could not get any."""
    num_bytes = SLOT_BYTES * NUM_SLOTS
    own = folder / f"{rank}.slots"
    try:
        with own.open("wb") as file:
            _reserve(file.fileno(), num_bytes)
        has_memory = b"1"
    except OSError:  # a container with little shared memory
        has_memory = b"0"
    store.set(f"{_FOLDER_KEY}/{rank}/memory", has_memory)
    if any(store.get(f"{_FOLDER_KEY}/{other}/memory") != b"1" for other in range(size)):
        return []
    found = []
    for other in range(size):
        with (folder / f"{other}.slots").open("r+b") as file:
            found.append(memoryview(mmap.mmap(file.fileno(), num_bytes)))
    return found


def _reserve(descriptor: int, num_bytes: int) -> None:
    """Make a file so long, with its space reserved: a mapped page without space would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, num_bytes)
    else:
        os.write(descriptor, bytes(num_bytes))


def _receive(source: socket.socket, into: Any) -> Any:
    """Fill a buffer; ConnectionError where the other process has gone."""
    view, begin = memoryview(into), 0
    sleeps_at_s = time.monotonic() + AWAKE_S
    while begin < len(view):
        flags = socket.MSG_DONTWAIT if time.monotonic() < sleeps_at_s else 0
        try:
            num_bytes = source.recv_into(view[begin:], 0, flags)
        except BlockingIOError:
            os.sched_yield()  # there may be fewer cores than processes
            continue
        if not num_bytes:
            raise ConnectionResetError("connection closed by peer")
        begin += num_bytes
    return into

"""How the processes of a run on one machine exchange the tensors of every step: shared memory and sockets.

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

CONNECT_TIMEOUT_S = 300.0
AWAKE_S = 0.005  # a process that waits longer than this sleeps
# A part larger than a slot goes through in chunks. Two slots are enough: whoever has heard of the others' next chunk
# knows that they have read the last one.
SLOT_BYTES = 1 << 20
NUM_SLOTS = 2
_FOLDER_KEY = "hotlap/sockets"
_READY = b"\x01"


class PeerExchange:
    """Memory that all processes share, and a connection to each of the others. One exchange ends before the next."""

    def __init__(self, rank: int, sockets: Mapping[int, socket.socket], memories: Sequence[memoryview]) -> None:
        """`memories` are the slots of every process, in the order of ranks."""
        self._rank, self._sockets, self._memories = rank, sockets, memories
        self._num_chunks = 0

    def begin_exchange(self, own: memoryview, parts: Sequence[memoryview]) -> Callable[[], None]:
        """Give `own` to all others; the result waits until `parts`, by rank and of the same size, have arrived."""
        first, num_chunks = self._num_chunks, max(1, -(-len(own) // SLOT_BYTES))
        self._num_chunks += num_chunks

        def places(chunk: int) -> tuple[slice, slice]:
            """Where a chunk is in the whole part, and in its slot."""
            begin, slot = SLOT_BYTES * chunk, SLOT_BYTES * ((first + chunk) % NUM_SLOTS)
            return slice(begin, begin + SLOT_BYTES), slice(slot, slot + min(SLOT_BYTES, len(own) - begin))

        def send(chunk: int) -> None:
            here, slot = places(chunk)
            self._memories[self._rank][slot] = own[here]
            for connection in self._sockets.values():
                connection.sendall(_READY)

        def finish() -> None:
            for chunk in range(num_chunks):
                if chunk:
                    send(chunk)
                here, slot = places(chunk)
                for rank, connection in self._sockets.items():
                    _receive(connection, bytearray(len(_READY)))
                    parts[rank][here] = self._memories[rank][slot]

        send(0)
        return finish

    def close(self) -> None:
        """Close the connections."""
        for connection in self._sockets.values():
            connection.close()


def connect_peers(rank: int, size: int, store: Any) -> PeerExchange | None:
    """Connect all processes by `store`, torch's, which they share; None where one of them cannot get memory."""
    # Only this user can reach sockets and files in such a folder.
    own = Path(tempfile.mkdtemp(prefix="hotlap-", dir=_memory_folder())) if rank == 0 else None
    if own is not None:
        store.set(_FOLDER_KEY, str(own))
    folder = own or Path(store.get(_FOLDER_KEY).decode())
    try:
        memories = _map_memories(rank, size, folder, store)
        sockets = _connect(rank, size, folder, store) if memories else {}
        store.set(f"{_FOLDER_KEY}/{rank}/connected", b"")
        for other in range(size if rank == 0 else 0):  # the folder must stay until then
            store.get(f"{_FOLDER_KEY}/{other}/connected")
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    return PeerExchange(rank, sockets, memories) if memories else None


def _connect(rank: int, size: int, folder: Path, store: Any) -> dict[int, socket.socket]:
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

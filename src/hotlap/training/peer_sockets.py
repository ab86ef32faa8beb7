"""Sockets between the processes of a run on one machine, for the small tensors that they exchange at every step.

Gloo serves its sockets in threads of its own, which spin and wait for a core where the trainings keep all cores busy:
an exchange of 50 KB then takes milliseconds. Here the process that waits reads its sockets itself. It asks again and
again before it sleeps: to wake up from a sleep takes longer than most waits last, on a virtual machine above all.
"""

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
_FOLDER_KEY = "hotlap/sockets"


class PeerSockets:
    """A connection to each of the other processes. Messages arrive in the order in which they are sent."""

    def __init__(self, rank: int, size: int, store: Any) -> None:
        """Connect; `store` is torch's, which all processes share."""
        self._ranks = [other for other in range(size) if other != rank]
        # Only this user can reach sockets in such a folder.
        own = Path(tempfile.mkdtemp(prefix="hotlap-")) if rank == 0 else None
        if own is not None:
            store.set(_FOLDER_KEY, str(own))
        folder = own or Path(store.get(_FOLDER_KEY).decode())
        try:
            self._sockets = self._connect(rank, size, folder, store)
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
        store.set(f"{_FOLDER_KEY}/{rank}/connected", b"")
        for other in range(size if rank == 0 else 0):  # the folder must stay until then
            store.get(f"{_FOLDER_KEY}/{other}/connected")
        return found

    def begin_exchange(self, own: memoryview, parts: Sequence[memoryview]) -> Callable[[], None]:
        """Send `own` to all others; the result waits until `parts`, by rank and of the same size, have arrived."""
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

    def close(self) -> None:
        """Close the connections."""
        for each in self._sockets.values():
            each.close()


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

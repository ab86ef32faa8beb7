"""Two processes, played by threads, exchange bytes; `test_processes.py` has real ones."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hotlap.learning.distributed import peer_exchange
from hotlap.learning.distributed.peer_exchange import connect_peers

SLOT_BYTES = 8


class Store:
    """torch's store: `get` waits until the key is set."""

    def __init__(self):
        self._values, self._changed = {}, threading.Condition()

    def set(self, key, value):
        with self._changed:
            self._values[key] = value.encode() if isinstance(value, str) else value
            self._changed.notify_all()

    def get(self, key):
        with self._changed:
            assert self._changed.wait_for(lambda: key in self._values, timeout=20.0)
            return self._values[key]


def on_both(work):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, range(2)))


@pytest.fixture
def pair(monkeypatch):
    monkeypatch.setattr(peer_exchange, "SLOT_BYTES", SLOT_BYTES)
    store = Store()
    found = on_both(lambda rank: connect_peers(rank, 2, store))
    yield found
    for one in found:
        one.close()


@pytest.mark.parametrize("num_bytes", [0, 1, 8, 9, 16, 29], ids=lambda count: f"{count}-bytes")
def test_parts_of_any_size_arrive_again_and_again(pair, num_bytes):
    def exchange(rank):
        for turn in range(5):
            own = bytes([16 * turn + rank]) * num_bytes
            parts = [bytearray(num_bytes), bytearray(num_bytes)]
            pair[rank].begin_exchange(memoryview(own), list(map(memoryview, parts)))()
            assert parts[1 - rank] == bytes([16 * turn + 1 - rank]) * num_bytes

    on_both(exchange)


def test_a_process_that_is_gone_is_noticed(pair):
    pair[1].close()
    with pytest.raises(OSError, match=r"Broken pipe|closed by peer"):
        pair[0].begin_exchange(memoryview(b"x"), [memoryview(bytearray(1))] * 2)()


def test_where_one_process_gets_no_memory_none_uses_it(monkeypatch):
    reserve, store = peer_exchange._reserve, Store()
    failing = iter([True, False])

    def reserve_once(descriptor, num_bytes):
        if next(failing):
            raise OSError("No space left on device")
        reserve(descriptor, num_bytes)

    monkeypatch.setattr(peer_exchange, "_reserve", reserve_once)
    assert on_both(lambda rank: connect_peers(rank, 2, store)) == [None, None]

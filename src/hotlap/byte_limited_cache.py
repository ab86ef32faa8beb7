"""A cache that drops what was used longest ago when its values take too much memory."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteLimitedCache(Generic[K, V]):
    """Values by key, together at most `max_bytes`. A value larger than that is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()  # with their sizes, least recently used first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of values."""
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, which now counts as used; None if it is not kept."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: K, value: V, num_bytes: int) -> None:
        """Keep a value of this size, and drop the least recently used ones beyond the limit."""
        with self._lock:
            self._drop(key)
            if num_bytes > self.max_bytes:
                return
            self._values[key] = (value, num_bytes)
            self.num_bytes += num_bytes
            while self.num_bytes > self.max_bytes:
                self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        if key in self._values:
            self.num_bytes -= self._values.pop(key)[1]

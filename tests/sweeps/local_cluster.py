"""A Ray cluster of several nodes on this machine, which nothing outside the machine can reach."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Read when ray is imported. With the second, Ray uses 127.0.0.1 and does not replace it by the machine's own address.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
# Other users of this machine cannot connect without it.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)

LOOPBACK = "127.0.0.1"
# With any other address, 127.0.0.2 included, Ray listens on every interface.
NODE: dict[str, Any] = {"node_ip_address": LOOPBACK, "include_dashboard": False, "object_store_memory": 80 << 20}


@contextmanager
def three_nodes() -> Iterator[tuple[Any, list[Any]]]:
    """A head without CPUs, and two nodes with one each, so that every run is on one of the two."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=0, **NODE)
        refuse_other_interfaces()  # before more nodes are started
        workers = [cluster.add_node(num_cpus=1, **NODE) for _ in range(2)]
        cluster.wait_for_nodes()
        yield cluster, workers
    finally:
        cluster.shutdown()


def refuse_other_interfaces() -> None:
    """Fail where this process or one it started listens on another address than loopback."""
    import psutil

    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            connections = process.net_connections("inet")
        except psutil.Error:  # it has just ended
            continue
        for each in connections:
            host = each.laddr.ip.removeprefix("::ffff:") if each.laddr else LOOPBACK
            is_open = each.status == psutil.CONN_LISTEN and host not in (LOOPBACK, "::1")
            assert not is_open, f"{process.name()} listens on {each.laddr}"

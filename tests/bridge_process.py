"""A bridge in its own process, started as a user would start it."""

import os
import socket
from pathlib import Path

from server_process import ServerProcess

STARTING_S = 55.0


class BridgeProcess(ServerProcess):
    """`python -m hotlap bridge` on a free port; its output goes to `log_path`."""

    def __init__(self, log_path: Path, *arguments: str, **environ: str) -> None:
        own = {key: value for key, value in os.environ.items() if key not in ("BRIDGE_PORT", "HOTLAP_BRIDGE_TOKEN")}
        super().__init__(log_path, ["bridge", "--port", "0", *arguments], "ws", STARTING_S, env={**own, **environ})

    def connect(self, timeout_s: float = 5.0) -> socket.socket:
        """Open a TCP connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout_s)

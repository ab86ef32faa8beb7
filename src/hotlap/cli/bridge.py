"""`hotlap bridge`: serve the simulator over WebSocket to programs in any language."""

import logging
import sys
from typing import Annotated

import typer


def bridge(
    port: Annotated[
        int | None, typer.Option(help="Port; if not given, BRIDGE_PORT, else 9876; 0 takes any free port.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on, 127.0.0.1 if not given; any other needs HOTLAP_BRIDGE_TOKEN set."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log connections and refused requests to stderr.")
    ] = False,
) -> None:
    """Serve the simulator over WebSocket until Ctrl-C.

    Example: hotlap bridge --port 9876
    """
    from hotlap.bridge.protocol import LOOPBACK_HOST, default_port, default_token
    from hotlap.bridge.server import BridgeSettings, run

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO if verbose else logging.WARNING, format="[bridge] %(message)s"
    )
    settings = BridgeSettings(host or LOOPBACK_HOST, default_port() if port is None else port, default_token())
    run(settings, lambda url: print(f"[bridge] listening on {url}", flush=True))

"""`hotlap bridge`: the simulator for programs in any language, over WebSocket."""

import logging
import sys
from typing import Annotated

import typer


def bridge(
    port: Annotated[
        int | None, typer.Option(help="Port; BRIDGE_PORT, else 9876, if not given; 0 takes any that is free.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on, else 127.0.0.1; others need HOTLAP_BRIDGE_TOKEN set.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say who connects and what is refused, on stderr.")
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

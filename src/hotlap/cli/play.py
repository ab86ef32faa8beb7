"""`hotlap play`: the page, with a server behind it."""

import logging
import sys
import webbrowser
from typing import Annotated

import typer

from hotlap.errors import PageError

MAX_REMEMBERED = 1_000  # warnings


class _OnceFilter(logging.Filter):
    """Lets a warning through once: a drawing is checked again and again while somebody draws it."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to show a record; errors and what --verbose asks for are always shown."""
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if text in self._shown:
            return False
        if len(self._shown) < MAX_REMEMBERED:
            self._shown.add(text)
        return True


def play(
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on, 127.0.0.1 if not given; any other needs HOTLAP_PLAY_TOKEN set."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port, 8000 if not given; the next free one if it is in use; 0 takes any.")
    ] = None,
    open_browser: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open the page in the browser; default: on a terminal.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log refused requests to stderr.")] = False,
) -> None:
    """Serve the page: watch the AI, race it, train it, draw your own track. Ctrl-C stops it; training goes on.

    Example: hotlap play
    """
    try:
        from hotlap.web.server import DEFAULT_HOST, DEFAULT_PORT, PlaySettings, default_token, run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise PageError(f"the page needs {library}. Install it: pip install 'hotlap[play]'.") from None

    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_OnceFilter())
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(handlers=[handler], level=level, format="[play] %(message)s")
    settings = PlaySettings(host or DEFAULT_HOST, DEFAULT_PORT if port is None else port, default_token())

    def say(url: str, own_port: int) -> None:
        if settings.port not in (0, own_port):
            typer.echo(f"[play] port {settings.port} is in use, so this is port {own_port}", err=True)
        print(f"[play] listening on {url}", flush=True)
        if open_browser or (open_browser is None and sys.stdout.isatty()):
            webbrowser.open(url if settings.token is None else f"{url}/?token={settings.token}")

    run(settings, say)

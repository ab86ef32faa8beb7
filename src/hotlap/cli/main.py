"""The `hotlap` command: its verbs, and how errors become one line and an exit code."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from hotlap._version import __version__
from hotlap.cli.bench import bench_app
from hotlap.cli.bridge import bridge
from hotlap.cli.doctor import doctor
from hotlap.cli.drive import drive
from hotlap.cli.evaluate import evaluate
from hotlap.cli.export import export, import_
from hotlap.cli.optimal import optimal
from hotlap.cli.report import report
from hotlap.cli.tracks import tracks_app
from hotlap.cli.train import resume, train
from hotlap.errors import HotlapError

EXIT_COULD_NOT_RUN = 2
EXIT_INTERRUPTED = 130

# Typer brings click, as a package or inside itself; its errors are found through the one that Typer shows.
_CLI_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="hotlap",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"hotlap {__version__}")
        raise typer.Exit


@app.callback()
def _hotlap(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Teach a car to race, and know how good it is."""


app.command()(train)
app.command()(resume)
app.command()(drive)
app.command()(evaluate)
app.command()(report)
app.command()(export)
app.command("import")(import_)
app.command()(optimal)
app.command()(bridge)
app.command()(doctor)
app.add_typer(tracks_app, name="tracks")
app.add_typer(bench_app, name="bench")


def main() -> NoReturn:
    """Run the command line; every error a user can cause ends in one line on stderr."""
    try:
        result = app(prog_name="hotlap", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except HotlapError as error:
        code = _say(str(error))
    except _CLI_ERROR as error:
        code = _refuse(error)
    except (typer.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except typer.Exit as stop:
        code = stop.exit_code
    except BrokenPipeError:
        code = _leave_pipe()
    except SystemExit as stop:
        # Click ends the program itself, with code 1, when the pipe breaks under a command.
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        code = _leave_pipe()
    except MemoryError:
        code = _say("out of memory. Ask for fewer cars or episodes.")
    sys.exit(code)


def _leave_pipe() -> int:
    """The reader went away (`hotlap … | head`): that is no error, but what is left in the buffer has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _refuse(error: Exception) -> int:
    """Bad arguments in one line; a bare command shows its help."""
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return EXIT_COULD_NOT_RUN
    if not message.rstrip().endswith((".", "?", "!")):
        message += "."
    context = getattr(error, "ctx", None)
    return _say(f"{message} Try '{context.command_path if context else 'hotlap'} --help'.")


def _say(message: str) -> int:
    """One line on stderr; returns the exit code that goes with it."""
    typer.echo("hotlap: " + " ".join(message.split()), err=True)
    return EXIT_COULD_NOT_RUN

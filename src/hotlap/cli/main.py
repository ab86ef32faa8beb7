"""The `hotlap` command: its subcommands, and how errors become one line and an exit code."""

import sys
from contextlib import suppress
from functools import cached_property
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hotlap._version import __version__
from hotlap.cli import exit_codes
from hotlap.cli.bench import bench_app
from hotlap.cli.benchmark import benchmark
from hotlap.cli.bridge import bridge
from hotlap.cli.dataset import dataset_app
from hotlap.cli.doctor import doctor
from hotlap.cli.drive import drive
from hotlap.cli.evaluate import evaluate
from hotlap.cli.export import export, import_
from hotlap.cli.optimal import optimal
from hotlap.cli.output import discard
from hotlap.cli.play import play
from hotlap.cli.process_group import is_follower, silence_torch
from hotlap.cli.push import push
from hotlap.cli.race import race
from hotlap.cli.report import report
from hotlap.cli.site import site
from hotlap.cli.sweep import sweep_app
from hotlap.cli.tracks import tracks_app
from hotlap.cli.train import resume, train
from hotlap.errors import HotlapError, explain_missing

# Some versions of Typer bundle click. Its base error is found through the one that Typer exports.
_CLI_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class _Commands(TyperGroup):
    """All commands. Their help shows a flag without a type, since it takes no value; Typer would write `<bool>`."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters of `hotlap` itself."""
        params = super().get_params(ctx)
        _hide_flag_types(params)
        return params

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        for one in (command, *getattr(command, "commands", {}).values()):
            _hide_flag_types(one.get_params(ctx) if one else [])
        return command


def _hide_flag_types(params: list[Any]) -> None:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""


class _App(typer.Typer):
    """Builds its commands once: Typer builds them again at every call."""

    @cached_property
    def built(self) -> Any:
        """All commands."""
        return get_command(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command."""
        return self.built(*args, **kwargs)


app = _App(
    name="hotlap",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"hotlap {__version__}")
        raise typer.Exit


@app.callback()
def _hotlap(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train a car to race and measure how good it is."""


app.command()(train)
app.command()(resume)
app.command()(drive)
app.command()(evaluate)
app.command()(race)
app.command()(benchmark)
app.command()(report)
app.command()(export)
app.command("import")(import_)
app.command()(push)
app.command()(optimal)
app.command()(play)
app.command()(site)
app.command()(bridge)
app.command()(doctor)
app.add_typer(tracks_app, name="tracks")
app.add_typer(dataset_app, name="dataset")
app.add_typer(bench_app, name="bench")
app.add_typer(sweep_app, name="sweep")


def main() -> NoReturn:
    """Run the command line. Every error a user can cause ends in one line on stderr."""
    _replace_unencodable()
    silence_torch()
    try:
        result = app(prog_name="hotlap", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if sys.stdout is not None:  # None: the caller closed it
            sys.stdout.flush()
    except HotlapError as error:
        code = _report(str(error))
    except _CLI_ERROR as error:
        code = _report_usage(error)
    except (typer.Abort, KeyboardInterrupt):
        code = exit_codes.INTERRUPTED
    except typer.Exit as stop:
        code = stop.exit_code
    except BrokenPipeError:
        code = _close_pipe()
    except SystemExit as stop:
        # Click exits with code 1 when the pipe breaks during a command.
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        code = _close_pipe()
    except ModuleNotFoundError as error:
        explained = explain_missing(error)
        if explained is error:
            raise
        code = _report(str(explained))
    except MemoryError:
        code = _report("out of memory. Use fewer cars or episodes.")
    except OSError as error:
        code = _report_system_error(error)
    sys.exit(code)


def _replace_unencodable() -> None:
    """Print `?` for what the terminal's encoding lacks (LANG=C), instead of failing after the work is done."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _close_pipe() -> int:
    """The reader closed the pipe (`hotlap … | head`), which is not an error. Discard the rest of the output."""
    discard(sys.stdout)
    return 0


def _report_system_error(error: OSError) -> int:
    """Report what the system refused, such as a full disk, where the code that met it knows no better words."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    where = error.filename or "output"
    return _report(f"{where}: {error.strerror or error}. Check the path, its permissions and the free space.")


def _report_usage(error: Exception) -> int:
    """Report bad arguments in one line; a command without arguments shows its help."""
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return 0
    if not message.rstrip().endswith((".", "?", "!")):
        message += "."
    context = getattr(error, "ctx", None)
    return _report(f"{message} Try '{context.command_path if context else 'hotlap'} --help'.")


def _report(message: str) -> int:
    """Print one line on stderr and return the exit code; of several processes only the first prints it."""
    if is_follower():
        return exit_codes.COULD_NOT_RUN
    try:
        typer.echo("hotlap: " + " ".join(message.split()), err=True)
    except OSError:  # nobody can read it; the exit code still counts
        with suppress(OSError):
            discard(sys.stderr)
    return exit_codes.COULD_NOT_RUN

"""`hotlap sweep`: run, resume, watch and report sweeps."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hotlap.atomic_files import writable
from hotlap.cli import exit_codes
from hotlap.cli.allowed_imports import AllowImport, import_and_say
from hotlap.cli.output import Json, Quiet, counted, print_json
from hotlap.cli.run_monitor import log_to_stderr, print_status, stop_signals

if TYPE_CHECKING:
    from hotlap.sweeps.status import SweepStatus
    from hotlap.sweeps.sweep_file import Sweep
    from hotlap.sweeps.sweep_folder import SweepFolder
    from hotlap.sweeps.sweep_runner import Pool

_RUN = "run"
WATCH_INTERVAL_S = 2.0


class SweepGroup(TyperGroup):
    """`hotlap sweep FILE.toml` is `hotlap sweep run FILE.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the command where the first argument is a file or an option of it."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


sweep_app = typer.Typer(
    cls=SweepGroup,
    no_args_is_help=True,
    help="Many runs from one file: `hotlap sweep FILE.toml` runs settings over seeds, here or on a Ray cluster.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a sweep under results/sweeps, or its folder.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print log messages too.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; default: one per core, or per CPU of the Ray cluster.")
]
Ray = Annotated[
    str | None, typer.Option("--ray", metavar="ADDRESS", help="Run on a Ray cluster: auto, or its address HOST:PORT.")
]


@sweep_app.command(_RUN)
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The sweep file (docs/sweeps.md).")],
    name: Annotated[
        str | None, typer.Option(help="Name under results/sweeps, or a path; default: the file's name.")
    ] = None,
    workers: Workers = None,
    ray: Ray = None,
    allow_import: AllowImport = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a sweep. Ctrl-C saves and stops; `hotlap sweep resume` continues, also after a crash.

    The word `run` may be left out.

    Example: hotlap sweep run learning-rate.toml --workers 2
    """
    from hotlap.sweeps.study import import_optuna
    from hotlap.sweeps.sweep_file import check_environments, load_sweep, with_plain_env_ids
    from hotlap.sweeps.sweep_folder import create_folder, default_name

    with log_to_stderr(verbose, quiet):
        import_optuna()
        allowed = import_and_say(allow_import)
        sweep = with_plain_env_ids(load_sweep(file), allowed, is_own=True)
        if ray is None:
            check_environments(sweep)
        else:
            from hotlap.sweeps.ray_pool import import_ray, refuse_unreachable

            import_ray()
            refuse_unreachable(ray)
        folder = create_folder(file, default_name(file) if name is None else name, sweep)
        _run(folder, sweep, _Options(workers, ray, allowed, quiet, as_json))


@sweep_app.command("resume")
def resume(
    name: Name,
    workers: Workers = None,
    ray: Ray = None,
    allow_import: AllowImport = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Resume a sweep that was stopped or killed; its runs resume from their checkpoints.

    Example: hotlap sweep resume learning-rate
    """
    from hotlap.sweeps.study import import_optuna
    from hotlap.sweeps.sweep_file import with_plain_env_ids
    from hotlap.sweeps.sweep_folder import open_folder

    with log_to_stderr(verbose, quiet):
        import_optuna()
        folder = open_folder(name)
        allowed = import_and_say(allow_import)
        sweep = with_plain_env_ids(folder.read_sweep(), allowed, is_own=False)
        _run(folder, sweep, _Options(workers, ray, allowed, quiet, as_json))


class _Options:
    """How a sweep is run and printed."""

    def __init__(self, workers: int | None, ray: str | None, allowed: list[str], quiet: bool, as_json: bool) -> None:
        self.workers, self.ray, self.allowed, self.quiet, self.as_json = workers, ray, allowed, quiet, as_json


def _run(folder: "SweepFolder", sweep: "Sweep", options: _Options) -> None:
    from hotlap.sweeps.scheduler import Scheduler
    from hotlap.sweeps.study import SweepStudy
    from hotlap.sweeps.sweep_folder import lock_folder
    from hotlap.sweeps.sweep_runner import run_sweep

    quiet = options.quiet
    with lock_folder(folder):
        study = SweepStudy(folder.journal, folder.name, sweep, is_writer=True)
        scheduler = Scheduler(sweep, study, folder, options.allowed, on_event=lambda line: print_status(line, quiet))
        if scheduler.is_finished:
            print_status(f"{folder.path}: is finished.", quiet)
            is_finished = True
        else:
            runs = sweep.trials * len(sweep.seeds)
            print_status(f"sweep: {folder.path}   {counted(sweep.trials, 'trial')}, {counted(runs, 'run')}", quiet)
            stopping = Event()
            with stop_signals(stopping.set, "runs are saved first", quiet), _open_pool(folder, sweep, options) as pool:
                is_finished = run_sweep(scheduler, pool, stopping.is_set)
    status = _read(folder)
    if not is_finished:
        print_status(f"stopped and saved. Continue with: hotlap sweep resume {folder.path}", quiet)
        raise typer.Exit(exit_codes.INTERRUPTED)
    if options.as_json:
        print_json(status.as_dict())
    elif not quiet:
        _print_table(status)
    if any(trial.state == "failed" for trial in status.trials):
        raise typer.Exit(exit_codes.BELOW_ASKED)


@contextmanager
def _open_pool(folder: "SweepFolder", sweep: "Sweep", options: _Options) -> Iterator["Pool"]:
    if options.ray is not None:
        from hotlap.sweeps.ray_pool import RayPool

        ray_pool = RayPool(options.ray, folder, options.workers)
        try:
            yield ray_pool
        finally:
            ray_pool.close()
        return
    from hotlap.sweeps.local_pool import LocalPool, default_workers

    pool = LocalPool(options.workers or default_workers(sweep.trials * len(sweep.seeds)), folder.logs)
    try:
        yield pool
    finally:
        pool.close()


@sweep_app.command("status")
def status(
    name: Name,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the table again and again until it is finished.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a sweep's trials: state, step, settings and value. It may be running.

    Example: hotlap sweep status learning-rate --watch
    """
    from hotlap.sweeps.sweep_folder import open_folder

    folder = open_folder(name)
    found = _read(folder)
    if as_json:
        print_json(found.as_dict())
        return
    _print_table(found)
    while watch and not found.is_finished:
        time.sleep(WATCH_INTERVAL_S)
        found = _read(folder)
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        _print_table(found)


@sweep_app.command("best")
def best(
    name: Name,
    trial: Annotated[int | None, typer.Option(help="Another trial than the best one.")] = None,
    out: Annotated[Path | None, typer.Option(help="The recipe file; default: best.toml in the sweep's folder.")] = None,
    as_json: Json = False,
) -> None:
    """Write the settings of the best trial as a recipe file for `hotlap train --recipe`.

    Example: hotlap sweep best learning-rate
    """
    from hotlap.atomic_files import write_atomically
    from hotlap.sweeps.scheduler import show_values
    from hotlap.sweeps.sweep_folder import open_folder

    folder = open_folder(name)
    found = _read(folder)
    chosen, config = found.best_config(trial)
    path = writable(out or folder.best)
    write_atomically(path, config.to_toml().encode())
    if as_json:
        brief = found.as_dict()["trials"][chosen.number]
        print_json({**brief, "recipe": str(path)})
        return
    value = show_values(found.sweep.objectives, chosen.values) if chosen.values else chosen.state
    print(f"trial {chosen.number}: {value}")
    for key, setting in chosen.params.items():
        print(f"  {key} = {setting}")
    print(f"train with it: hotlap train --recipe {path}")


@sweep_app.command("report")
def report(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="One sweep, or several to compare.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page; default for one sweep: its own folder's report.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a page on a sweep: trials, learning curves over seeds, parameter importance; or on several side by side.

    Example: hotlap sweep report learning-rate
    """
    from hotlap.errors import ConfigError
    from hotlap.reports.html import PAGE_NAME
    from hotlap.sweeps.sweep_folder import open_folder
    from hotlap.sweeps.sweep_page import write_report

    if out is None and len(names) > 1:
        raise ConfigError("--out: a report on several sweeps needs a folder. Name one.")
    found = [_read(open_folder(name)) for name in names]
    folder = out or found[0].folder.report
    writable(folder / PAGE_NAME)
    page, figures = write_report(found, folder)
    if as_json:
        print_json({**figures, "page": str(page)})
    else:
        print(f"page: {page}")


def _read(folder: "SweepFolder") -> "SweepStatus":
    from hotlap.sweeps.status import read_status

    return read_status(folder)


def _print_table(found: "SweepStatus") -> None:
    from hotlap.sweeps.status_table import status_table

    print(status_table(found), end="")

"""`hotlap train` and `hotlap resume`: follow a run while it learns, and stop it without losing anything."""

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.output import percent, print_json, seconds

if TYPE_CHECKING:
    from hotlap.training.progress import OnProgress, Progress
    from hotlap.training.run_folder import RunFolder
    from hotlap.training.trainer import Outcome, Trainer

EXIT_INTERRUPTED = 130
# Where there is no terminal to draw a bar on, a line now and then.
LINE_INTERVAL_S = 10.0
CASUAL_EPISODES = 20

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only what came of it.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more while at it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")]


def train(
    algo: Annotated[str | None, typer.Option(help="ppo, sac or a2c.")] = None,
    env: Annotated[str | None, typer.Option(help="Any Gymnasium environment id; the racer unless given.")] = None,
    recipe: Annotated[str | None, typer.Option(help="A recipe's name, or a TOML file.")] = None,
    seed: Annotated[int | None, typer.Option(help="A run is a function of its settings and this.")] = None,
    steps: Annotated[int | None, typer.Option(help="Decisions to train for, all environments together.")] = None,
    track: Annotated[str | None, typer.Option(help="Track id; `hotlap tracks list` shows all.")] = None,
    num_envs: Annotated[int | None, typer.Option(help="Environments at once.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    run_name: Annotated[str | None, typer.Option(help="The run's name under results/experiments, or a path.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run of this name.")] = False,
    checkpoint_interval: Annotated[int | None, typer.Option(help="Steps between two checkpoints.")] = None,
    bridge_url: Annotated[
        str | None, typer.Option(help="Drive the cars behind a bridge, e.g. ws://127.0.0.1:9876.")
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a policy. Ctrl-C saves and stops; `hotlap resume` goes on.

    Example: hotlap train --algo ppo --track track-01 --seed 1 --steps 2000000
    """
    from hotlap.training.run_config import resolve_config
    from hotlap.training.run_folder import create_run

    _set_up_logging(verbose, quiet)
    asked: dict[str, Any] = {
        "algo": algo,
        "env": env,
        "seed": seed,
        "steps": steps,
        "world.track": track,
        "num_envs": num_envs,
        "device": device,
        "checkpoint.interval": checkpoint_interval,
    }
    config = resolve_config(recipe, asked)
    from hotlap.training.trainer import Trainer

    folder = create_run(config, run_name, overwrite)
    trainer = Trainer(config, folder)
    _follow(trainer, None, quiet, as_json)


def resume(
    run: Annotated[str, typer.Argument(help="A run's folder, or its name under results/experiments.")],
    steps: Annotated[int | None, typer.Option(help="Train to this many steps in all instead.")] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or killed, to the very bits it would have come to; or make it longer.

    Example: hotlap resume results/experiments/ppo_seed42
    """
    from hotlap.training.run_config import with_steps
    from hotlap.training.run_folder import open_run

    _set_up_logging(verbose, quiet)
    folder, config = open_run(run)
    if folder.is_finished and (steps is None or steps <= config.steps):
        typer.echo(f"{folder.path}: is finished ({config.steps} steps). `--steps TOTAL` makes it longer.", err=True)
        if as_json:
            _print_results(folder)
        return
    if steps is not None:
        config = with_steps(config, steps)
        folder.write_config(config)
        folder.results.unlink(missing_ok=True)
    from hotlap.training.trainer import Trainer

    trainer = Trainer(config, folder)
    checkpoint = trainer.checkpoints.find_newest()
    where = f"step {checkpoint.snapshot.step}" if checkpoint else "the beginning: there is no checkpoint yet"
    if not quiet:
        typer.echo(f"{folder.path}: going on from {where}.", err=True)
    _follow(trainer, checkpoint, quiet, as_json)


def _set_up_logging(verbose: bool, quiet: bool) -> None:
    """What the run has to say goes to stderr, one line each."""
    level = logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING
    logging.basicConfig(level=level, format="hotlap: %(message)s", stream=sys.stderr)
    logging.getLogger("hotlap").setLevel(level)


def _follow(trainer: "Trainer", checkpoint: Any, quiet: bool, as_json: bool) -> None:
    """Train under a bar and the signals' handlers, then say what came of it."""
    folder = trainer.folder
    if not quiet:
        typer.echo(f"run: {folder.path}   follow it: tensorboard --logdir {folder.path}", err=True)
    with _stop_signals(trainer), _show_progress(quiet) as on_progress:
        trainer.on_progress = on_progress
        outcome = trainer.run(checkpoint)
    if outcome.results is None:
        typer.echo(f"stopped and saved at step {outcome.step}. Go on: hotlap resume {folder.path}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    if as_json:
        _print_results(folder)
    else:
        _tell(trainer, outcome)


@contextlib.contextmanager
def _stop_signals(trainer: "Trainer") -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) saves and stops, the second stops at once."""

    def first(number: int, frame: Any) -> None:
        typer.echo("\nstopping: saving first. Once more stops at once.", err=True)
        trainer.stop()
        signal.signal(number, before[number])

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _show_progress(quiet: bool) -> Iterator["OnProgress | None"]:
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _Lines()


class _Lines:
    """A line on stderr now and then."""

    def __init__(self) -> None:
        self._said_s = -LINE_INTERVAL_S

    def __call__(self, progress: "Progress") -> None:
        now_s = time.monotonic()
        if now_s - self._said_s >= LINE_INTERVAL_S or progress.step >= progress.total:
            self._said_s = now_s
            typer.echo(f"{progress.step}/{progress.total} steps  {_figures(progress)}", err=True)


@contextlib.contextmanager
def _bar() -> Iterator["OnProgress"]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)

        def show(progress: "Progress") -> None:
            bar.update(task, total=progress.total, completed=progress.step, description=_figures(progress))

        yield show


def _figures(progress: "Progress") -> str:
    parts = [f"{progress.steps_per_s:,.0f} steps/s"]
    if progress.mean_return is not None:
        parts.append(f"return {progress.mean_return:.2f}")
    if progress.best_lap_s is not None:
        parts.append(f"best lap {seconds(progress.best_lap_s)}")
    if progress.gap is not None:
        parts.append(f"gap {percent(progress.gap)}")
    return "  ".join(parts)


def _print_results(folder: "RunFolder") -> None:
    from hotlap.training.results import ExperimentResults

    print_json({"run": str(folder.path), **ExperimentResults.load(folder.results).to_dict()})


def _tell(trainer: "Trainer", outcome: "Outcome") -> None:
    results, config = outcome.results, trainer.config
    if results is None:
        return
    metrics = results.metrics
    print(f"{config.experiment_id}: {outcome.step:,} steps in {metrics.training_time_seconds:.0f} s")
    if results.evaluation is None:
        print(
            f"  return over {config.evaluation.final_episodes} deterministic episodes: {metrics.final_reward_mean:.1f} (std {metrics.final_reward_std:.1f})"
        )
    else:
        _tell_laps(trainer)
    print(f"  model: {trainer.folder.model}")


def _tell_laps(trainer: "Trainer") -> None:
    """The model beside the casual driver and the optimum."""
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.laps import evaluate

    track = trainer.config.world.track
    chosen = trainer.folder.best if trainer.folder.best.exists() else trainer.folder.model
    optimal_s = trainer.optimal_lap_s
    learned = evaluate(
        make_driver(str(chosen)), track, episodes=trainer.config.evaluation.final_episodes, start="random"
    )
    casual = evaluate(make_driver("casual"), track, episodes=CASUAL_EPISODES)
    print(f"  on {track}            flying lap   gap to optimal   laps completed   clean")
    for name, found in (("the AI", learned), ("casual driver", casual)):
        gap = found.against(optimal_s).gap_to_optimal if optimal_s else None
        shown = "-" if gap is None else f"{100.0 * gap:.1f} %"
        print(
            f"  {name:<18}{seconds(found.median_lap_time_sec):>12}{shown:>17}{percent(found.completion_rate):>17}"
            f"{percent(found.clean_lap_rate):>8}"
        )
    if optimal_s:
        print(f"  {'optimum':<18}{seconds(optimal_s):>12}")

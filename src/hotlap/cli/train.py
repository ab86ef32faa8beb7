"""`hotlap train` and `hotlap resume`: start or go on with a run, and say what came of it."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.output import percent, print_json, seconds
from hotlap.cli.run_monitor import say, show_progress, stop_signals, telling
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from hotlap.training.checkpoint import Checkpoint
    from hotlap.training.results import ExperimentResults
    from hotlap.training.run_files.run_folder import RunFolder
    from hotlap.training.trainer import Trainer

EXIT_INTERRUPTED = 130
CASUAL_EPISODES = 20

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors, and what --json asks for.")]
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
    with_report: Annotated[
        bool, typer.Option("--report", help="End with a page of pictures (`hotlap report`).")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a policy. Ctrl-C saves and stops; `hotlap resume` goes on.

    Example: hotlap train --algo ppo --track track-01 --seed 1 --steps 2000000
    """
    from hotlap.training.run_config import resolve_config
    from hotlap.training.run_files.run_folder import RunFolder, create_run, folder_of

    asked: dict[str, Any] = {
        "algo": algo,
        "seed": seed,
        "steps": steps,
        "num_envs": num_envs,
        "device": device,
        "checkpoint.interval": checkpoint_interval,
        **_place(env, track, bridge_url),
    }
    with telling(verbose, quiet):
        config = resolve_config(recipe, asked)
        folder = RunFolder(folder_of(run_name or config.experiment_id), config.experiment_id)
        from hotlap.training.trainer import Trainer

        _follow(Trainer(config, folder), None, lambda: create_run(config, run_name, overwrite), quiet, as_json)
        if with_report:
            _write_report(folder)


def _write_report(folder: "RunFolder") -> None:
    """The run's page; what there is to say about it goes to stderr, since stdout may have ended with the results."""
    from hotlap.cli.report import report

    with contextlib.redirect_stdout(sys.stderr):
        report([str(folder.path)])


def _place(env: str | None, track: str | None, bridge_url: str | None) -> dict[str, str | None]:
    """The settings that say where to train: in this process, or behind a bridge."""
    if bridge_url is None and env != REMOTE_RACER_ID:
        if track is not None and env not in (None, RACER_ID):
            raise ConfigError(f"--track: {env} has none. Leave it out.")
        return {"env": env, "racer.track": track}
    if env not in (None, RACER_ID, REMOTE_RACER_ID):
        raise ConfigError(f"--bridge-url: a bridge serves {RACER_ID}, and --env asks for {env}. Leave one of them out.")
    return {"env": REMOTE_RACER_ID, "env_args.bridge_url": bridge_url, "env_args.track_id": track}


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
    from hotlap.training.run_files.run_folder import open_run

    with telling(verbose, quiet):
        folder, before = open_run(run)
        config = before if steps is None else with_steps(before, steps)
        if folder.is_finished and config.steps <= before.steps:
            say(f"{folder.path}: is finished ({before.steps} steps). `--steps TOTAL` makes it longer.", quiet)
            if as_json:
                _print_results(folder)
            return
        from hotlap.training.trainer import Trainer

        trainer = Trainer(config, folder)
        checkpoint = trainer.checkpoints.find_newest()
        if checkpoint is not None and checkpoint.snapshot.step > config.steps:
            raise TrainingError(
                f"--steps {steps}: the run is past that, at step {checkpoint.snapshot.step}. Ask for more."
            )
        _follow(trainer, checkpoint, lambda: _go_on(trainer, checkpoint, quiet), quiet, as_json)


def _go_on(trainer: "Trainer", checkpoint: "Checkpoint | None", quiet: bool) -> None:
    """Make the run what was asked for, now that nothing stands in its way."""
    folder = trainer.folder
    folder.write_config(trainer.config)
    folder.results.unlink(missing_ok=True)
    where = f"step {checkpoint.snapshot.step}" if checkpoint else "the beginning: there is no whole checkpoint"
    say(f"{folder.path}: going on from {where}.", quiet)


def _follow(
    trainer: "Trainer",
    checkpoint: "Checkpoint | None",
    on_ready: Callable[[], object],
    quiet: bool,
    as_json: bool,
) -> None:
    """Train under a bar and the signals' handlers, then say what came of it."""
    path = trainer.folder.path

    def begin() -> None:
        on_ready()
        say(f"run: {path}   follow it: tensorboard --logdir {path}", quiet)

    with stop_signals(trainer, quiet), show_progress(quiet) as on_progress:
        trainer.on_progress = on_progress
        outcome = trainer.run(checkpoint, begin)
    if outcome.results is None and not outcome.is_saved:
        raise TrainingError(f"stopped at step {outcome.step} and not saved. Make room, then: hotlap resume {path}")
    if outcome.results is None:
        say(f"stopped and saved at step {outcome.step}. Go on: hotlap resume {path}", quiet)
        raise typer.Exit(EXIT_INTERRUPTED)
    if as_json:
        _print_results(trainer.folder)
    elif not quiet:
        _tell(trainer, outcome.results)


def _print_results(folder: "RunFolder") -> None:
    from hotlap.training.results import ExperimentResults

    print_json({"run": str(folder.path), **ExperimentResults.load(folder.results).to_dict()})


def _tell(trainer: "Trainer", results: "ExperimentResults") -> None:
    metadata, metrics = results.metadata, results.metrics
    print(
        f"{metadata.experiment_id}: {metadata.total_timesteps:,} steps in {metrics.training_time_seconds:.0f} s,"
        f" {metrics.total_episodes:,} episodes"
    )
    if results.evaluation is not None:
        _tell_laps(trainer, results.evaluation)
    elif metrics.final_reward_mean is not None and metrics.final_reward_std is not None:
        print(
            f"  return over {trainer.config.evaluation.final_episodes} deterministic episodes:"
            f" {metrics.final_reward_mean:.1f} (std {metrics.final_reward_std:.1f})"
        )
    print(f"  model: {trainer.folder.chosen}")


def _tell_laps(trainer: "Trainer", learned: Mapping[str, Any]) -> None:
    """The model's figures beside the casual driver's and the optimum's."""
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate
    from hotlap.training.vec_envs.factory import in_process

    track = in_process(trainer.config).racer.track
    optimal_s = trainer.optimal_lap_s
    found = evaluate(make_driver("casual"), track, episodes=CASUAL_EPISODES)
    casual = (found.against(optimal_s) if optimal_s else found).as_dict()
    print(f"  {'on ' + track:<18}  flying lap   gap to optimal   laps completed   clean")
    for name, figures in (("the AI", learned), ("casual driver", casual)):
        gap = figures["gap_to_optimal"]
        shown = "-" if gap is None else f"{100.0 * gap:.1f} %"
        print(
            f"  {name:<18}{seconds(figures['median_lap_time_sec']):>12}{shown:>17}"
            f"{percent(figures['completion_rate']):>17}{percent(figures['clean_lap_rate']):>8}"
        )
    if optimal_s:
        print(f"  {'optimum':<18}{seconds(optimal_s):>12}")

"""`hotlap train` and `hotlap resume`: train a run and print its results."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.output import percent, print_json, seconds
from hotlap.cli.run_monitor import log_to_stderr, print_status, show_progress, stop_signals
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from hotlap.training.checkpoint import Checkpoint
    from hotlap.training.results import ExperimentResults
    from hotlap.training.run_files.run_folder import RunFolder
    from hotlap.training.trainer import Trainer

EXIT_INTERRUPTED = 130
CASUAL_EPISODES = 20

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors and the output of --json.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more log messages.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]


def train(
    algo: Annotated[str | None, typer.Option(help="ppo, sac or a2c.")] = None,
    env: Annotated[str | None, typer.Option(help="Any Gymnasium environment id; the racer by default.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Name of a recipe, or a TOML file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; the same settings and seed give the same run.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps (decisions) to train for, summed over all environments.")
    ] = None,
    track: Annotated[str | None, typer.Option(help="Track id; `hotlap tracks list` shows all.")] = None,
    num_envs: Annotated[int | None, typer.Option(help="Number of parallel environments.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    run_name: Annotated[str | None, typer.Option(help="Name of the run under results/experiments, or a path.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run of this name.")] = False,
    checkpoint_interval: Annotated[int | None, typer.Option(help="Steps between checkpoints.")] = None,
    bridge_url: Annotated[
        str | None, typer.Option(help="Train on the cars of a bridge server, e.g. ws://127.0.0.1:9876.")
    ] = None,
    with_report: Annotated[bool, typer.Option("--report", help="Write a report at the end (`hotlap report`).")] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a policy. Ctrl-C saves and stops; `hotlap resume` continues.

    Example: hotlap train --algo ppo --track track-01 --seed 1 --steps 2000000
    """
    from hotlap.training.recipe import resolve_config
    from hotlap.training.run_files.run_folder import RunFolder, create_run, folder_of

    options: dict[str, Any] = {
        "algo": algo,
        "seed": seed,
        "steps": steps,
        "num_envs": num_envs,
        "device": device,
        "checkpoint.interval": checkpoint_interval,
        **_environment_options(env, track, bridge_url),
    }
    with log_to_stderr(verbose, quiet):
        config = resolve_config(recipe, options)
        folder = RunFolder(folder_of(run_name or config.experiment_id), config.experiment_id)
        from hotlap.training.trainer import Trainer

        _run(Trainer(config, folder), None, lambda: create_run(config, run_name, overwrite), quiet, as_json)
        if with_report:
            _write_report(folder)


def _write_report(folder: "RunFolder") -> None:
    """Write the run's report; its messages go to stderr, since the results must stay last on stdout."""
    from hotlap.cli.report import report

    with contextlib.redirect_stdout(sys.stderr):
        report([str(folder.path)])


def _environment_options(env: str | None, track: str | None, bridge_url: str | None) -> dict[str, str | None]:
    """The settings of the environment: in this process, or behind a bridge."""
    if bridge_url is None and env != REMOTE_RACER_ID:
        if track is not None and env not in (None, RACER_ID):
            raise ConfigError(f"--track: {env} has no tracks. Leave the option out.")
        return {"env": env, "racer.track": track}
    if env not in (None, RACER_ID, REMOTE_RACER_ID):
        raise ConfigError(f"--bridge-url: a bridge only serves {RACER_ID}, got --env {env}. Leave one of them out.")
    return {"env": REMOTE_RACER_ID, "env_args.bridge_url": bridge_url, "env_args.track_id": track}


def resume(
    run: Annotated[str, typer.Argument(help="Folder of a run, or its name under results/experiments.")],
    steps: Annotated[int | None, typer.Option(help="New total number of steps, to extend the run.")] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Resume a run that was stopped or killed, or extend it. The result is bit-identical to an uninterrupted run.

    Example: hotlap resume results/experiments/ppo_seed42
    """
    from hotlap.training.run_config import with_steps
    from hotlap.training.run_files.run_folder import open_run

    with log_to_stderr(verbose, quiet):
        folder, saved = open_run(run)
        config = saved if steps is None else with_steps(saved, steps)
        if folder.is_finished and config.steps <= saved.steps:
            print_status(f"{folder.path}: is finished ({saved.steps} steps). Extend it with `--steps TOTAL`.", quiet)
            if as_json:
                _print_results(folder)
            return
        from hotlap.training.trainer import Trainer

        trainer = Trainer(config, folder)
        checkpoint = trainer.checkpoints.find_newest()
        if checkpoint is not None and checkpoint.snapshot.step > config.steps:
            raise TrainingError(
                f"--steps {steps}: the run is already at step {checkpoint.snapshot.step}. Give a larger number."
            )
        _run(trainer, checkpoint, lambda: _prepare_resume(trainer, checkpoint, quiet), quiet, as_json)


def _prepare_resume(trainer: "Trainer", checkpoint: "Checkpoint | None", quiet: bool) -> None:
    """Write the new configuration and remove the old results, once the run is known to be able to resume."""
    folder = trainer.folder
    folder.write_config(trainer.config)
    folder.results.unlink(missing_ok=True)
    where = f"step {checkpoint.snapshot.step}" if checkpoint else "the start: there is no intact checkpoint"
    print_status(f"{folder.path}: resuming from {where}.", quiet)


def _run(
    trainer: "Trainer",
    checkpoint: "Checkpoint | None",
    on_ready: Callable[[], object],
    quiet: bool,
    as_json: bool,
) -> None:
    """Train with a progress display and signal handlers, then print the outcome."""
    path = trainer.folder.path

    def start() -> None:
        on_ready()
        print_status(f"run: {path}   watch it: tensorboard --logdir {path}", quiet)

    with stop_signals(trainer, quiet), show_progress(quiet) as on_progress:
        trainer.on_progress = on_progress
        outcome = trainer.run(checkpoint, start)
    if outcome.results is None and not outcome.is_saved:
        raise TrainingError(
            f"stopped at step {outcome.step}, but could not be saved. Free some disk space, then: hotlap resume {path}"
        )
    if outcome.results is None:
        print_status(f"stopped and saved at step {outcome.step}. Continue with: hotlap resume {path}", quiet)
        raise typer.Exit(EXIT_INTERRUPTED)
    if as_json:
        _print_results(trainer.folder)
    elif not quiet:
        _print_summary(trainer, outcome.results)


def _print_results(folder: "RunFolder") -> None:
    from hotlap.training.results import ExperimentResults

    print_json({"run": str(folder.path), **ExperimentResults.load(folder.results).to_dict()})


def _print_summary(trainer: "Trainer", results: "ExperimentResults") -> None:
    metadata, metrics = results.metadata, results.metrics
    print(
        f"{metadata.experiment_id}: {metadata.total_timesteps:,} steps in {metrics.training_time_seconds:.0f} s,"
        f" {metrics.total_episodes:,} episodes"
    )
    if results.evaluation is not None:
        _print_laps(trainer, results.evaluation)
    elif metrics.final_reward_mean is not None and metrics.final_reward_std is not None:
        print(
            f"  return over {trainer.config.evaluation.final_episodes} deterministic episodes:"
            f" {metrics.final_reward_mean:.1f} (std {metrics.final_reward_std:.1f})"
        )
    print(f"  model: {trainer.folder.chosen}")


def _print_laps(trainer: "Trainer", learned: Mapping[str, Any]) -> None:
    """A table of the model's laps, the casual driver's and the optimal one."""
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

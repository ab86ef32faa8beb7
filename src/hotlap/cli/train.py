"""`hotlap train` and `hotlap resume`: train a run and print its results."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli import exit_codes
from hotlap.cli.allowed_imports import AllowImport, import_and_say
from hotlap.cli.driver_lookup import DRIVER_NAME
from hotlap.cli.output import Json, Quiet, counted
from hotlap.cli.process_group import joined_processes
from hotlap.cli.run_loggers import Log, chosen_loggers
from hotlap.cli.run_monitor import log_to_stderr, print_status, show_progress, stop_signals
from hotlap.cli.run_summary import print_results, print_summary, write_report
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import ConfigError, DivergedError, TrainingError

if TYPE_CHECKING:
    from hotlap.learning.distributed.processes import Processes
    from hotlap.runs.run_config import RunConfig
    from hotlap.runs.run_folder import RunFolder
    from hotlap.training.checkpoint import Checkpoint
    from hotlap.training.trainer import Trainer


Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print progress and metrics as log messages too.")]
BridgeUrl = Annotated[str | None, typer.Option(help="Train on the cars of a bridge server, e.g. ws://127.0.0.1:9876.")]


def train(
    algo: Annotated[str | None, typer.Option(help="ppo, sac or a2c.")] = None,
    env: Annotated[str | None, typer.Option(help="Any Gymnasium environment id; the racer by default.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Name of a recipe, or a TOML file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; the same settings and seed give the same run.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps (decisions) to train for, summed over all environments.")
    ] = None,
    track: Annotated[str | None, typer.Option(help="Track id (`hotlap tracks list`), or generated: new roads.")] = None,
    num_envs: Annotated[int | None, typer.Option(help="Number of parallel environments.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")] = None,
    run_name: Annotated[str | None, typer.Option(help="Name of the run under results/experiments, or a path.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run of this name.")] = False,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Resume an unfinished run of this name; keep a finished one, renamed.")
    ] = False,
    checkpoint_interval: Annotated[
        int | None, typer.Option(help="Steps between checkpoints; 0 turns them off.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(help="Keep the newest N checkpoints; 0, or an interval without --keep, keeps all.")
    ] = None,
    start_model: Annotated[
        str | None,
        typer.Option(metavar=DRIVER_NAME, help="Start from the weights of this model and take its settings over."),
    ] = None,
    allow_import: AllowImport = None,
    bridge_url: BridgeUrl = None,
    log: Log = None,
    with_report: Annotated[bool, typer.Option("--report", help="Write a report at the end (`hotlap report`).")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the resolved settings as TOML; train nothing.")] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a policy. Ctrl-C saves and stops; `hotlap resume` continues.

    Over several processes: torchrun --nproc-per-node 2 -m hotlap train …

    Example: hotlap train --algo ppo --track track-01 --seed 1 --steps 2000000
    """
    from hotlap.runs.recipe import resolve_config
    from hotlap.runs.run_folder import RunFolder, create_run, folder_of
    from hotlap.training.device import choose_device
    from hotlap.training.start_model import start_options

    if overwrite and go_on:
        raise ConfigError("--overwrite and --continue: one deletes an existing run, the other keeps it. Leave one out.")
    if keep is None and checkpoint_interval is not None:
        keep = 0  # a user who gives an interval wants to keep those checkpoints
    with joined_processes() as processes, log_to_stderr(verbose, quiet or not processes.is_leader):
        quiet = quiet or not processes.is_leader
        options: dict[str, Any] = {
            "algo": algo,
            "seed": seed,
            "steps": steps,
            "num_envs": num_envs,
            "device": choose_device(device) if device is not None else None,
            "checkpoint.interval": checkpoint_interval,
            "checkpoint.keep": keep,
            **_environment_options(env, track, bridge_url),
        }
        if start_model is not None:
            options = start_options(start_model, options)
        config = _without_module(resolve_config(recipe, options), import_and_say(allow_import))
        _refuse_bridge_of_file(config, bridge_url)
        if show:
            if processes.is_leader:
                typer.echo(config.to_toml(), nl=False)
            return
        folder = RunFolder(folder_of(config.experiment_id if run_name is None else run_name), config.experiment_id)
        if go_on and processes.from_leader(lambda: _is_unfinished(folder, quiet)):
            _resume(str(folder.path), _Resume(steps, allow_import, bridge_url, log=log), processes, quiet, as_json)
        else:
            from hotlap.training.trainer import Trainer

            trainer = Trainer(config, folder, processes=processes, loggers=chosen_loggers(log))
            _run(trainer, None, lambda: create_run(config, run_name, overwrite, trainer.lock), quiet, as_json)
        if with_report and processes.is_leader:
            write_report(folder)


def _without_module(config: "RunConfig", allowed: list[str]) -> "RunConfig":
    """The configuration with `Id` instead of `module:Id`: the module is imported by now, or not allowed."""
    from hotlap.envs.gym_registry import check_env_id

    return replace(config, env=check_env_id(config.env, allowed))


def _is_unfinished(folder: "RunFolder", quiet: bool) -> bool:
    """Whether there is a run to resume; a finished one is renamed."""
    from hotlap.runs.run_folder import keep_under_another_name

    if folder.is_finished:
        kept = keep_under_another_name(folder)
        print_status(f"{folder.path}: is finished; it is kept as {kept}, and a new run starts.", quiet)
        return False
    is_there = folder.config.is_file()
    if is_there:
        print_status(f"{folder.path}: is not finished. It is resumed with its own settings.", quiet)
    return is_there


def _environment_options(env: str | None, track: str | None, bridge_url: str | None) -> dict[str, str | None]:
    """The settings of the environment: in this process, or behind a bridge."""
    if bridge_url is None and env != REMOTE_RACER_ID:
        if track is not None and env not in (None, RACER_ID):
            raise ConfigError(f"--track: {env} has no tracks. Leave the option out.")
        return {"env": env, "racer.track": track}
    if env not in (None, RACER_ID, REMOTE_RACER_ID):
        raise ConfigError(f"--bridge-url: a bridge only serves {RACER_ID}, got --env {env}. Leave one of them out.")
    return {"env": REMOTE_RACER_ID, "env_args.bridge_url": bridge_url, "racer.track": track}


def _refuse_bridge_of_file(config: "RunConfig", bridge_url: str | None) -> None:
    """No file tells us where to connect: it would get the bridge's token."""
    if config.is_remote and config.env_args.get("bridge_url") != bridge_url:
        raise ConfigError("env_args.bridge_url: a recipe cannot name a bridge. Give its URL with --bridge-url.")


def resume(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CHECKPOINT",
            help="Folder of a run, its name under results/experiments, or one of its checkpoints.",
        ),
    ],
    steps: Annotated[int | None, typer.Option(help="New total number of steps, to extend the run.")] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Resume on another device: cpu, cuda or auto. The result is then not bit-identical."),
    ] = None,
    allow_import: AllowImport = None,
    bridge_url: BridgeUrl = None,
    log: Log = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Resume a run that was stopped or killed, or extend it. The result is bit-identical to an uninterrupted run.

    From one of its checkpoints: what came after it is dropped.

    Example: hotlap resume results/experiments/ppo_seed42
    """
    with joined_processes() as processes, log_to_stderr(verbose, quiet or not processes.is_leader):
        options = _Resume(steps, allow_import, bridge_url, device, log)
        _resume(run, options, processes, quiet or not processes.is_leader, as_json)


@dataclass(frozen=True)
class _Resume:
    """What the command line may say about a run that exists."""

    steps: int | None
    allow_import: list[str] | None
    bridge_url: str | None
    device: str | None = None
    log: list[str] | None = None

    def applied_to(self, saved: "RunConfig") -> "RunConfig":
        """The configuration of a run folder that may be somebody else's: nothing in it is imported or connected to."""
        from hotlap.envs.gym_registry import check_env_args
        from hotlap.runs.run_config import with_steps

        config = saved if self.steps is None else with_steps(saved, self.steps)
        if self.device is not None:
            from hotlap.training.device import choose_device

            config = replace(config, device=choose_device(self.device) or config.device)
        config = _without_module(config, import_and_say(self.allow_import))
        if config.is_remote:
            if self.bridge_url is None:
                raise ConfigError("--bridge-url: this run trains on the cars of a bridge. Give its URL.")
            return replace(config, env_args={"bridge_url": self.bridge_url})
        if self.bridge_url is not None:
            raise ConfigError("--bridge-url: this run trains on cars in this process. Leave the option out.")
        if config.env_args and config.backend == "gymnasium":
            check_env_args(config.env, config.env_args)
        return config


def _resume(run: str, options: _Resume, processes: "Processes", quiet: bool, as_json: bool) -> None:
    from hotlap.runs.run_folder import open_run, split_checkpoint

    name, chosen = split_checkpoint(run)
    folder, saved = open_run(name)
    config = options.applied_to(saved)

    def says_finished() -> bool:
        return processes.from_leader(lambda: _says_finished(folder, saved, config, chosen, quiet, as_json))

    if says_finished():
        return
    from hotlap.training.trainer import Trainer  # slow to import, and a finished run does not need it

    trainer = Trainer(config, folder, processes=processes, loggers=chosen_loggers(options.log))
    with trainer.lock if processes.is_leader else contextlib.nullcontext():
        # Another process may have finished it just now.
        if says_finished():
            return
        checkpoint = _find_checkpoint(trainer, chosen)
        if checkpoint is not None and checkpoint.snapshot.step > config.steps:
            raise TrainingError(
                f"--steps {options.steps}: the run is already at step {checkpoint.snapshot.step}. Give a larger number."
            )
        is_chosen = chosen is not None
        _run(trainer, checkpoint, lambda: _prepare_resume(trainer, checkpoint, is_chosen, quiet), quiet, as_json)


def _find_checkpoint(trainer: "Trainer", chosen: Path | None) -> "Checkpoint | None":
    """The chosen checkpoint, or the newest intact one; the leader looks for it, and all processes read the same."""
    from hotlap.training.checkpoint import load_checkpoint

    if chosen is not None:
        return load_checkpoint(chosen)
    if trainer.processes.is_alone:
        return trainer.checkpoints.find_newest()
    found = trainer.checkpoints.find_newest() if trainer.processes.is_leader else None
    step = trainer.processes.from_leader(lambda: found.step if found is not None else None)
    if found is None and step is not None:
        return load_checkpoint(trainer.checkpoints.path_of(step))
    return found


def _says_finished(
    folder: "RunFolder", saved: "RunConfig", config: "RunConfig", chosen: Path | None, quiet: bool, as_json: bool
) -> bool:
    """Whether nothing is left to do, which is said."""
    if chosen is not None or not folder.is_finished or config.steps > saved.steps:
        return False
    print_status(f"{folder.path}: is finished ({saved.steps} steps). Extend it with `--steps TOTAL`.", quiet)
    if as_json:
        print_results(folder)
    return True


def _prepare_resume(trainer: "Trainer", checkpoint: "Checkpoint | None", is_chosen: bool, quiet: bool) -> None:
    """Write the new configuration and remove the old results, once the run is known to be able to resume."""
    folder = trainer.folder
    folder.write_config(trainer.config)
    folder.results.unlink(missing_ok=True)
    where = f"step {checkpoint.snapshot.step}" if checkpoint else "the start: there is no intact checkpoint"
    print_status(f"{folder.path}: resuming from {where}.", quiet)
    if checkpoint is not None and is_chosen:
        files = "".join(f", {name}" for name in trainer.writer.drop_after(checkpoint))
        print_status(f"{folder.path}: dropped what came after it: points, events{files}.", quiet)


def _run(
    trainer: "Trainer",
    checkpoint: "Checkpoint | None",
    on_ready: Callable[[], object],
    quiet: bool,
    as_json: bool,
) -> None:
    """Train with a progress display and signal handlers, then print the outcome."""
    from hotlap.training.learners import check_stream
    from hotlap.training.optimizer_start import skip_compiler_import

    path, processes, config = trainer.folder.path, trainer.processes, trainer.config
    skip_compiler_import()
    check_stream(config)
    if config.racer.is_generated:
        print_status(f"making the first {counted(min(config.racer.roads, config.num_envs), 'road')} …", quiet)

    def start() -> None:
        on_ready()
        print_status(f"run: {path}", quiet)
        print_status(f"watch it: tensorboard --logdir {path}", quiet)
        print_status(config.checkpoint.describe(), quiet)

    try:
        # `torchrun` sends signals too, and then says more about them than we could.
        with (
            stop_signals(trainer.stop, "saving first", quiet or not processes.is_alone),
            show_progress(quiet) as on_progress,
        ):
            trainer.on_progress = on_progress
            outcome = trainer.run(checkpoint, start)
    except DivergedError as error:
        if not processes.is_alone:
            raise
        typer.echo(f"hotlap: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(exit_codes.BELOW_ASKED) from None
    if outcome.is_stopped and not outcome.is_saved:
        raise TrainingError(
            f"stopped at step {outcome.step}, but could not be saved. Free some disk space, then: "
            f"{processes.resume_command} {path}"
        )
    if outcome.is_stopped:
        print_status(
            f"stopped and saved at step {outcome.step}. Continue with: {processes.resume_command} {path}", quiet
        )
        raise typer.Exit(exit_codes.INTERRUPTED)
    if outcome.results is None:  # another process writes and prints them
        return
    if as_json:
        print_results(trainer.folder)
    elif not quiet:
        print_summary(trainer, outcome.results)
    if outcome.num_unsaved:
        typer.echo(
            f"hotlap: {path}: finished, but {outcome.num_unsaved} checkpoints or best models could not be written. "
            "The final model is complete.",
            err=True,
        )
        raise typer.Exit(exit_codes.BELOW_ASKED)

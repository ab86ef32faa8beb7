"""`hotlap evaluate`: measure a driver or a trained model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.allowed_imports import AllowImport, import_and_say
from hotlap.cli.driver_lookup import find_driver_model, own_track, say_if_other_road
from hotlap.cli.output import percent, print_json, progress_bar, seconds
from hotlap.errors import ConfigError
from hotlap.reports.formatting import MISSING

if TYPE_CHECKING:
    from hotlap.sim.engine import DeviceName


def evaluate(
    driver: Annotated[
        str,
        typer.Argument(metavar="RUN|MODEL|DRIVER", help="A run, a model file, or a built-in driver: casual, optimal."),
    ],
    track: Annotated[str | None, typer.Option(help="Track id. Default: the model's track, or track-01.")] = None,
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 20,
    start: Annotated[str, typer.Option(help="Where episodes start: line or random.")] = "line",
    seed: Annotated[int, typer.Option(help="Seed of the starts and of the driver.")] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one. The laps are the same.")
    ] = "cpu",
    allow_import: AllowImport = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")] = False,
) -> None:
    """Measure a driver: a standing and a flying lap per episode; times are of clean flying laps.

    For a run its best model is used. For a model of another environment the mean return is measured.

    Example: hotlap evaluate results/experiments/ppo_seed42 --episodes 100 --start random --json
    """
    allowed = import_and_say(allow_import)
    model = find_driver_model(driver)
    if model is not None and not model.card.is_racer:
        if track is not None:
            raise ConfigError(
                f"--track: {model.card.environment}, the environment of {model.path}, has no tracks. Leave it out."
            )
        _evaluate_returns(model.path, episodes, seed, allowed, as_json)
        return
    # `--track ''` must be refused, not replaced by the default.
    chosen = own_track(model) if track is None else track
    say_if_other_road(model, chosen)
    _evaluate_laps(driver, chosen, episodes, start, seed, _device(device, model is not None), as_json)


def _device(asked: str, is_model: bool) -> "DeviceName":
    """The device that the user's choice means; a driver that is no model drives on the CPU."""
    if asked == "cpu" or (asked == "auto" and not is_model):  # torch is slow to import
        return "cpu"
    from hotlap.training.device import choose_device

    return choose_device(asked) or "cpu"


def _evaluate_laps(
    driver: str, track: str, episodes: int, start: str, seed: int, device: "DeviceName", as_json: bool
) -> None:
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate as measure
    from hotlap.optimal.reference import find_or_solve_reference
    from hotlap.tracks.digest import track_digest
    from hotlap.tracks.registry import load_track

    about = load_track(track)
    with progress_bar(f"{driver} on {track}") as progress:
        task: dict[str, Any] = {"episodes": episodes, "start": start, "seed": seed, "device": device}
        result = measure(make_driver(driver), track, **task, progress=progress)
    reference = find_or_solve_reference(about, lambda text: typer.echo(text, err=True))
    if reference:
        result = result.against(reference.lap_time_s)
    if as_json:
        print_json({**result.as_dict(), "track_digest": track_digest(about.nodes)})
        return
    count = "1 episode" if result.episodes == 1 else f"{result.episodes} episodes"
    print(f"{result.driver} on {result.track}, {count} from {result.start}")
    print(f"  completed      {percent(result.completion_rate)}   clean laps {percent(result.clean_lap_rate)}")
    print(
        f"  flying lap     mean {seconds(result.mean_lap_time_sec)}   best {seconds(result.best_lap_time_sec)}"
        f"   spread {seconds(result.std_lap_time_sec)}"
    )
    if reference and result.gap_to_optimal is not None:
        print(f"  optimal lap    {seconds(reference.lap_time_s)}   gap {100.0 * result.gap_to_optimal:.1f} %")
    print(f"  standing lap   mean {seconds(result.standing_lap_time_sec)}")
    contacts = MISSING if result.wall_contacts_per_lap is None else f"{result.wall_contacts_per_lap:.2f}"
    print(f"  wall contacts  {contacts} a lap   mean return {result.mean_reward:.3f}")


def _evaluate_returns(path: Path, episodes: int, seed: int, allowed: list[str], as_json: bool) -> None:
    from hotlap.training.policy_evaluation import evaluate_model

    found = evaluate_model(path, episodes, seed, allowed)
    if as_json:
        print_json(found)
        return
    print(f"{path.name} in {found['environment']}, {episodes} episodes")
    print(f"  return   mean {found['mean_reward']:.1f}   std {found['std_reward']:.1f}")
    print(f"  length   mean {found['mean_episode_length']:.0f} steps")

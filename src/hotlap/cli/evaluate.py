"""`hotlap evaluate`: measure a driver or a trained model."""

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.allowed_imports import AllowImport, import_and_say
from hotlap.cli.driver_lookup import DRIVER_HELP, DRIVER_NAME, find_driver_model, own_track, say_if_other_road
from hotlap.cli.output import percent, print_json, progress_bar, seconds
from hotlap.errors import ConfigError
from hotlap.reports.formatting import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotlap.evaluation.evaluate import Evaluation
    from hotlap.optimal.reference import Reference
    from hotlap.sim.engine import DeviceName


def evaluate(
    driver: Annotated[str, typer.Argument(metavar=DRIVER_NAME, help=DRIVER_HELP)],
    track: Annotated[str | None, typer.Option(help="Track id. Default: the model's track, or track-01.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Every track of a split, train or test, instead of one track.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 20,
    start: Annotated[str, typer.Option(help="Where episodes start: line, random or anywhere.")] = "line",
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
    if track is not None and split is not None:
        raise ConfigError(f"--split {split:.40}: it names the tracks already. Leave out --track.")
    tracks = _split_tracks(split)
    model = find_driver_model(driver, tracks[0] if tracks else track)
    if model is not None and not model.card.is_racer:
        if track is not None or tracks:
            option, environment = "split" if tracks else "track", model.card.environment
            raise ConfigError(
                f"--{option}: {environment}, the environment of {model.path}, has no tracks. Leave it out."
            )
        _evaluate_returns(model.path, episodes, seed, allowed, as_json)
        return
    task = {"episodes": episodes, "start": start, "seed": seed, "device": _device(device, model is not None)}
    if split is not None:
        _evaluate_split(driver, split, tracks, task, as_json)
        return
    # `--track ''` must be refused, not replaced by the default.
    chosen = own_track(model) if track is None else track
    say_if_other_road(model, chosen)
    _print_laps(*_measure(driver, chosen, task), as_json)


def _split_tracks(split: str | None) -> list[str]:
    from hotlap.tracks.registry import split_ids

    return [] if split is None else split_ids(split)


def _device(asked: str, is_model: bool) -> "DeviceName":
    """The device that the user's choice means; a driver that is no model drives on the CPU."""
    if asked == "cpu" or (asked == "auto" and not is_model):  # torch is slow to import
        return "cpu"
    from hotlap.training.device import choose_device

    return choose_device(asked) or "cpu"


def _measure(driver: str, track: str, task: "Mapping[str, Any]") -> "tuple[Evaluation, Reference | None]":
    """The figures of a driver on a track, and the optimal lap there."""
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate as measure
    from hotlap.optimal.reference import find_or_solve_reference
    from hotlap.tracks.registry import load_track

    about = load_track(track)
    with progress_bar(f"{driver} on {track}") as progress:
        result = measure(make_driver(driver, track), track, **task, progress=progress)
    reference = find_or_solve_reference(about, lambda text: typer.echo(text, err=True))
    return (result.against(reference.lap_time_s) if reference else result), reference


def _as_dict(result: "Evaluation") -> dict[str, Any]:
    from hotlap.tracks.digest import track_digest
    from hotlap.tracks.registry import load_track

    return {**result.as_dict(), "track_digest": track_digest(load_track(result.track).nodes)}


def _evaluate_split(driver: str, split: str, tracks: list[str], task: "Mapping[str, Any]", as_json: bool) -> None:
    """Measure a driver on every track of a split."""
    results = []
    for number, track in enumerate(tracks, start=1):
        results.append(_measure(driver, track, task)[0])
        typer.echo(f"{number} of {len(tracks)}: {_row(results[-1])}", err=True)
    gaps = [result.gap_to_optimal for result in results if result.gap_to_optimal is not None]
    completed = sum(result.completion_rate == 1.0 for result in results)
    median, worst = (statistics.median(gaps), max(gaps)) if gaps else (None, None)
    if as_json:
        found: dict[str, Any] = {"split": split, "driver": results[0].driver}
        found |= {"tracks": [_as_dict(result) for result in results], "completed_tracks": completed}
        print_json({**found, "median_gap_to_optimal": median, "worst_gap_to_optimal": worst})
        return
    print("track       completed  clean laps  mean lap    gap")
    for result in results:
        print(_row(result))
    print(f"completed from every start: {completed} of {len(results)} tracks")
    print(f"gap to the optimal lap: median {_gap(median)}, worst {_gap(worst)}")


def _row(result: "Evaluation") -> str:
    figures = percent(result.completion_rate), percent(result.clean_lap_rate), seconds(result.mean_lap_time_sec)
    return f"{result.track:<12}{figures[0]:>9}{figures[1]:>12}{figures[2]:>10}{_gap(result.gap_to_optimal):>9}"


def _gap(value: float | None) -> str:
    return MISSING if value is None else f"{100.0 * value:.1f} %"


def _print_laps(result: "Evaluation", reference: "Reference | None", as_json: bool) -> None:
    if as_json:
        print_json(_as_dict(result))
        return
    count = "1 episode" if result.episodes == 1 else f"{result.episodes} episodes"
    print(f"{result.driver} on {result.track}, {count} from {result.start}")
    print(f"  completed      {percent(result.completion_rate)}   clean laps {percent(result.clean_lap_rate)}")
    print(
        f"  flying lap     mean {seconds(result.mean_lap_time_sec)}   best {seconds(result.best_lap_time_sec)}"
        f"   spread {seconds(result.std_lap_time_sec)}"
    )
    if reference and result.gap_to_optimal is not None:
        print(f"  optimal lap    {seconds(reference.lap_time_s)}   gap {_gap(result.gap_to_optimal)}")
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

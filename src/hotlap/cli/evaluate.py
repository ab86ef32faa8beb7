"""`hotlap evaluate`: measure a driver or a trained model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.allowed_imports import AllowImport, import_and_say
from hotlap.cli.driver_lookup import DRIVER_HELP, DRIVER_NAME, CarOption, own_track, read_car, say_if_other_road
from hotlap.cli.output import Json, counted, percent, print_json, progress_bar, seconds
from hotlap.errors import ConfigError
from hotlap.evaluation.baseline import CASUAL_EPISODES
from hotlap.reports.formatting import MISSING, gap_percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotlap.evaluation.evaluate import Evaluation
    from hotlap.models.model_file import ModelFile
    from hotlap.optimal.reference import Reference
    from hotlap.sim.engine import DeviceName


# From the line a model drives the same laps in every episode, so that one tells as much as many.
MODEL_EPISODES = 100
SPLIT_EPISODES = 40  # on each track
OPTIMAL_EPISODES = 1  # it has no randomness, and from a random start it solves an approach for each car


def evaluate(
    driver: Annotated[str, typer.Argument(metavar=DRIVER_NAME, help=DRIVER_HELP)],
    track: Annotated[
        str | None, typer.Option(help="Track id, or generated. Default: the model's track, or track-01.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Every track of a split, train or test, instead of one track.")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            help=f"Number of episodes. Default: {MODEL_EPISODES} for a model ({SPLIT_EPISODES} a track of a split), "
            f"{CASUAL_EPISODES} for casual, {OPTIMAL_EPISODES} for optimal."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Where episodes start: line or random. Default: random for a model, else line."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the starts and of the driver.")] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one. The laps are the same.")
    ] = "cpu",
    car: CarOption = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Measure a driver's clean flying laps: their times, how many are completed, and the gap to the optimal lap.

    A model drives from random starts, and once from the line; casual and optimal drive from the line.

    The gap is that of the median lap, to the optimal lap of the same car. For a run its best model is used.

    For a model of another environment the mean return is measured.

    Example: hotlap evaluate results/experiments/ppo_seed42 --episodes 1000 --json
    """
    from hotlap.runs.find_driver import find_driver_model
    from hotlap.tracks.registry import GENERATED

    allowed = import_and_say(allow_import)
    if track is not None and split is not None:
        raise ConfigError(f"--split {split:.40}: it names the tracks already. Leave out --track.")
    tracks = _split_tracks(split)
    model = find_driver_model(driver, tracks[0] if tracks else track)
    if model is not None and not model.card.is_racer:
        if track is not None or tracks or car is not None:
            option = "split" if tracks else "track" if track is not None else "car"
            what, environment = "cars" if option == "car" else "tracks", model.card.environment
            raise ConfigError(
                f"--{option}: {environment}, the environment of {model.path}, has no {what}. Leave it out."
            )
        _evaluate_returns(model.path, MODEL_EPISODES if episodes is None else episodes, seed, allowed, as_json)
        return
    is_model = model is not None
    task = {
        "episodes": _default_episodes(driver, is_model, bool(tracks)) if episodes is None else episodes,
        "start": ("random" if is_model else "line") if start is None else start,
        "seed": seed,
        "device": _device(device, is_model),
        "domain": read_car(car),
    }
    if split is not None:
        _evaluate_split(driver, model, split, tracks, task, as_json)
        return
    # `--track ''` must be refused, not replaced by the default.
    chosen = own_track(model) if track is None else track
    if chosen == GENERATED and driver == "optimal":
        raise ConfigError(f"--track {GENERATED}: the optimal driver drives one track at a time. Name one.")
    say_if_other_road(model, chosen)
    result, reference = _measure(driver, model, chosen, task)
    from_line = None
    if is_model and task["start"] != "line" and chosen != GENERATED:
        from_line = _drive(driver, model, chosen, {**task, "episodes": 1, "start": "line"})
    if as_json:
        print_json(_with_line(_as_dict(result), from_line))
        return
    _print_laps(result, reference, from_line, is_model)


def _default_episodes(driver: str, is_model: bool, is_split: bool) -> int:
    if is_model:
        return SPLIT_EPISODES if is_split else MODEL_EPISODES
    return CASUAL_EPISODES if driver == "casual" else OPTIMAL_EPISODES


def _split_tracks(split: str | None) -> list[str]:
    from hotlap.tracks.registry import split_ids

    return [] if split is None else split_ids(split)


def _device(asked: str, is_model: bool) -> "DeviceName":
    """The device that the user's choice means; a driver that is no model drives on the CPU."""
    if asked == "cpu" or (asked == "auto" and not is_model):  # torch is slow to import
        return "cpu"
    from hotlap.training.device import choose_device

    return choose_device(asked) or "cpu"


def _drive(driver: str, model: "ModelFile | None", track: str, task: "Mapping[str, Any]") -> "Evaluation":
    """The figures of a driver on a track, without the gap to the optimal lap."""
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate as measure
    from hotlap.tracks.registry import GENERATED, evaluation_ids

    tracks = evaluation_ids() if track == GENERATED else track
    with progress_bar(f"{driver} on {track}") as progress:
        return replace(measure(make_driver(driver, model), tracks, **task, progress=progress), track=track)


def _measure(
    driver: str, model: "ModelFile | None", track: str, task: "Mapping[str, Any]"
) -> "tuple[Evaluation, Reference | None]":
    """The figures of a driver on a track, and the optimal lap there."""
    from hotlap.optimal.reference import find_or_solve_reference
    from hotlap.tracks.registry import GENERATED, load_track

    if track == GENERATED:  # many roads, whose optimal laps nobody has solved
        return _drive(driver, model, track, task), None
    about, domain = load_track(track), task["domain"]
    result = _drive(driver, model, track, task)
    if domain.is_drawn:
        typer.echo(f"no gap to the optimum: each start has a car of its own ({domain}).", err=True)
        return result, None
    reference = find_or_solve_reference(about, lambda text: typer.echo(text, err=True), domain.car)
    return (result.against(reference.lap_time_s) if reference else result), reference


def _as_dict(result: "Evaluation") -> dict[str, Any]:
    from hotlap.tracks.digest import track_digest
    from hotlap.tracks.registry import load_track, one_road

    return {**result.as_dict(), "track_digest": track_digest(load_track(one_road(result.track)).nodes)}


def _evaluate_split(
    driver: str,
    model: "ModelFile | None",
    split: str,
    tracks: list[str],
    task: "Mapping[str, Any]",
    as_json: bool,
) -> None:
    """Measure a driver on every track of a split."""
    from hotlap.reports.road_laps import summarise_roads

    results = []
    for number, track in enumerate(tracks, start=1):
        results.append(_measure(driver, model, track, task)[0])
        typer.echo(f"{number} of {len(tracks)}: {_row(results[-1])}", err=True)
    summary = summarise_roads(results)
    completed, median, worst = summary.num_completed, summary.median_gap, summary.worst_gap
    if as_json:
        found: dict[str, Any] = {"split": split, "driver": results[0].driver}
        found |= {"tracks": [_as_dict(result) for result in results], "completed_tracks": completed}
        print_json({**found, "median_gap_to_optimal": median, "worst_gap_to_optimal": worst})
        return
    print(f"{results[0].driver}, on each track {_describe_starts(results[0])}")
    print("track       completed  clean laps  median lap    gap")
    for result in results:
        print(_row(result))
    print(f"completed from every start: {completed} of {len(results)} tracks")
    print(f"gap to the optimal lap: median {gap_percent(median)}, worst {gap_percent(worst)}")


def _row(result: "Evaluation") -> str:
    figures = percent(result.completion_rate), percent(result.clean_lap_rate), seconds(result.median_lap_time_sec)
    return f"{result.track:<12}{figures[0]:>9}{figures[1]:>12}{figures[2]:>12}{gap_percent(result.gap_to_optimal):>9}"


def _with_line(figures: dict[str, Any], from_line: "Evaluation | None") -> dict[str, Any]:
    """The figures, with those laps from the line that random starts do not give."""
    if from_line is None:
        return figures
    standing = {"standing_lap_time_sec": from_line.standing_lap_time_sec}
    return {**figures, **standing, "line_lap_time_sec": from_line.median_lap_time_sec}


def _describe_starts(result: "Evaluation") -> str:
    car = f", car {result.car}" if result.car else ""
    if result.start == "line":
        return f"{counted(result.episodes, 'episode')} from the line{car}"
    where = "random start" if result.start == "random" else f"start {result.start}"
    return f"{counted(result.episodes, where)}, seed {result.seed}{car}"


def _print_laps(
    result: "Evaluation", reference: "Reference | None", from_line: "Evaluation | None", is_model: bool
) -> None:
    starts = _describe_starts(result)
    if is_model and result.start == "line" and result.episodes > 1:
        starts += ", all of them the same drive"
    print(f"{result.driver} on {result.track}, {starts}")
    print(f"  completed      {percent(result.completion_rate)}  clean laps {percent(result.clean_lap_rate)}")
    print(
        f"  flying lap     median {seconds(result.median_lap_time_sec)}  mean {seconds(result.mean_lap_time_sec)}"
        f"  best {seconds(result.best_lap_time_sec)}  spread {seconds(result.std_lap_time_sec)}"
    )
    if reference and result.gap_to_optimal is not None:
        print(f"  optimal lap    {seconds(reference.lap_time_s)}  gap {gap_percent(result.gap_to_optimal)}")
    if result.start == "line":
        print(f"  standing lap   mean {seconds(result.standing_lap_time_sec)}")
    if from_line is not None:
        standing, flying = seconds(from_line.standing_lap_time_sec), seconds(from_line.median_lap_time_sec)
        print(f"  from the line  standing lap {standing}  flying lap {flying}")
    contacts = MISSING if result.wall_contacts_per_lap is None else f"{result.wall_contacts_per_lap:.2f}"
    print(f"  wall contacts  {contacts} a lap  mean return {result.mean_reward:.3f}")


def _evaluate_returns(path: Path, episodes: int, seed: int, allowed: list[str], as_json: bool) -> None:
    from hotlap.training.optimizer_start import skip_compiler_import
    from hotlap.training.policy_evaluation import evaluate_model

    skip_compiler_import()
    found = evaluate_model(path, episodes, seed, allowed)
    if as_json:
        print_json(found)
        return
    print(f"{path.name} in {found['environment']}, {counted(episodes, 'episode')}")
    print(f"  return   mean {found['mean_reward']:.1f}   std {found['std_reward']:.1f}")
    print(f"  length   mean {found['mean_episode_length']:.0f} steps")

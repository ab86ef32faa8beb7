"""Make a trained model a driver that comes with the package: `src/hotlap/models/shipped/NAME.zip` and its card.

usage: python tools/ship_driver.py track-01 MODEL.zip ABOUT.toml config.toml [FIRST.toml]
       python tools/ship_driver.py generalist MODEL.zip ABOUT.toml config.toml [FIRST.toml]
       python tools/ship_driver.py --again

A champion has the name of its track. ABOUT.toml says in `method`, `hardware`, `limits` and `reproduction` what no file
can tell. config.toml is that of the run that the model is from, FIRST.toml that of the run which gave its start model;
both are shipped beside the model, and the card names them with their SHA-256. The figures of the card are measured
here; `--again` measures them anew for all shipped models, which a change of the physics or of the evaluation makes
necessary. They are the same on every machine, and a test compares them.
"""

import hashlib
import json
import shutil
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotlap.config import read_mapping
from hotlap.drivers.packed import PackedDriver
from hotlap.evaluation.evaluate import Evaluation, evaluate
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.models.shipped_models import (
    CHAMPION_STARTS,
    FIRST_STARTS,
    GENERALIST,
    GENERALIST_STARTS,
    SHIPPED_FOLDER,
    START_SEED,
    unseen_tracks,
)
from hotlap.optimal.reference import find_reference
from hotlap.reports.formatting import MISSING, percent, seconds
from hotlap.runs.run_config import digest_of
from hotlap.tracks.registry import load_track

ABOUT_KEYS = ("method", "reproduction", "hardware", "limits")
FIGURES = ("completion_rate", "clean_lap_rate", "median_lap_time_sec", "best_lap_time_sec", "gap_to_optimal")


def measure(driver: PackedDriver, track: str, episodes: int) -> Evaluation:
    """Laps from random starts against the optimal lap."""
    found = evaluate(driver, track, episodes=episodes, start="random", seed=START_SEED)
    reference = find_reference(load_track(track))
    return found.against(reference.lap_time_s) if reference else found


def figures_of(found: Evaluation) -> dict[str, Any]:
    """What a card tells of a track."""
    return {name: getattr(found, name) for name in FIGURES}


def make_figures(name: str, model: ModelFile) -> dict[str, Any]:
    """The measured part of a card."""
    driver = PackedDriver.from_model(model)
    if name != GENERALIST:
        return {
            "starts": CHAMPION_STARTS,
            **figures_of(measure(driver, name, CHAMPION_STARTS)),
            "first": {"starts": FIRST_STARTS, **figures_of(measure(driver, name, FIRST_STARTS))},
        }
    tracks = {track: figures_of(measure(driver, track, GENERALIST_STARTS)) for track in unseen_tracks()}
    gaps = [row["gap_to_optimal"] for row in tracks.values() if row["gap_to_optimal"] is not None]
    return {
        "starts": GENERALIST_STARTS,
        "completed_tracks": sum(row["completion_rate"] == 1.0 for row in tracks.values()),
        "mean_clean_lap_rate": statistics.fmean(row["clean_lap_rate"] or 0.0 for row in tracks.values()),
        "median_gap_to_optimal": statistics.median(gaps) if gaps else None,
        "worst_gap_to_optimal": max(gaps) if gaps else None,
        "tracks": tracks,
    }


def recipe_paths(name: str) -> list[Path]:
    """The configurations that ship with a model, in the order of its trainings; the last is the model's own."""
    first = SHIPPED_FOLDER / f"{name}-first.toml"
    return [*([first] if first.exists() else []), SHIPPED_FOLDER / f"{name}.toml"]


def describe_recipes(name: str, model: ModelFile) -> list[dict[str, str]]:
    """Names and digests of the configurations; exits where the last is not that of the model."""
    paths = recipe_paths(name)
    if digest_of(read_mapping(paths[-1])) != model.card.config_digest:
        sys.exit(f"{paths[-1]}: is not the configuration that {model.path} was trained with.")
    return [{"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in paths]


def make_card(name: str, model: ModelFile, about: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """The whole card as JSON data."""
    card = model.card
    return {
        "name": name,
        **{key: " ".join(str(about[key]).split()) for key in ABOUT_KEYS},
        "recipes": describe_recipes(name, model),
        "config_digest": card.config_digest,
        "algorithm": card.algorithm,
        "seed": card.seed,
        "decisions": card.step,
        "physics": card.physics,
        "observation_layout": card.observation_layout,
        "action_repeat": card.action_repeat,
        "lap_fourier": card.lap_fourier,
        "net_arch": list(card.policy.net_arch or ()),
        "figures": figures,
    }


def gap(value: float | None) -> str:
    """A gap to the optimal lap, finer than other fractions."""
    return MISSING if value is None else f"+{100.0 * value:.2f} %"


def to_markdown(card: dict[str, Any]) -> str:
    """The card as a page."""
    figures, is_generalist = card["figures"], card["name"] == GENERALIST
    title = "The generalist: one driver for every road" if is_generalist else f"The champion of {card['name']}"
    recipes = ", then ".join(f"`{recipe['file']}` (SHA-256 `{recipe['sha256']}`)" for recipe in card["recipes"])
    rows = [
        ("Method", card["method"]),
        ("Recipe", f"{recipes}. The model holds the digest of its configuration: `{card['config_digest']}`."),
        ("Reproduction", card["reproduction"]),
        ("Algorithm", f"{card['algorithm'].upper()}, seed {card['seed']}, {card['decisions']:,} decisions"),
        ("Network", f"{'-'.join(map(str, card['net_arch']))}, tanh"),
        ("Sees", f"layout `{card['observation_layout']}`, {card['lap_fourier']} Fourier features of the lap progress"),
        ("Decides", f"every {card['action_repeat']} ticks of 1/60 s"),
        ("Physics", f"`{card['physics']}`"),
        ("Trained on", card["hardware"]),
        ("Limits", card["limits"]),
    ]
    lines = [f"# {title}", "", "| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows), ""]
    lines += [f"Measured by `tools/ship_driver.py`, {figures['starts']:,} random starts a track:", ""]
    if is_generalist:
        lines += [
            f"- completed from every start: {figures['completed_tracks']} of {len(figures['tracks'])} tracks",
            f"- clean laps, mean over the tracks: {percent(figures['mean_clean_lap_rate'])}",
            f"- gap to the optimal lap: median {gap(figures['median_gap_to_optimal'])}, "
            f"worst {gap(figures['worst_gap_to_optimal'])}",
            "",
            "| track | completed | clean laps | median lap | gap |",
            "| --- | --- | --- | --- | --- |",
        ]
        table = figures["tracks"]
    else:
        lines += ["| track | completed | clean laps | median lap | gap |", "| --- | --- | --- | --- | --- |"]
        table = {card["name"]: figures}
    for track, row in table.items():
        fractions = f"{percent(row['completion_rate'])} | {percent(row['clean_lap_rate'])}"
        lines.append(
            f"| {track} | {fractions} | {seconds(row['median_lap_time_sec'])} | {gap(row['gap_to_optimal'])} |"
        )
    return "\n".join(lines) + "\n"


def ship(name: str, model: ModelFile, about: dict[str, Any]) -> None:
    """Write model and card."""
    SHIPPED_FOLDER.mkdir(exist_ok=True)
    path = SHIPPED_FOLDER / f"{name}.zip"
    write_model(path, replace(model, path=path))
    shipped = read_model(path)
    card = make_card(name, shipped, about, make_figures(name, shipped))
    write_card(path, card)


def write_card(path: Path, card: dict[str, Any]) -> None:
    """Write the card beside the model, as data and as a page."""
    path.with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(to_markdown(card), encoding="utf-8")
    shown = {key: value for key, value in card["figures"].items() if key not in ("tracks", "first")}
    print(f"{path.name}: {path.stat().st_size:,} bytes, {shown}", flush=True)


def main(arguments: list[str]) -> None:
    """Ship one model, or measure all shipped ones again."""
    if arguments == ["--again"]:
        for path in sorted(SHIPPED_FOLDER.glob("*.zip")):
            ship(path.stem, read_model(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))
        return
    if len(arguments) not in (4, 5):
        sys.exit(__doc__)
    name, model, about, *configs = arguments
    for file, config in zip((f"{name}.toml", f"{name}-first.toml"), configs, strict=False):
        shutil.copy(config, SHIPPED_FOLDER / file)
    ship(name, read_model(Path(model)), dict(read_mapping(Path(about))))


if __name__ == "__main__":
    main(sys.argv[1:])

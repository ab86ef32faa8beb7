"""A model as a folder in the layout of the Hugging Face hub, and its upload."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotlap.atomic_files import write_atomically
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.race_video import RaceVideo
from hotlap.envs.rendering import draw_frame
from hotlap.errors import ConfigError, HotlapError, OutputFileError, explain_missing, one_line
from hotlap.evaluation.evaluate import evaluate
from hotlap.evaluation.telemetry import record_laps
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import ModelFile, write_model
from hotlap.optimal.reference import find_or_solve_reference
from hotlap.reports.hub_card import CONFIG_NAME, EVALUATION_NAME, MODEL_NAME, README_NAME, make_hub_card
from hotlap.tracks.registry import DEFAULT_TRACK, GENERATED, evaluation_ids, load_track, one_road
from hotlap.training.policy_evaluation import evaluate_model

VIDEO_STEM = "replay"  # the hub shows replay.mp4
_NAMES = (README_NAME, MODEL_NAME, CONFIG_NAME, EVALUATION_NAME, f"{VIDEO_STEM}.mp4", f"{VIDEO_STEM}.gif")
Notify = Callable[[str], None]


@dataclass(frozen=True)
class HubTask:
    """What is written: `video` is mp4, gif or none."""

    name: str
    episodes: int = 100
    seed: int = 0
    video: str = "mp4"

    def __post_init__(self) -> None:
        if self.video not in ("mp4", "gif", "none"):
            raise ConfigError(f"--video must be mp4, gif or none, got {self.video!r:.40}.")


def write_hub_folder(model: ModelFile, out: Path, task: HubTask, notify: Notify) -> list[Path]:
    """Evaluate a model and write its folder; returns the files. What else is in the folder stays."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputFileError(f"{out!s:.200}: cannot be made ({reason}). Choose another --out.") from None
    for name in _NAMES:
        (out / name).unlink(missing_ok=True)
    figures = _measure(model, task, notify)
    video = _film(model, out, task, notify)
    # Written anew: a checkpoint's file holds what a run needs to resume, too.
    write_model(out / MODEL_NAME, replace(model, path=out / MODEL_NAME))
    config = model.path.parent / CONFIG_NAME
    if config.is_file():
        shutil.copyfile(config, out / CONFIG_NAME)
    write_atomically(out / EVALUATION_NAME, (json.dumps(figures, indent=1) + "\n").encode())
    card = replace(model.card, weights_digest=tensors_digest(model.weights))  # a mean of models has none in its card
    page = make_hub_card(task.name, card, figures, video)
    write_atomically(out / README_NAME, page.encode())
    return [out / name for name in _NAMES if (out / name).is_file()]


def _measure(model: ModelFile, task: HubTask, notify: Notify) -> dict[str, Any]:
    """The figures of `hotlap evaluate`."""
    if not model.card.is_racer:
        return {"episodes": task.episodes, **evaluate_model(model.path, task.episodes, task.seed, [])}
    track, driver = model.card.track or DEFAULT_TRACK, PackedDriver.from_model(model)
    if track == GENERATED:
        return evaluate(driver, evaluation_ids(), episodes=task.episodes, start="random", seed=task.seed).as_dict()
    found = evaluate(driver, track, episodes=task.episodes, start="random", seed=task.seed)
    line = evaluate(driver, track, episodes=1, start="line", seed=task.seed)
    reference = find_or_solve_reference(load_track(track), notify)
    figures = (found.against(reference.lap_time_s) if reference else found).as_dict()
    figures |= {"optimal_lap_time_sec": reference.lap_time_s if reference else None}
    return figures | {
        "standing_lap_time_sec": line.standing_lap_time_sec,
        "line_lap_time_sec": line.median_lap_time_sec,
    }


def _film(model: ModelFile, out: Path, task: HubTask, notify: Notify) -> str | None:
    """A film of the standing and a flying lap; None where there is none."""
    if task.video == "none":
        return None
    if not model.card.is_racer:
        notify(f"no video: {model.card.environment} is not the racer.")
        return None
    name = f"{VIDEO_STEM}.{task.video}"
    with RaceVideo(out / name) as film:

        def show(fleet: Fleet) -> None:
            state, obs = fleet.states[0], fleet.batch.obs[0]
            film.add_frame(int(state["tick"]), lambda: draw_frame(fleet.tracks[0], state, obs, fleet.top_speed_mps))

        road = one_road(model.card.track or DEFAULT_TRACK)
        record_laps(PackedDriver.from_model(model), road, num_laps=2, seed=task.seed, on_tick=show)
    return name


def upload_folder(folder: Path, repository: str, is_private: bool) -> str:
    """Upload a folder to the hub with the token that its library finds; returns the address."""
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None
    if not huggingface_hub.get_token():
        raise HotlapError("no token of the hub was found. Run `hf auth login`, or set HF_TOKEN; the folder is written.")
    try:
        api = huggingface_hub.HfApi()
        api.create_repo(repository, private=is_private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=str(folder), allow_patterns=list(_NAMES))
    except Exception as error:  # of the network, the server or the library
        raise HotlapError(
            f"{repository!r:.80}: cannot be uploaded ({one_line(error)}). The folder {folder} is written; try again."
        ) from None
    return f"https://huggingface.co/{repository}"

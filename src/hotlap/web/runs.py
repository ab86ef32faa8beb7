"""The runs in the results folder, as the page shows them: settings, progress, curves and checkpoints."""

import json
import os
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hotlap.atomic_files import open_plain
from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.config import MAX_CONFIG_BYTES
from hotlap.errors import HotlapError, ModelError, TrainingError, explain_missing
from hotlap.reports.curves import Curve, read_events
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import CONFIG_NAME, EXPERIMENTS, RunFolder, open_run
from hotlap.runs.run_lock import find_holder
from hotlap.tracks.registry import one_road
from hotlap.training.checkpoint import CheckpointManager

# The API's name of a curve, and its TensorBoard key.
CURVES = {
    "return": "rollout/ep_rew_mean",
    "completion_rate": "racer/completion_rate",
    "best_lap_time_sec": "racer/best_lap_time_sec",
    "mean_lap_time_sec": "racer/mean_lap_time_sec",
    "gap_to_optimal": "racer/gap_to_optimal",
    "eval_lap_time_sec": "eval/median_lap_time_sec",
    "eval_completion_rate": "eval/completion_rate",
    "eval_return": "eval/mean_reward",
}
MAX_EVENT_BYTES = 64 << 20
MAX_RUNS = 500
_TAIL_BYTES = 4096
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_CONFIGS: ByteLimitedCache[tuple[Path, int, int], RunConfig] = ByteLimitedCache(8 << 20)
_CURVES: ByteLimitedCache[tuple[tuple[Path, int], ...], dict[str, Curve]] = ByteLimitedCache(16 << 20)

PlainCurves = dict[str, dict[str, list[Any]]]


@dataclass(frozen=True)
class RunView:
    """One run of the racer at this moment."""

    run_id: str
    algorithm: str
    track: str
    seed: int
    steps: int  # to train for
    step: int  # reached
    state: str  # starting, running, stopped, finished or failed
    started: str | None
    checkpoints: tuple[int, ...] = ()
    has_model: bool = False
    error: str | None = None

    def as_plain(self) -> dict[str, Any]:
        """The run as the API gives it."""
        base = f"api/runs/{self.run_id}/checkpoints"
        return {
            "id": self.run_id,
            "algorithm": self.algorithm,
            "track": self.track,
            "seed": self.seed,
            "steps": self.steps,
            "step": self.step,
            "state": self.state,
            "started": self.started,
            "error": self.error,
            "checkpoints": [{"step": step, "policy": f"{base}/{step}/policy"} for step in self.checkpoints],
            "best": {"policy": f"api/drivers/run:{self.run_id}/policy"} if self.has_model else None,
        }


def is_run_id(run_id: str) -> bool:
    """Whether a run may have this id, which is the name of its folder."""
    return _ID.fullmatch(run_id) is not None


def run_folders() -> dict[str, Path]:
    """The folders of runs in the results folder, by id, newest first. Links and odd names are left out."""
    found: list[tuple[float, str, Path]] = []
    try:
        with os.scandir(EXPERIMENTS) as listing:
            for item in listing:
                config = Path(item.path) / CONFIG_NAME
                if is_run_id(item.name) and item.is_dir(follow_symlinks=False) and config.is_file():
                    found.append((config.stat().st_mtime, item.name, Path(item.path)))
    except OSError:
        return {}
    return {name: path for _, name, path in sorted(found, reverse=True)[:MAX_RUNS]}


def find_run_folder(run_id: str) -> Path:
    """The folder of a run; a TrainingError where there is no such run."""
    folder = run_folders().get(run_id)
    if folder is None:
        raise unknown_run(run_id)
    return folder


def unknown_run(run_id: str) -> TrainingError:
    """The error for an id that is no run's."""
    return TrainingError(f"run {run_id!r:.80} is not known. GET api/runs lists all.")


def read_config(folder: Path) -> RunConfig | None:
    """The configuration of a run of the racer; None for other environments, and where it cannot be read."""
    path = folder / CONFIG_NAME
    try:
        status = path.lstat()
        key = (path, status.st_mtime_ns, status.st_size)
        config = _CONFIGS.get(key)
        if config is None:
            if status.st_size > MAX_CONFIG_BYTES:
                return None
            open_run(str(folder))  # refuses a folder with links in it
            config = load_config(path)
            _CONFIGS.put(key, config, status.st_size)
    except (OSError, HotlapError):
        return None
    return config if config.is_racer and not config.is_remote else None


def view_run(run_id: str, folder: Path) -> RunView | None:
    """A run at this moment; None where it is no run of the racer."""
    config = read_config(folder)
    if config is None:
        return None
    files = RunFolder(folder, config.experiment_id)
    # A run that is being extended has the results of before; a finished one holds its lock while it writes them.
    is_running = find_holder(folder) is not None
    is_finished = files.is_finished and not is_running
    return RunView(
        run_id=run_id,
        algorithm=config.algo,
        track=one_road(config.racer.track),
        seed=config.seed,
        steps=config.steps,
        step=config.steps if is_finished else min(_last_step(files.journal), config.steps),
        state="running" if is_running else "finished" if is_finished else "stopped",
        started=_utc_text(files.config),
        checkpoints=tuple(CheckpointManager(folder).steps()),
        has_model=files.best.is_file() or files.model.is_file(),
    )


def read_curves(folder: Path) -> PlainCurves:
    """The curves of a run, by the API's names; empty ones are left out."""
    try:
        paths = sorted((folder / "tensorboard").glob("events.out.tfevents.*"))
        sizes = tuple((path, path.stat().st_size) for path in paths)
        if sum(size for _, size in sizes) > MAX_EVENT_BYTES:
            raise ModelError(f"run {folder.name}: its event files are larger than {MAX_EVENT_BYTES >> 20} MB.")
        curves = _CURVES.get(sizes)
        if curves is None:
            open_run(str(folder))  # refuses a folder with links in it
            every = read_events(folder / "tensorboard")
            curves = {name: every[key] for name, key in CURVES.items() if key in every}
            _CURVES.put(sizes, curves, 64 + sum(24 * len(curve) for curve in curves.values()))
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, HotlapError):
            raise
        raise ModelError(f"run {folder.name}: its event files cannot be read.") from None
    return {
        name: {"step": curve.step.tolist(), "value": curve.value.tolist()} for name, curve in curves.items() if curve
    }


def new_points(before: PlainCurves, after: PlainCurves) -> PlainCurves:
    """The points that `after` has more than `before`; all of a curve that no longer begins with the points before."""
    found: PlainCurves = {}
    for name, curve in after.items():
        old = before.get(name, {"step": []})["step"]
        kept = len(old) if curve["step"][: len(old)] == old else 0
        if len(curve["step"]) > kept:
            found[name] = {"step": curve["step"][kept:], "value": curve["value"][kept:]}
    return found


def _last_step(journal: Path) -> int:
    """The step of a journal's last complete line; 0 where there is none."""
    try:
        descriptor = open_plain(journal, os.O_RDONLY)
    except OSError:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    try:
        return int(json.loads(lines[-1])["timestep"]) if lines else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0


def _utc_text(path: Path) -> str | None:
    try:
        return f"{datetime.fromtimestamp(path.stat().st_mtime, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    except OSError:
        return None

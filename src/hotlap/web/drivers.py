"""The drivers of the page, found by id: built-in ones, shipped models, and models in the results folder."""

import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from hotlap.atomic_files import refuse_not_plain
from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import DriverError, HotlapError, InputFileError, ModelError
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import SHIPPED_NAMES, shipped_path
from hotlap.runs.find_driver import find_model
from hotlap.training.checkpoint import CheckpointManager
from hotlap.web.page_data import drivers_list, page_file, recorded_run
from hotlap.web.policy_file import policy_bytes, read_policy_bytes
from hotlap.web.runs import find_run_folder, read_config, run_folders


class UnknownDriverError(DriverError):
    """There is no driver of this id."""


DriverKind = Literal["champion", "generalist", "model", "casual", "optimal"]

RECORDED_ID = "recorded"
MAX_CACHED_POLICY_BYTES = 16 << 20
_RUN = re.compile(r"run:([A-Za-z0-9][A-Za-z0-9._-]{0,127})(?:@(0|[1-9]\d{0,14}))?", re.ASCII)
_POLICIES: ByteLimitedCache[tuple[Path, int, int], bytes] = ByteLimitedCache(MAX_CACHED_POLICY_BYTES)


def list_drivers(track_id: str, *, has_optimal: bool) -> list[dict[str, Any]]:
    """The drivers that can drive a track beside those with data files, as the API gives them."""
    found = []
    if has_optimal:
        found.append(_describe("optimal", "optimal", "optimal", None, on_track=track_id))
    found.append(_describe("casual", "casual", "casual", None, on_track=track_id))
    for name, folder in run_folders().items():
        config = read_config(folder)
        if config is None or not _has_model(folder):
            continue
        track = None if config.racer.is_generated else config.racer.track  # one trained on a stream drives any road
        found.append(_describe(f"run:{name}", name, "model", track, has_policy=True))
    return found


def kind_of(driver_id: str) -> DriverKind:
    """The kind of a driver; an UnknownDriverError where the id is no driver's."""
    if driver_id in ("champion", "generalist", "casual", "optimal"):
        return driver_id  # type: ignore[return-value]
    if driver_id == RECORDED_ID or _RUN.fullmatch(driver_id):
        return "model"
    raise _unknown(driver_id)


def find_model_path(driver_id: str, track_id: str | None = None) -> Path:
    """The model file of a driver; a DriverError where there is none."""
    if driver_id in SHIPPED_NAMES:
        path = shipped_path(driver_id, track_id or "")
        if path is None:
            raise _unknown(driver_id)
        return path
    match = _RUN.fullmatch(driver_id)
    folder = run_folders().get(match[1]) if match else None
    if match is None or folder is None:
        raise _unknown(driver_id)
    if match[2] is not None:
        return find_checkpoint(match[1], int(match[2]))
    try:
        path = find_model(str(folder))
    except InputFileError:
        raise _unknown(driver_id) from None
    return _plain(path)


def find_checkpoint(run_id: str, step: int) -> Path:
    """The checkpoint of a run at a step; a DriverError where there is none."""
    checkpoints = CheckpointManager(find_run_folder(run_id))
    if step not in checkpoints.steps():
        raise UnknownDriverError(f"run {run_id}: it has no checkpoint at step {step}.")
    return _plain(checkpoints.path_of(step))


def read_policy(path: Path) -> bytes:
    """The policy file of a model; kept in memory while the file does not change."""
    try:
        status = path.stat()
    except OSError:
        raise ModelError(f"{path.name}: it is gone. Choose another.") from None
    key = (path, status.st_mtime_ns, status.st_size)
    content = _POLICIES.get(key)
    if content is None:
        content = policy_bytes(read_model(path))
        _POLICIES.put(key, content, len(content))
    return content


def policy_of(driver_id: str, track_id: str) -> bytes:
    """The policy file of a driver as the page loads it for a track; a DriverError where there is none."""
    for driver in drivers_list(track_id):
        is_wanted = driver["id"] == driver_id and driver["policy"]
        content = page_file(driver["policy"].removeprefix("data/")) if is_wanted else None
        if content is not None:
            return content[0]
    return read_policy(find_model_path(driver_id, track_id))


def make_model_driver(driver_id: str, track_id: str) -> PackedDriver:
    """The driver of a model, for the server's own drives."""
    if driver_id == RECORDED_ID:
        return _make_recorded_driver(track_id)
    model = read_model(find_model_path(driver_id, track_id))
    return PackedDriver.from_model(model, driver_id.removeprefix("run:"))


def shipped_model_ids(track_id: str) -> list[str]:
    """The drivers with a policy that ship for a track."""
    found = [kind for kind in SHIPPED_NAMES if shipped_path(kind, track_id) is not None]
    run = recorded_run()
    return [*found, RECORDED_ID] if run and run["track"] == track_id else found


def _make_recorded_driver(track_id: str) -> PackedDriver:
    """The best policy of the training run that ships, on the track that it was trained on."""
    run = recorded_run()
    content = page_file(run["best"]["policy"].removeprefix("data/")) if run and run["track"] == track_id else None
    if content is None:
        raise _unknown(RECORDED_ID)
    packed, header = read_policy_bytes(content[0])
    return PackedDriver(packed, int(header["action_repeat"]), RECORDED_ID)


def _describe(
    driver_id: str,
    name: str,
    kind: DriverKind,
    track: str | None,
    *,
    has_policy: bool = False,
    on_track: str | None = None,
) -> dict[str, Any]:
    base = f"api/drivers/{quote(driver_id, safe=':@')}"
    return {
        "id": driver_id,
        "name": name,
        "kind": kind,
        "track": track,
        "policy": f"{base}/policy" if has_policy else None,
        "replay": None if has_policy else f"{base}/replay?track={on_track}",
    }


def _has_model(folder: Path) -> bool:
    try:
        _plain(find_model(str(folder)))
    except HotlapError:
        return False
    return True


def _plain(path: Path) -> Path:
    """The path, if it is a regular file and no link: a run's folder may be somebody else's."""
    try:
        refuse_not_plain(path)
    except OSError as error:
        raise DriverError(f"{path.name}: cannot be used ({error.strerror or error}). Choose another.") from None
    return path


def _unknown(driver_id: str) -> UnknownDriverError:
    return UnknownDriverError(f"driver {driver_id!r:.80} is not known. GET api/drivers lists all.")

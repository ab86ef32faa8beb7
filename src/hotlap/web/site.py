"""Writes the page as a folder of static files for any web host."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from hotlap.errors import OutputFileError
from hotlap.tracks.registry import SPLITS, list_tracks
from hotlap.web.packed_file import pack_file
from hotlap.web.page_data import file_names, page_file, tracks_list
from hotlap.web.road_files import road_files

STATIC = Path(str(files("hotlap.web"))) / "static"
MARKER = "sim.json"  # by which a folder is recognised as a page written before


def static_files() -> list[str]:
    """The files of the page itself, as relative paths with `/`, in a fixed order."""
    return sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file())


def generated_ids() -> list[str]:
    """The ids of the generated tracks, which a site may have too."""
    return [entry.track_id for entry in list_tracks() if entry.source in SPLITS]


def write_site(folder: Path, generated: Sequence[str] = ()) -> int:
    """Write the page with its data into `folder`, which is made if needed; returns the number of bytes.

    `generated` are ids of generated tracks to offer beside the built-in ones. An older page there is replaced. A folder
    with anything else in it is refused.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.scandir(folder) as entries:
            is_strange = any(True for _ in entries) and not (folder / MARKER).is_file()
    except OSError as error:
        raise OutputFileError(f"{folder}: cannot be used ({error.strerror}). Name another folder.") from None
    if is_strange:
        raise OutputFileError(f"{folder}: is not empty and holds no page of hotlap. Name a new or an empty folder.")
    content = {name: (STATIC / name).read_bytes() for name in static_files()}
    names = file_names(generated)
    data = {name: found[0] for name in names if (found := page_file(name)) is not None} | road_files()
    data["tracks.json"] = json.dumps(tracks_list(generated), allow_nan=False).encode()
    content |= {f"data/{name}": file for name, file in data.items()}
    # The page asks for the server's status; without this file the browser's console would show an error.
    content["api/status"] = b'{"server": null}\n'
    _refuse_links(folder, content)
    content |= {f"data/{name}": pack_file(name, file) for name, file in data.items()}  # last: it takes longest
    try:
        _replace_all(folder, content)
    except OSError as error:
        raise OutputFileError(
            f"{folder}: the page cannot be written ({error.strerror}). Free some space or name another folder."
        ) from None
    return sum(map(len, content.values()))


def _refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse a page with a link where a file or folder of ours goes: it could lead anywhere."""
    places = {place for name in names for place in (PurePosixPath(name), *PurePosixPath(name).parents)}
    for place in sorted(places - {PurePosixPath()}):
        if (folder / place).is_symlink():
            raise OutputFileError(f"{folder / place}: is a link, and a page is not written through links. Remove it.")


def _replace_all(folder: Path, content: Mapping[str, bytes]) -> None:
    """Replace files once all are written, so that a full disk leaves the page of before."""
    with TemporaryDirectory(prefix=".site-", dir=folder) as drafts:
        for number, name in enumerate(content):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (Path(drafts) / str(number)).open("xb") as file:
                file.write(content[name])
                file.flush()
                os.fsync(file.fileno())
        for number, name in enumerate(content):
            (Path(drafts) / str(number)).replace(folder / name)

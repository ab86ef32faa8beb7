"""Writes the page as a folder of static files for any web host."""

import os
from importlib.resources import files
from pathlib import Path

from hotlap.atomic_files import write_atomically
from hotlap.errors import OutputFileError
from hotlap.web.page_data import file_names, page_file

STATIC = Path(str(files("hotlap.web"))) / "static"
MARKER = "sim.json"  # by which a folder is recognised as a page written before


def static_files() -> list[str]:
    """The files of the page itself, as relative paths with `/`, in a fixed order."""
    return sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file())


def write_site(folder: Path) -> int:
    """Write the page with its data into `folder`, which is made if needed; returns the number of bytes.

    An older page there is replaced. A folder with anything else in it is refused.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.scandir(folder) as entries:
            is_strange = any(True for _ in entries) and not (folder / MARKER).is_file()
    except OSError as error:
        raise OutputFileError(f"{folder}: cannot be used ({error.strerror}). Name another folder.") from None
    if is_strange:
        raise OutputFileError(f"{folder}: is not empty and holds no page of hotlap. Name a new or an empty folder.")
    num_bytes = 0
    for name in static_files():
        num_bytes += _write(folder / name, (STATIC / name).read_bytes())
    for name in file_names():
        found = page_file(name)
        if found is not None:
            num_bytes += _write(folder / "data" / name, found[0])
    # The page asks for the server's status; without this file the browser's console would show an error.
    return num_bytes + _write(folder / "api" / "status", b'{"server": null}\n')


def _write(path: Path, content: bytes) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFileError(f"{path.parent}: cannot be made ({error.strerror}). Name another folder.") from None
    write_atomically(path, content)
    return len(content)

"""A small protocol, an entry of it, and the means to change an entry."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotlap.benchmark.entry_file import DOCUMENT, write_entry
from hotlap.benchmark.protocol import BUILT_IN, Protocol, TrackStarts, load_protocol
from hotlap.benchmark.table import measure
from hotlap.errors import HotlapError
from hotlap.runs.find_driver import find_driver

FIRST_SEED = 500
FIRST_SCENARIO = 2  # in which the champion is at fault; in the next it overtakes
SEEDS = (FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2)


def small_protocol(num_scenarios: int = 2) -> Protocol:
    """Three starts on track-01 and some scenarios."""
    whole = load_protocol()
    track = whole.laps[BUILT_IN][0]
    return replace(
        whole,
        laps={BUILT_IN: (TrackStarts(track.track_id, track.road, SEEDS),)},
        scenarios=whole.scenarios[FIRST_SCENARIO : FIRST_SCENARIO + num_scenarios],
    )


def write_small_entry(path: Path, protocol: Protocol, driver: str = "champion", model: bytes | None = None) -> Path:
    """The entry of a driver."""
    recording, laps, passings, _ = measure(lambda track: find_driver(driver, track), protocol, protocol.parts)
    write_entry(path, driver, protocol, recording, laps, passings, model)
    return path


def members_of(path: Path) -> dict[str, bytes]:
    """All members of an entry."""
    with zipfile.ZipFile(path) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def write_members(path: Path, members: dict[str, bytes]) -> Path:
    """An entry of these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return path


def change_document(source: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of an entry whose document was changed."""
    members = members_of(source)
    document = json.loads(members[DOCUMENT])
    change(document)
    return write_members(target, members | {DOCUMENT: json.dumps(document).encode()})


def refusal_of(
    read: Callable[[Path, Protocol], object], error: type[HotlapError], path: Path, protocol: Protocol
) -> str:
    """The one line with which `read` refuses a file; it names the file."""
    with pytest.raises(error) as caught:
        read(path, protocol)
    text = str(caught.value)
    assert text.isprintable()
    assert str(path) in text
    return text

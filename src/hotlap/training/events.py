"""TensorBoard's event files, cut back to a step when a run goes on from there."""

import struct
from collections.abc import Iterator
from pathlib import Path

from hotlap.errors import OutputFileError

# A record is its length (8 bytes), a checksum of that (4), the content, and a checksum of the content (4).
_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4


def drop_events_after(folder: Path, step: int) -> None:
    """Remove what was logged past `step`; a record torn by a crash goes with it."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("events.out.tfevents.*")):
        try:
            content = path.read_bytes()
            kept = b"".join(record for record in _records(content) if _step_of(record) <= step)
            if kept != content:
                draft = path.with_name(f".{path.name}.partial")
                draft.write_bytes(kept)
                draft.replace(path)
        except OSError as error:
            raise OutputFileError(f"{path}: cannot be cut back to step {step} ({error.strerror}).") from None


def _records(content: bytes) -> Iterator[bytes]:
    place = 0
    while place + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, place)
        end = place + _HEAD.size + length + _TAIL_BYTES
        if end > len(content):
            return
        yield content[place:end]
        place = end


def _step_of(record: bytes) -> int:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    try:
        return int(Event.FromString(record[_HEAD.size : -_TAIL_BYTES]).step)
    except DecodeError:
        return 1 << 62  # damaged: dropped, whatever the step

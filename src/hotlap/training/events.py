"""TensorBoard's event files, cut back to a step when a run goes on from there."""

import struct
from collections.abc import Iterator
from contextlib import suppress
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
        draft = path.with_name(f".{path.name}.partial")
        try:
            content = path.read_bytes()
            kept = b"".join(_records_until(content, step))
            if kept != content:
                draft.write_bytes(kept)
                draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise OutputFileError(
                f"{path}: cannot be cut back to step {step} ({error.strerror}). Check the folder and the room left."
            ) from None


def _records_until(content: bytes, step: int) -> Iterator[bytes]:
    """The whole records of a file, in order, whose step is not past `step`."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]

    for record in _records(content):
        with suppress(DecodeError):  # damaged: dropped, whatever its step was
            if Event.FromString(record[_HEAD.size : -_TAIL_BYTES]).step <= step:
                yield record


def _records(content: bytes) -> Iterator[bytes]:
    place = 0
    while place + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, place)
        end = place + _HEAD.size + length + _TAIL_BYTES
        # No event is empty: zeros are what a power cut leaves where content was to come.
        if length == 0 or end > len(content):
            return
        yield content[place:end]
        place = end

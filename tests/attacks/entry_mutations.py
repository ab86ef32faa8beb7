"""Random mutations of an entry of the benchmark: of its bytes, its document, its actions and its zip."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

Members = dict[str, bytes]
DOCUMENT = "entry.json"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**70, 0.0, -0.5, 1e308, 30.0, "", "x", "\x1b[2J", "é" * 300, [], {}, [[]], [1],
    {"x": 1}, "0" * 16, "1-000000000000",
)  # fmt: skip


def zipped(members: Members, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Members as a zip."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def mutate(rng: random.Random, whole: bytes, members: Members) -> tuple[str, bytes]:
    """The name of a mutation, and the mutated entry."""
    kind = rng.choice(list(KINDS))
    return kind, KINDS[kind](rng, whole, dict(members))


def _flip(rng: random.Random, whole: bytes, members: Members) -> bytes:
    content = bytearray(whole)
    for _ in range(rng.choice((1, 1, 4, 64))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def _flip_directory(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """Where a zip says how large its members are, and what they are called."""
    content, begin = bytearray(whole), whole.index(b"PK\x01\x02")
    for _ in range(rng.choice((1, 2, 8))):
        content[rng.randrange(begin, len(content))] = rng.choice((0, 255, rng.randrange(256)))
    return bytes(content)


def _cut(rng: random.Random, whole: bytes, members: Members) -> bytes:
    return whole[: rng.randrange(len(whole))] + rng.choice((b"", b"\0" * 1000, whole))


def _claim_size(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """A member that says it is huge."""
    content, at = bytearray(whole), whole.index(b"PK\x01\x02")
    struct.pack_into("<I", content, at + rng.choice((20, 24)), rng.choice((2**32 - 1, 2**30, 5 << 20, 0)))
    return bytes(content)


def _bomb(rng: random.Random, whole: bytes, members: Members) -> bytes:
    name = rng.choice([*members, "more.actions", "model.zip"])
    return zipped(members | {name: bytes([rng.choice((0, 32, 91, 123))]) * (rng.choice((1, 5, 70)) << 20)})


def _document(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """A value of the document is another, missing, or there twice."""
    document = json.loads(members[DOCUMENT])
    for _ in range(rng.choice((1, 1, 3))):
        place: Any = document
        while True:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
                place = place[key]
                continue
            break
        change = rng.random()
        if change < 0.2 and isinstance(place, list):
            place.append(place[key])
        elif change < 0.35:
            del place[key]
        elif change < 0.5 and isinstance(place[key], float):
            place[key] = struct.unpack(
                "<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", place[key]))[0] ^ 1)
            )[0]
        else:
            place[key] = rng.choice(VALUES)
        if not document:
            break
    return zipped(members | {DOCUMENT: json.dumps(document).encode()})


def _text(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """Bytes of the document."""
    text = bytearray(members[DOCUMENT])
    for _ in range(rng.choice((1, 3))):
        at = rng.randrange(len(text))
        text[at : at + rng.randrange(3)] = rng.choice(
            (b"[", b"]", b"{", b'"', b"NaN", b"1e999", b"\xff", b"-", b"9", b",")
        )
    return zipped(members | {DOCUMENT: bytes(text)})


def _actions(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """Actions and how long they are held."""
    name = rng.choice([one for one in members if one.endswith(".actions")])
    content = bytearray(members[name])
    for _ in range(rng.choice((1, 1, 20))):
        at = 4 * rng.randrange(len(content) // 4)
        value = rng.choice(
            (b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\1\0\0\0", rng.randbytes(4))
        )
        content[at : at + 4] = value
    return zipped(members | {name: bytes(content)})


def _members(rng: random.Random, whole: bytes, members: Members) -> bytes:
    """A member is missing, another's, renamed, or one too many."""
    one, two = rng.choice(list(members)), rng.choice(list(members))
    change = rng.randrange(5)
    if change == 0:
        del members[one]
    elif change == 1:
        members[one] = members[two]
    elif change == 2:
        members[rng.choice(("../x", "/etc/passwd", "a/b.actions", "x" * 300, " ", "model.zip"))] = members.pop(one)
    elif change == 3:
        members[rng.choice(("model.zip", "test-000.actions", "evil.py"))] = rng.randbytes(rng.choice((0, 10, 1000)))
    else:
        members[one] = members[one][: rng.randrange(len(members[one]) + 1)]
    return zipped(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))


KINDS: dict[str, Callable[[random.Random, bytes, Members], bytes]] = {
    "bytes": _flip,
    "directory": _flip_directory,
    "cut": _cut,
    "size": _claim_size,
    "bomb": _bomb,
    "document": _document,
    "text": _text,
    "actions": _actions,
    "members": _members,
}

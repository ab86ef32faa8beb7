"""A damaged or hostile file is refused in one line, with nothing executed, written or allocated."""

import errno
import hashlib
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from hotlap.errors import ArchiveError, InputFileError
from hotlap.models import archive as subject
from hotlap.models.archive import Archive, read_about, read_archive, write_archive
from models.forgery import (
    DOCUMENT,
    NUMBERS,
    PAYLOADS,
    SMALL,
    TENSORS,
    forge,
    forge_zip,
    manifest,
    memory_limit,
    patched,
    refusal,
)

FIRST = ("manifest.json", manifest(PAYLOADS))
OTHERS = list(PAYLOADS.items())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.zip"


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("name", ["data.pkl", "data", "config.json", "policy.safetensors", "manifest.json"])
def test_a_pickle_is_not_executed_under_any_name(path, name):
    marker = path.with_name("marker")
    payload = pickle.dumps(Malicious(marker))
    pickle.loads(payload)
    assert marker.exists()  # it works when it is unpickled
    marker.unlink()
    refusal(path, forge_zip([(name, payload)]) if name == "manifest.json" else forge({name: payload}))
    refusal(path, payload)
    assert not marker.exists()


HOSTILE_NAMES = [
    *("../evil.json", "/etc/evil.json", "c:\\evil.json", "a/b.json", "evil.json/", "EVIL.json", "evil.py", "evil"),
    *("evil.json.pkl", ".json", "évil.json", "x" * 65 + ".json", "evil\n.json", "evil .json"),
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_that_could_be_a_path_is_refused(path, name):
    assert "holds only .json and .safetensors" in refusal(path, forge({name: b"{}"}))


ZIP_FLAWS = {
    "bzip2": ({"compress_type": zipfile.ZIP_BZIP2}, "uses compression 12"),
    "lzma": ({"compress_type": zipfile.ZIP_LZMA}, "uses compression 14"),
    "a symlink": ({"external_attr": 0o120777 << 16}, "is encrypted or a link"),
}


@pytest.mark.parametrize(("changes", "text"), ZIP_FLAWS.values(), ids=ZIP_FLAWS)
def test_a_member_of_an_unsupported_type_is_refused(path, changes, text):
    assert text in refusal(path, forge_zip([FIRST, *OTHERS], **changes))
    assert text in refusal(path, read=read_about)


def test_an_encrypted_member_is_refused(path):
    data = forge()
    flags = data.rindex(b"policy.safetensors") - 46 + 8
    assert "is encrypted or a link" in refusal(path, patched(data, flags, b"\1"))


MEMBERS = {
    "nothing": ([], "must hold manifest.json"),
    "no manifest": (OTHERS, "must hold manifest.json"),
    "manifest twice": ([FIRST, FIRST, *OTHERS], "each once"),
    "a member twice with other content": ([FIRST, ("config.json", b"{}"), *OTHERS], "each once"),
    "a member too many": ([FIRST, *OTHERS, ("z.json", b"{}")], "lists other members than the file holds"),
    "a member too few": ([FIRST, OTHERS[0]], "lists other members than the file holds"),
    "1025 members": ([FIRST, *((f"m{index}.json", b"0") for index in range(1024))], "up to 1024 members"),
    "40,000 members": ([FIRST, *((f"m{index}.json", b"0") for index in range(40_000))], "directory is larger"),
}


@pytest.mark.parametrize(("members", "text"), MEMBERS.values(), ids=MEMBERS)
def test_missing_repeated_or_unlisted_members_are_refused(path, members, text):
    assert text in refusal(path, forge_zip(members))
    assert text in refusal(path, read=read_about)


def shard(number: int, count: int) -> str:
    return f"policy-{number:05}-of-{count:05}.safetensors"


SHARDS = {
    "the first is missing": [shard(2, 2)],
    "one in the middle is missing": [shard(1, 3), shard(3, 3)],
    "one too many": [shard(1, 2), shard(2, 2), shard(3, 2)],
    "one of another number": [shard(1, 2), shard(2, 3)],
    "one of one": [shard(1, 1)],
    "one without a number": ["policy.safetensors", shard(1, 2), shard(2, 2)],
    "counted from zero": [shard(0, 2), shard(1, 2)],
}


@pytest.mark.parametrize("names", SHARDS.values(), ids=SHARDS)
def test_a_missing_or_unexpected_shard_is_refused(path, names):
    data = forge(dict.fromkeys(names, TENSORS))
    assert "lacks a shard of policy, or holds one too many" in refusal(path, data)
    assert "lacks a shard of policy" in refusal(path, read=read_about)


def test_the_whole_set_of_shards_that_those_differ_from_is_read(path):
    rows = save({"w": NUMBERS})
    path.write_bytes(forge({shard(2, 2): rows, shard(1, 2): rows}))
    np.testing.assert_array_equal(read_archive(path).tensors["policy"]["w"], np.concatenate([NUMBERS, NUMBERS]))


MANIFESTS = {
    "another format": ({"format": "other"}, "is not that of a model"),
    "a newer version": ({"format_version": 3}, "has format version 3; this Hotlap reads version 2"),
    "version true": ({"format_version": True}, "has format version True"),
    "no version": ({"format_version": None}, "has format version None"),
    "about a list": ({"about": [1]}, "other fields than it should"),
    "one field more": ({"more": 1}, "other fields than it should"),
    "no members": ({"members": {}}, "lists other members"),
    "members as a list": ({"members": list(PAYLOADS)}, "lists other members"),
    "its own digest": ({"members": dict.fromkeys([*PAYLOADS, "manifest.json"], "0" * 64)}, "lists other members"),
}


@pytest.mark.parametrize(("changes", "text"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_bad_manifest_is_refused(path, changes, text):
    assert text in refusal(path, forge(**changes), read_about)
    assert text in refusal(path)


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("digest", ["0" * 64, "", 7, None])
def test_a_wrong_digest_is_refused(path, name, digest):
    digests = {each: hashlib.sha256(payload).hexdigest() for each, payload in PAYLOADS.items()}
    data = forge(members={**digests, name: digest})
    assert f"{name} does not match its digest: it is damaged" in refusal(path, data)


# --- false sizes ---


@pytest.mark.parametrize("name", ["manifest.json", "config.json", "policy.safetensors"])
@pytest.mark.parametrize("is_size_false", [False, True])
def test_a_zip_bomb_is_refused_by_its_declared_and_by_its_real_size(path, name, is_size_false):
    bomb = b'"' + b" " * (64 << 20) + b'"'
    members = [("manifest.json", manifest({name: bomb})), (name, bomb)]
    data = forge_zip(members[name == "manifest.json" :], compress_type=zipfile.ZIP_DEFLATED)
    assert len(data) < 1 << 17
    if is_size_false:
        data = patched(data, data.rindex(name.encode()) - 46 + 24, struct.pack("<I", 1000))
    path.write_bytes(data)
    with memory_limit(8 << 20):
        refusal(path)


@pytest.mark.parametrize("size", [0, 1, len(TENSORS) - 1, len(TENSORS) + 1, 1 << 20, (1 << 32) - 2])
@pytest.mark.parametrize("fields", [1, 2])
def test_a_false_size_is_refused(path, size, fields):
    data = forge()
    data = patched(data, data.rindex(b"policy.safetensors") - 46 + 20, struct.pack("<I", size) * fields)
    path.write_bytes(data)
    with memory_limit():
        refusal(path)


def test_the_size_of_compressed_members_is_bounded(path, monkeypatch):
    data = forge_zip([FIRST, *OTHERS], compress_type=zipfile.ZIP_DEFLATED)
    size = data.rindex(b"policy.safetensors") - 46 + 24
    assert "larger than it can hold" in refusal(path, patched(data, size, struct.pack("<I", 1 << 29)))
    monkeypatch.setattr(subject, "MAX_INFLATED_BYTES", 10)
    assert "larger than it can hold" in refusal(path, data)


def test_members_that_share_their_bytes_are_refused(path):
    """The trick of a zip bomb without recursion: many entries of the directory point to one member."""
    members = {f"m{index}.json": b"0" * 1000 for index in range(20)}
    data = forge_zip([("manifest.json", manifest(members)), *members.items()])
    second, end = data.index(b"m0.json") - 30, data.index(b"m1.json") - 30
    directory = data[data.index(b"PK\1\2") :]
    for name in members:
        directory = patched(directory, directory.index(name.encode()) - 4, struct.pack("<I", second))
    directory = patched(directory, len(directory) - 6, struct.pack("<I", end))
    assert "claims members larger than it can hold" in refusal(path, data[:end] + directory)


@pytest.mark.parametrize("size", [10 << 30, 1 << 30])
def test_a_sparse_file_of_gigabytes_is_refused_at_once(path, size):
    path.touch()
    os.truncate(path, size)
    with memory_limit():
        refusal(path)


def test_a_directory_of_gigabytes_is_refused_unread(path):
    size = 3 << 30
    with path.open("wb") as file:
        file.seek(size)
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0))
    with memory_limit():
        assert "zip directory is larger" in refusal(path)


def test_too_much_json_is_refused_unread(path, monkeypatch):
    monkeypatch.setattr(subject, "MAX_DOCUMENTS_BYTES", 10)
    assert "holds more JSON" in refusal(path, forge())


# --- damage ---


def test_a_file_cut_short_anywhere_is_refused(path):
    write_archive(path, SMALL)
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        refusal(path)
        refusal(path, read=read_about)


def test_a_flipped_bit_is_refused_or_does_not_reach_the_content(path):
    written = Archive({"step": 7}, {"config": {"a": [1, 2.5, None]}}, {"policy": {"w": NUMBERS}, "rng": {}})
    write_archive(path, written)
    data = path.read_bytes()
    payload = range(data.index(NUMBERS.tobytes()), data.index(NUMBERS.tobytes()) + NUMBERS.nbytes)
    for bit in random.Random(42).sample(range(8 * len(data)), 1500):
        path.write_bytes(patched(data, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8])))
        try:
            got = read_archive(path)
        except ArchiveError:
            continue
        assert bit // 8 not in payload
        assert (got.about, got.documents, got.tensors.keys()) == (written.about, written.documents, {"policy", "rng"})
        np.testing.assert_array_equal(got.tensors["policy"]["w"], NUMBERS)


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\5\6" + bytes(18), bytes(22), bytes(5000), b"\x89PNG\r\n" * 50, DOCUMENT]
)
def test_a_file_that_is_not_a_zip_of_ours_is_refused(path, data):
    refusal(path, data)
    refusal(path, data, read_about)


def test_a_file_that_shrinks_while_it_is_read_is_refused(path, monkeypatch):
    real = subject.check_header

    def cut(*given):
        os.truncate(path, 1 << 19)
        return real(*given)

    write_archive(path, Archive({}, {}, {"policy": {"w": np.zeros(1 << 20)}}))
    monkeypatch.setattr(subject, "check_header", cut)
    refusal(path)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    for read in (read_archive, read_about):
        with pytest.raises(InputFileError, match=r"no-model\.zip: no such file\. Check the path\.$"):
            read(tmp_path / "no-model.zip")
        assert "is a folder or a device" in refusal(tmp_path, read=read)
        if hasattr(os, "mkfifo"):
            pipe = tmp_path / f"{read.__name__}.zip"
            os.mkfifo(pipe)
            assert "is a folder or a device" in refusal(pipe, read=read)


def test_a_file_without_read_permission_is_refused(path, monkeypatch):
    def locked(*_args, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    write_archive(path, SMALL)
    monkeypatch.setattr("pathlib.Path.open", locked)
    assert "cannot be read (Permission denied). Check its permissions" in refusal(path)

"""Whatever is put in a model file's place is refused, in one line, with nothing run, written or allocated."""

import errno
import hashlib
import io
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import HotlapError, InputFileError
from hotlap.models import archive as subject
from hotlap.models.archive import Archive, read_about, read_archive, write_archive
from models.forgery import (
    DOCUMENT,
    NUMBERS,
    PAYLOADS,
    SMALL,
    TENSORS,
    entry,
    forge,
    forge_zip,
    frugal,
    manifest,
    patched,
    refusal,
    safetensors,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.zip"


class Malicious:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("name", ["data.pkl", "data", "config.json", "policy.safetensors", "manifest.json"])
def test_a_pickle_is_not_run_whatever_it_is_called(path, name):
    marker = path.with_name("marker")
    payload = pickle.dumps(Malicious(marker))
    pickle.loads(payload)
    assert marker.exists()  # it does what it is for
    marker.unlink()
    forged = forge_zip([(name, payload)]) if name == "manifest.json" else forge({name: payload})
    refusal(path, forged)
    refusal(path, payload)
    assert not marker.exists()


@pytest.mark.timeout(120)  # importing torch and Stable-Baselines3 on a busy machine
def test_a_model_of_plain_stable_baselines3_is_refused(path):
    from stable_baselines3 import PPO

    PPO("MlpPolicy", "CartPole-v1", device="cpu").save(path)
    assert "holds 'data'; a model or checkpoint holds only .json and .safetensors" in refusal(path)


HOSTILE_NAMES = [
    "../evil.json",
    "/etc/evil.json",
    "c:\\evil.json",
    "a/b.json",
    "evil.json/",
    "EVIL.json",
    "evil.py",
    "evil.json.pkl",
    "evil",
    ".json",
    "évil.json",
    "x" * 65 + ".json",
    "evil\n.json",
    "evil .json",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_that_could_lead_elsewhere_is_refused(path, name):
    assert "holds only .json and .safetensors" in refusal(path, forge({name: b"{}"}))


ZIP_FLAWS = {
    "deflated": {"compress_type": zipfile.ZIP_DEFLATED},
    "bzip2": {"compress_type": zipfile.ZIP_BZIP2},
    "a symlink": {"external_attr": 0o120777 << 16},
    "executable": {"external_attr": 0o100755 << 16},
    "a DOS folder": {"external_attr": 0x10},
    "made on Unix": {"create_system": 3},
    "another version": {"create_version": 20},
    "another version needed": {"extract_version": 45},
    "another date": {"date_time": (2026, 1, 1, 0, 0, 0)},
    "a member's comment": {"comment": b"hello"},
    "extra field": {"extra": b"\xfe\xca\0\0"},
    "internal attributes": {"internal_attr": 1},
}


@pytest.mark.parametrize("changes", ZIP_FLAWS.values(), ids=ZIP_FLAWS)
def test_a_zip_made_in_another_way_is_refused(path, changes):
    members = [("manifest.json", manifest(PAYLOADS)), *PAYLOADS.items()]
    assert forge_zip(members) == forge()
    refusal(path, forge_zip(members, **changes))
    refusal(path, forge_zip(members, **changes), read_about)


def test_a_zip_bomb_costs_nothing(path):
    bomb = {"config.json": b'"' + b" " * (20 << 20) + b'"'}
    data = forge_zip([("manifest.json", manifest(bomb)), *bomb.items()], compress_type=zipfile.ZIP_DEFLATED)
    assert len(data) < 1 << 16
    path.write_bytes(data)
    with frugal():
        refusal(path)


FIRST = ("manifest.json", manifest(PAYLOADS))
OTHERS = list(PAYLOADS.items())
OUT_OF_ORDER = "must hold manifest.json, then the others by name, each once"
MEMBERS = {
    "nothing": ([], OUT_OF_ORDER),
    "no manifest": (OTHERS, OUT_OF_ORDER),
    "manifest last": ([*OTHERS, FIRST], OUT_OF_ORDER),
    "members swapped": ([FIRST, *OTHERS[::-1]], OUT_OF_ORDER),
    "manifest twice": ([FIRST, FIRST, *OTHERS], OUT_OF_ORDER),
    "a member twice": ([FIRST, OTHERS[0], OTHERS[0], OTHERS[1]], OUT_OF_ORDER),
    "a member twice with another content": ([FIRST, ("config.json", b"{}"), *OTHERS], OUT_OF_ORDER),
    "a member too many": ([FIRST, *OTHERS, ("z.json", b"{}")], "lists other members than the file holds"),
    "a member too few": ([FIRST, OTHERS[0]], "lists other members than the file holds"),
    "33 members": ([FIRST, *((f"m{index:02}.json", b"0") for index in range(32))], "is not as Hotlap writes it"),
    "members by the hundred": ([FIRST, *((f"m{index:02}.json", b"0") for index in range(100))], "does not lie where"),
}


@pytest.mark.parametrize(("members", "text"), MEMBERS.values(), ids=MEMBERS)
def test_members_missing_repeated_or_out_of_order_are_refused(path, members, text):
    assert text in refusal(path, forge_zip(members))
    assert text in refusal(path, read=read_about)


@pytest.mark.parametrize("record", ["local", "directory", "both"])
@pytest.mark.parametrize("size", [0, 1, len(TENSORS) - 1, len(TENSORS) + 1, 1 << 20, (1 << 32) - 1])
@pytest.mark.parametrize("fields", [1, 2])
def test_a_false_size_is_refused(path, record, size, fields):
    data = forge()
    wrong = struct.pack("<I", size) * fields
    if record in {"local", "both"}:
        data = patched(data, data.index(b"policy.safetensors", data.index(DOCUMENT)) - 30 + 18, wrong)
    if record in {"directory", "both"}:
        data = patched(data, data.rindex(b"policy.safetensors") - 46 + 20, wrong)
    refusal(path, data)
    refusal(path, data, read_about)


def test_a_member_hidden_between_the_others_is_refused(path):
    data = forge()
    gap = data.index(b"PK\3\4", 4)
    whole = zipfile.ZipFile(io.BytesIO(data))
    moved = data[:gap] + b"hidden" + data[gap:]
    for info in whole.infolist()[1:]:
        place = moved.rindex(info.filename.encode()) - 4
        moved = patched(moved, place, struct.pack("<I", info.header_offset + 6))
    moved = patched(moved, len(moved) - 6, struct.pack("<I", whole.start_dir + 6))
    assert zipfile.ZipFile(io.BytesIO(moved)).testzip() is None  # to others it is a good zip
    refusal(path, moved)
    refusal(path, moved, read_about)


@pytest.mark.parametrize("read", [read_archive, read_about])
def test_anything_before_or_after_is_refused(path, read):
    data = forge()
    for wrong in (data + b"\0", data + b"garbage" * 1000, b"\0" + data, b"#!/bin/sh\n" + data, data + data):
        refusal(path, wrong, read)
    refusal(path, forge_zip([FIRST, *OTHERS], comment=b"hello"), read)


MANIFESTS = {
    "another format": ({"format": "other"}, "is not that of a model"),
    "a newer version": ({"format_version": 2}, "is of format version 2; this Hotlap reads version 1"),
    "a version that is none": ({"format_version": True}, "is of format version True"),
    "no version": ({"format_version": None}, "is of format version None"),
    "about no object": ({"about": [1]}, "other fields than it should"),
    "one field more": ({"more": 1}, "other fields than it should"),
    "no members": ({"members": {}}, "lists other members"),
    "members as a list": ({"members": list(PAYLOADS)}, "lists other members"),
    "no digests": ({"members": dict.fromkeys(PAYLOADS, 7)}, "no SHA-256 digest"),
    "short digests": ({"members": dict.fromkeys(PAYLOADS, "ab")}, "no SHA-256 digest"),
    "its own digest": (
        {"members": dict.fromkeys([*PAYLOADS, "manifest.json"], "0" * 64)},
        "no SHA-256 digest",
    ),
}


@pytest.mark.parametrize(("changes", "text"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_says_something_else_is_refused(path, changes, text):
    assert text in refusal(path, forge(**changes), read_about)
    assert text in refusal(path)


def test_a_manifest_that_is_no_object_is_refused(path):
    assert "is not that of a model" in refusal(path, forge_zip([("manifest.json", b"[]")]))


def test_a_wrong_digest_is_refused(path):
    digests = {name: hashlib.sha256(payload + b"x").hexdigest() for name, payload in PAYLOADS.items()}
    assert "config.json does not match its checksum: it is damaged" in refusal(path, forge(members=digests))
    digests["config.json"] = hashlib.sha256(DOCUMENT).hexdigest()
    assert "policy.safetensors does not match its checksum: it is damaged" in refusal(path, forge(members=digests))


def test_a_wrong_zip_checksum_is_refused_though_the_digest_is_right(path):
    data = forge()
    wrong = b"\1\2\3\4"
    data = patched(data, data.index(b"policy.safetensors", data.index(DOCUMENT)) - 30 + 14, wrong)
    data = patched(data, data.rindex(b"policy.safetensors") - 46 + 16, wrong)
    assert "policy.safetensors does not match its checksum" in refusal(path, data)


NOT_OUR_JSON = [
    *(b"", b"{", b"{} ", b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a": 1}', b"\xef\xbb\xbf{}"),
    *(b"NaN", b"-Infinity", b"1e999", b"1.0e0", b"01", b"9" * 5000),
    *(b'"\xc3\xa9"', b'"\\u0041"', b'"\\ud800"'),
    *(b"[" * 100_000, b"[" * 65 + b"]" * 65),
]


@pytest.mark.parametrize("text", NOT_OUR_JSON, ids=lambda text: repr(text[:16]))
def test_json_that_we_would_not_have_written_is_refused(path, text):
    refusal(path, forge({"config.json": text}))
    refusal(path, forge_zip([("manifest.json", text)]), read_about)


F32 = struct.pack("<f", 1.0)
NOT_OUR_TENSORS = {
    "empty": b"",
    "shorter than its length": b"\0\0\0",
    "no header": struct.pack("<Q", 0),
    "a header longer than the member": struct.pack("<Q", 1 << 40) + b"{}",
    "a header of everything": struct.pack("<Q", (1 << 64) - 1) + b"{}",
    "a list": safetensors([]),
    "a number": safetensors(7),
    "a tensor that is no object": safetensors({"w": 1}),
    "metadata": safetensors({"__metadata__": {"a": "b"}}),
    "metadata as a tensor": safetensors({"__metadata__": entry()}, F32),
    "not padded": struct.pack("<Q", 2) + b"{}",
    "padded too far": struct.pack("<Q", 16) + b"{}".ljust(16),
    "spaces inside": safetensors(b'{"w": {"data_offsets":[0,4],"dtype":"F32","shape":[1]}}', F32),
    "unknown dtype": safetensors({"w": entry("F8_E5M2", offsets=(0, 1))}, b"\0"),
    "dtype a list": safetensors({"w": entry(["F32"])}, F32),
    "no dtype": safetensors({"w": {"data_offsets": [0, 4], "shape": [1]}}, F32),
    "one field more": safetensors({"w": {**entry(), "more": 1}}, F32),
    "a side below zero": safetensors({"w": entry(shape=(-1,))}, F32),
    "two sides below zero": safetensors({"w": entry(shape=(-1, -1))}, F32),
    "a side that is true": safetensors({"w": entry(shape=(True,))}, F32),
    "a side with a point": safetensors({"w": entry(shape=(1.0,))}, F32),
    "shape a number": safetensors({"w": {**entry(), "shape": 1}}, F32),
    "33 dimensions": safetensors({"w": entry(shape=(1,) * 33)}, F32),
    "offsets too short": safetensors({"w": entry(offsets=(0, 3))}, F32),
    "offsets turned round": safetensors({"w": entry(offsets=(4, 0))}, F32),
    "a gap in front": safetensors({"w": entry(offsets=(4, 8))}, F32 + F32),
    "overlap": safetensors({"v": entry(), "w": entry()}, F32),
    "another order": safetensors({"v": entry(offsets=(4, 8)), "w": entry(offsets=(0, 4))}, F32 + F32),
    "narrow before wide": safetensors({"a": entry("U8", offsets=(0, 1)), "w": entry(offsets=(1, 5))}, b"\0" + F32),
    "numbers missing": safetensors({"w": entry()}, F32[:3]),
    "numbers left over": safetensors({"w": entry()}, F32 + b"\0"),
    "a terabyte": safetensors({"w": entry("U8", (1 << 40,), (0, 1 << 40))}, F32),
    "more than can be counted": safetensors({"w": entry("U8", (1 << 62, 1 << 62), (0, 1 << 124))}, F32),
    "nothing of a vast size": safetensors({"w": entry(shape=(0, 1 << 62, 1 << 62), offsets=(0, 0))}),
    "a truth that is two": safetensors({"w": entry("BOOL", offsets=(0, 1))}, b"\2"),
}


@pytest.mark.parametrize("payload", NOT_OUR_TENSORS.values(), ids=NOT_OUR_TENSORS)
def test_tensors_that_do_not_lie_as_we_lay_them_are_refused(path, payload):
    data = forge({"policy.safetensors": payload})
    with frugal():
        refusal(path, data)


def test_the_tensors_so_refused_are_those_that_differ_from_good_ones(path):
    path.write_bytes(forge({"policy.safetensors": safetensors({"w": entry()}, F32)}))
    assert read_archive(path).tensors["policy"]["w"].tolist() == [1.0]
    path.write_bytes(forge({"policy.safetensors": safetensors({"w": entry("BOOL", offsets=(0, 1))}, b"\1")}))
    assert read_archive(path).tensors["policy"]["w"].tolist() == [True]
    path.write_bytes(forge({"policy.safetensors": safetensors({})}))
    assert read_archive(path).tensors == {"policy": {}}


def test_the_header_is_padded_to_eight_bytes_and_no_further(path):
    for length in range(1, 9):
        path.write_bytes(forge({"policy.safetensors": safetensors({"w" * length: entry()}, F32)}))
        assert read_archive(path).tensors["policy"].keys() == {"w" * length}


@pytest.mark.parametrize("header", [b"{}", b"{" + b" " * (2 << 20) + b"}"], ids=["longer than the member", "too long"])
def test_a_header_is_not_read_before_its_length_is_believed(path, header):
    path.write_bytes(forge({"policy.safetensors": struct.pack("<Q", 2 << 20) + header}))
    with frugal():
        assert "policy.safetensors claims a header of 2097152 bytes" in refusal(path)


def test_a_file_cut_short_anywhere_is_refused(path):
    write_archive(path, SMALL)
    read_archive(path)
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        refusal(path)
        refusal(path, read=read_about)


def flip(path: Path, bit: int) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def test_a_single_flipped_bit_anywhere_is_refused(path):
    write_archive(path, Archive({"step": 7}, {"config": {"a": [1, 2.5, None]}}, {"policy": {"w": NUMBERS}, "rng": {}}))
    for bit in random.Random(42).sample(range(8 * path.stat().st_size), 1000):
        flip(path, bit)
        refusal(path)
        flip(path, bit)
    read_archive(path)


def test_a_flipped_bit_in_headers_or_manifest_is_seen_without_reading_the_rest(path):
    write_archive(path, SMALL)
    data = path.read_bytes()
    starts = {data.index(payload): len(payload) for payload in PAYLOADS.values()}
    unread = {place for start, length in starts.items() for place in range(start, start + length)}
    for place in sorted(set(range(len(data))) - unread):
        flip(path, 8 * place + place % 8)
        refusal(path, read=read_about)
        flip(path, 8 * place + place % 8)
    read_about(path)


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\5\6" + bytes(18), bytes(22), bytes(5000), b"\x89PNG\r\n" * 50, b"text\n" * 9]
)
def test_what_is_no_zip_of_ours_is_refused(path, data):
    refusal(path, data)
    refusal(path, data, read_about)


@pytest.mark.parametrize("size", [10 << 30, 1 << 32, (1 << 32) - 1, 1 << 30])
def test_a_file_of_gigabytes_of_nothing_is_refused_at_once(path, size):
    path.touch()
    os.truncate(path, size)
    with frugal():
        text = refusal(path)
    assert ("bytes long, which no model or checkpoint is" in text) == (size >= 1 << 32)


@pytest.mark.parametrize("name", ["manifest.json", "config.json"])
def test_gigabytes_of_json_are_refused_unread(path, name):
    members = subject._place([(each, 0, (3 << 30) * (each == name)) for each in ("manifest.json", "config.json")])
    with path.open("wb") as file:
        for member in members:
            file.seek(member.offset)
            file.write(subject._local_header(member))
        file.seek(members[-1].end)
        file.write(subject._directory(members))
    with frugal():
        assert "holds more JSON" in refusal(path)


def test_a_file_that_shrinks_while_it_is_read_is_refused(path, monkeypatch):
    def cut(file, member, real=subject._MemberReader):
        if member.name == "policy.safetensors":
            os.truncate(path, 1 << 19)
        return real(file, member)

    write_archive(path, Archive({}, {}, {"policy": {"w": np.zeros(1 << 20)}}))
    monkeypatch.setattr(subject, "_MemberReader", cut)
    assert "policy.safetensors ended while it was read" in refusal(path)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    for read in (read_archive, read_about):
        with pytest.raises(InputFileError, match=r"no-model\.zip: no such file\. Check the path\.$"):
            read(tmp_path / "no-model.zip")
        assert "is a folder or a device" in refusal(tmp_path, read=read)
        if hasattr(os, "mkfifo"):
            pipe = tmp_path / f"{read.__name__}.zip"
            os.mkfifo(pipe)
            assert "is a folder or a device" in refusal(pipe, read=read)


def test_a_file_that_may_not_be_read_is_refused(path, monkeypatch):
    def locked(*_args, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    write_archive(path, SMALL)
    monkeypatch.setattr("pathlib.Path.open", locked)
    assert "cannot be read (Permission denied). Check its permissions" in refusal(path)


def test_a_refused_file_is_any_other_error_of_ours_too(path):
    path.write_bytes(b"")
    with pytest.raises(HotlapError):
        read_archive(path)
    with pytest.raises(ValueError, match="Take another checkpoint"):
        read_archive(path)

"""Model files: what goes in comes out, to the byte, and a file is written whole or not at all."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hotlap.errors import ArchiveError, OutputFileError
from hotlap.models import archive as subject
from hotlap.models.archive import Archive, read_about, read_archive, tensors_digest, write_archive
from models.forgery import DOCUMENT, NUMBERS, SMALL, TENSORS, canonical, forge, frugal, patched, refusal

IN_TMP = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.zip"


def assert_same_arrays(got, wanted) -> None:
    assert list(got) == sorted(wanted)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype.newbyteorder("=")
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
        assert got[name].flags.writeable
        assert got[name].flags.aligned


# --- what goes in comes out ---


def test_the_file_is_the_one_zipfile_would_make(path):
    write_archive(path, SMALL)
    assert path.read_bytes() == forge()


def test_a_file_made_by_hand_is_read(path):
    path.write_bytes(forge())
    got = read_archive(path)
    assert got.about == {"step": 7}
    assert got.documents == {"config": {"lr": 0.0003, "name": "café"}}
    assert got.tensors["policy"]["a"].tolist() == [1.5]
    assert got.tensors["policy"]["b"].tolist() == -2


@pytest.mark.parametrize("archive", [SMALL, Archive({}, {}, {}), Archive({}, {"x": None}, {"y": {}})])
def test_any_unzip_reads_it(path, archive):
    write_archive(path, archive)
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.namelist()[0] == "manifest.json"


def test_the_safetensors_library_reads_the_members(path):
    library = pytest.importorskip("safetensors.numpy")
    tensors = {f"{code}/é": np.arange(6).reshape(2, 3).astype(code) for code in DTYPES}
    tensors |= {"empty": np.zeros((0, 3), "f4"), "scalar": np.array(2.5), "flags": np.array([True, False, True])}
    write_archive(path, Archive({}, {}, {"policy": tensors}))
    with zipfile.ZipFile(path) as file:
        assert_same_arrays(dict(sorted(library.load(file.read("policy.safetensors")).items())), tensors)


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
member_names = st.from_regex(r"[a-z0-9_]{1,8}", fullmatch=True).filter(lambda name: name != "manifest")
any_array = st.sampled_from([order + code for code in DTYPES if code != "bool" for order in "<>"] + ["bool"]).flatmap(
    lambda code: hnp.arrays(code, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
tensor_groups = st.dictionaries(st.text(max_size=6), any_array, max_size=4)


@IN_TMP
@given(
    about=st.dictionaries(st.text(max_size=5), plain_json, max_size=3),
    documents=st.dictionaries(member_names, plain_json, max_size=3),
    tensors=st.dictionaries(member_names, tensor_groups, max_size=3),
)
def test_everything_comes_back_as_it_was(tmp_path, about, documents, tensors):
    path = tmp_path / "model.zip"
    write_archive(path, Archive(about, documents, tensors))
    got = read_archive(path)
    assert (got.about, got.documents) == (about, documents)
    assert repr(got.about) == repr(json.loads(canonical(about)))  # -0.0, True and 1 stay what they are
    assert got.tensors.keys() == tensors.keys()
    for name, group in tensors.items():
        assert_same_arrays(got.tensors[name], group)
    assert read_about(path) == about


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(NUMBERS),
        np.repeat(NUMBERS, 2, axis=1)[:, ::2],
        NUMBERS[::-1][::-1],
        NUMBERS.astype(">f4"),
        np.frombuffer(b"x" + NUMBERS.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 6),
    ],
    ids=["fortran order", "strided", "flipped", "big-endian", "unaligned"],
)
def test_only_the_numbers_count_not_how_they_lie_in_memory(path, array):
    write_archive(path, Archive({}, {}, {"policy": {"w": array}}))
    assert_same_arrays(read_archive(path).tensors["policy"], {"w": NUMBERS})
    assert tensors_digest({"w": array}) == tensors_digest({"w": NUMBERS})


def test_every_bit_of_a_float_survives(path):
    patterns = np.array([0x7FC01234, 0x80000000, 1, 0xFF800000], np.uint32).view(np.float32)
    write_archive(path, Archive({}, {}, {"policy": {"w": patterns}}))
    assert read_archive(path).tensors["policy"]["w"].tobytes() == patterns.tobytes()


def test_odd_bytes_in_booleans_are_written_as_true(path):
    odd = np.array([0, 2, 255], np.uint8).view(bool)
    write_archive(path, Archive({}, {}, {"policy": {"flags": odd}}))
    assert read_archive(path).tensors["policy"]["flags"].view(np.uint8).tolist() == [0, 1, 1]
    assert tensors_digest({"flags": odd}) == tensors_digest({"flags": np.array([False, True, True])})


def test_equal_archives_give_equal_bytes(tmp_path):
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    x, y = np.arange(5), np.ones(3, np.float32)
    write_archive(one, Archive({"a": 1, "b": 2}, {"p": [], "q": {}}, {"g": {"x": x, "y": y}, "h": {}}))
    write_archive(other, Archive({"b": 2, "a": 1}, {"q": {}, "p": ()}, {"h": {}, "g": {"y": y.copy(), "x": x[::1]}}))
    assert one.read_bytes() == other.read_bytes()


def test_only_the_groups_asked_for_are_kept(path):
    write_archive(path, Archive({}, {"d": 1}, {"policy": {"w": NUMBERS}, "replay": {"obs": NUMBERS}}))
    assert read_archive(path, only=["policy", "stranger"]).tensors.keys() == {"policy"}
    assert read_archive(path, only=[]).tensors == {}
    assert read_archive(path, only=[]).documents == {"d": 1}


def test_a_group_not_asked_for_is_verified_all_the_same(path):
    write_archive(path, Archive({}, {}, {"policy": {"w": NUMBERS}, "replay": {"obs": -NUMBERS}}))
    data = path.read_bytes()
    damaged = patched(data, data.index((-NUMBERS).tobytes()), b"x")
    text = refusal(path, damaged, lambda path: read_archive(path, only=["policy"]))
    assert "replay.safetensors does not match its checksum" in text


def test_about_is_read_without_the_other_members(path):
    write_archive(path, SMALL)
    data = path.read_bytes()
    path.write_bytes(patched(data, data.index(DOCUMENT), b"["))
    assert read_about(path) == {"step": 7}
    refusal(path)


# --- the digest ---


def test_the_digest_is_that_of_the_bytes_in_the_file():
    assert tensors_digest(SMALL.tensors["policy"]) == hashlib.sha256(TENSORS).hexdigest()


def test_the_digest_does_not_depend_on_the_order_of_names():
    x, y = np.arange(3), np.ones(2)
    assert tensors_digest({"x": x, "y": y}) == tensors_digest({"y": y, "x": x})


@pytest.mark.parametrize(
    "other",
    [
        {"v": np.arange(4)},
        {"w": np.arange(4).reshape(2, 2)},
        {"w": np.arange(4).astype(np.uint64)},
        {"w": np.arange(4)[::-1]},
        {"w": np.arange(4), "x": np.zeros(0)},
        {},
    ],
    ids=["name", "shape", "dtype", "values", "one more", "none"],
)
def test_the_digest_tells_tensors_apart(other):
    assert tensors_digest({"w": np.arange(4)}) != tensors_digest(other)


# --- what cannot be written ---


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"a": [1.0, float("nan")]}, r"config\.json\['a'\]\[1\] is nan; .* Use null"),
        ({"a": float("-inf")}, r"config\.json\['a'\] is -inf"),
        ({1: 2}, r"config\.json has the key 1\. Use text"),
        ({"a": {"\ud800": 1}}, r"config\.json\['a'\] has the key '\\ud800'"),
        ("\ud83d\ude00", r"config\.json is '\\ud83d\\ude00' \(str\)"),
        ({"a": np.float32(1.0)}, r"\(float32\)"),
        ({"a": {1, 2}}, r"\(set\)"),
        (10**5000, r"cannot be written as JSON"),
    ],
    ids=["NaN", "infinity", "number as key", "half a key", "two halves", "NumPy number", "set", "endless number"],
)
def test_a_document_that_json_would_change_is_refused(path, data, text):
    for archive in (Archive({}, {"config": data}, {}), Archive({"config.json": data}, {}, {})):
        with pytest.raises(ArchiveError, match=text if archive.documents else "manifest"):
            write_archive(path, archive)
    assert not path.exists()


def test_a_document_inside_itself_is_refused(path):
    circle: list = []
    circle.append(circle)
    with pytest.raises(ArchiveError, match="not nested as deep"):
        write_archive(path, Archive({}, {"config": circle}, {}))


@pytest.mark.parametrize("name", ["../up", "A", "a.b", "", "manifest", "x" * 65, "a\n", "é"])
def test_a_name_that_is_none_is_refused(path, name):
    with pytest.raises(ArchiveError, match=r"^[^\n]*no member may be called[^\n]*$"):
        write_archive(path, Archive({}, {name: 1}, {}))


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        ("w", [1.0], "NumPy array by name, got list"),
        (3, np.zeros(1), "NumPy array by name"),
        ("w", np.array([None]), "dtype object"),
        ("w", np.zeros(1, complex), "dtype complex128"),
        ("w", np.array(["a"]), "dtype <U1"),
        ("w", np.array(["2026-01-01"], "M8[D]"), "dtype datetime64"),
        ("__metadata__", np.zeros(1), "may be called '__metadata__'"),
        ("\udc00", np.zeros(1), "has the key"),
        ("w", np.zeros((0, 1 << 33)), "too large"),
        ("x" * (1 << 20), np.zeros(1), "bytes of the header"),
    ],
)  # fmt: skip
def test_a_tensor_that_cannot_be_stored_is_refused(path, name, array, text):
    with pytest.raises(ArchiveError, match=text) as caught:
        write_archive(path, Archive({}, {}, {"policy": {name: array}}))
    assert str(caught.value).startswith(f"{path}: not written: ")
    assert list(path.parent.iterdir()) == []


def test_too_much_is_refused_before_anything_is_copied(path):
    five_gib = np.broadcast_to(np.float32(0), (5 << 28,))
    with frugal(), pytest.raises(ArchiveError, match="bytes in all: 5368709"):
        write_archive(path, Archive({}, {}, {"replay": {"obs": five_gib}}))


def test_the_largest_content_fits_the_zip():
    records = sum(30 + 46 + 2 * (64 + len(".safetensors")) for _ in range(subject.MAX_MEMBERS)) + 22
    assert subject._MAX_CONTENT_BYTES + subject.MAX_MANIFEST_BYTES + records <= subject.MAX_FILE_BYTES < 1 << 32


def test_too_many_members_and_too_much_json_are_refused(path):
    with pytest.raises(ArchiveError, match="members: 33, more than the limit of 32"):
        write_archive(path, Archive({}, {f"d{i}": i for i in range(32)}, {}))
    write_archive(path, Archive({}, {f"d{i}": i for i in range(31)}, {}))
    assert len(read_archive(path).documents) == 31
    with pytest.raises(ArchiveError, match="bytes of documents"):
        write_archive(path, Archive({}, {"d": "x" * subject.MAX_DOCUMENTS_BYTES}, {}))
    with pytest.raises(ArchiveError, match="bytes of manifest"):
        write_archive(path, Archive({"d": "x" * subject.MAX_MANIFEST_BYTES}, {}, {}))
    with pytest.raises(ArchiveError, match="must be a dict, got list"):
        write_archive(path, Archive([], {}, {}))


# --- whole or not at all ---


def disk_full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["write", "os.fsync", "pathlib.Path.replace", "pathlib.Path.open"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch, name):
    write_archive(path, SMALL)
    before = path.read_bytes()
    if name == "write":
        monkeypatch.setattr(subject, "_directory", disk_full)
    else:
        monkeypatch.setattr(name, disk_full)
    with pytest.raises(OutputFileError) as caught:
        write_archive(path, Archive({}, {}, {"policy": {"w": NUMBERS}}))
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{path}: cannot be written (No space left on device). ")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    write_archive(path, SMALL)
    before = path.read_bytes()
    monkeypatch.setattr(subject, "_directory", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_archive(path, Archive({}, {}, {}))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_until_it_is_whole_and_on_the_disk_the_file_has_another_name(path, monkeypatch):
    seen = []
    real = os.fsync

    def look(descriptor):
        seen.append([(found.name, found.stat().st_size) for found in path.parent.iterdir()])
        real(descriptor)

    monkeypatch.setattr("os.fsync", look)
    write_archive(path, SMALL)
    [(name, size)] = seen[0]
    assert re.fullmatch(rf"\.model\.zip\.{os.getpid()}-\d+\.partial", name)
    assert size == path.stat().st_size
    if os.name == "posix":  # the folder is flushed too, once the file has its name
        assert seen[1:] == [[("model.zip", size)]]


def test_what_a_killed_process_left_is_no_hindrance(path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
    monkeypatch.setattr("pathlib.Path.replace", disk_full)
    with pytest.raises(OutputFileError):
        write_archive(path, SMALL)
    assert len(list(path.parent.glob(".*.partial"))) == 1
    monkeypatch.undo()
    write_archive(path, SMALL)
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_or_a_place_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(OutputFileError, match=r"this is a folder\. Name a file"):
        write_archive(tmp_path, SMALL)
    with pytest.raises(OutputFileError, match=r"cannot be written \(No such file or directory\)"):
        write_archive(tmp_path / "nowhere" / "model.zip", SMALL)


def test_a_file_the_system_will_not_let_grow_leaves_the_old_one(path):
    resource = pytest.importorskip("resource")
    write_archive(path, SMALL)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OutputFileError, match=r"cannot be written \(File too large\)"):
            write_archive(path, Archive({}, {}, {"policy": {"w": np.zeros(1 << 20)}}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root on Linux can make a small disk")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a disk")
    try:
        path = tmp_path / "model.zip"
        write_archive(path, SMALL)
        with pytest.raises(OutputFileError, match=r"cannot be written \(No space left on device\)"):
            write_archive(path, Archive({}, {}, {"policy": {"w": np.zeros(1 << 20)}}))
        assert path.read_bytes() == forge()
        assert list(tmp_path.iterdir()) == [path]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_importing_it_loads_no_learning_library():
    code = "import hotlap.models.archive, sys; print({'torch', 'safetensors', 'pickle5'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"

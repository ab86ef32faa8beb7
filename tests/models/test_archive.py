"""Model files: round trips, equal bytes, digests, large files, and atomic writes."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotlap.errors import ArchiveError, OutputFileError
from hotlap.models import archive as subject
from hotlap.models import tensor_shards
from hotlap.models.archive import Archive, read_about, read_archive, tensors_digest, write_archive
from models.forgery import NUMBERS, PAYLOADS, SMALL, forge, forge_zip, manifest, memory_limit, patched, refusal
from models.test_tensor_shards import any_array, assert_same_arrays

IN_TMP = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.zip"


def assert_small(got: Archive) -> None:
    assert (got.about, got.documents) == (SMALL.about, SMALL.documents)
    assert_same_arrays(got.tensors["policy"], SMALL.tensors["policy"])


# --- round trips ---

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
member_names = st.from_regex(r"[a-z0-9_]{1,8}", fullmatch=True).filter(lambda name: name != "manifest")


@IN_TMP
@given(
    about=st.dictionaries(st.text(max_size=5), plain_json, max_size=3),
    documents=st.dictionaries(member_names, plain_json, max_size=3),
    tensors=st.dictionaries(member_names, st.dictionaries(st.text(max_size=6), any_array, max_size=4), max_size=3),
)
def test_content_comes_back_unchanged(tmp_path, about, documents, tensors):
    path = tmp_path / "model.zip"
    write_archive(path, Archive(about, documents, tensors))
    got = read_archive(path)
    assert (got.about, got.documents) == (about, documents)
    assert repr(got.about) == repr(json.loads(json.dumps(about, sort_keys=True)))  # keeps -0.0, True and 1 apart
    assert got.tensors.keys() == tensors.keys()
    for name, group in tensors.items():
        assert_same_arrays(got.tensors[name], group)
    assert read_about(path) == about


def test_equal_archives_give_equal_bytes(tmp_path):
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    x, y = np.arange(5), np.ones(3, np.float32)
    write_archive(one, Archive({"a": 1, "b": 2}, {"p": [], "q": {}}, {"g": {"x": x, "y": y}, "h": {}}))
    write_archive(other, Archive({"b": 2, "a": 1}, {"q": {}, "p": ()}, {"h": {}, "g": {"y": y.copy(), "x": x[::1]}}))
    assert one.read_bytes() == other.read_bytes()


MEMBERS = [("manifest.json", manifest(PAYLOADS)), *PAYLOADS.items()]


@pytest.mark.parametrize(
    "data",
    [
        forge(),
        forge_zip(MEMBERS[::-1]),
        forge_zip(MEMBERS, compress_type=zipfile.ZIP_DEFLATED, comment=b"hello", extra=b"\xfe\xca\0\0"),
        b"#!/bin/sh\n" + forge(),
    ],
    ids=["by zipfile", "another order", "deflated", "self-extracting"],
)
def test_an_archive_zipped_by_another_program_is_read(path, data):
    path.write_bytes(data)
    assert_small(read_archive(path))
    assert read_about(path) == {"step": 7}


def test_only_the_named_groups_are_returned(path):
    write_archive(path, Archive({}, {"d": 1}, {"policy": {"w": NUMBERS}, "replay": {"obs": NUMBERS}}))
    assert read_archive(path, only=["policy", "unknown"]).tensors.keys() == {"policy"}
    assert read_archive(path, only=[]).tensors == {}
    assert read_archive(path, only=[]).documents == {}
    assert read_archive(path, only=["d"]).documents == {"d": 1}


def test_a_group_that_is_not_returned_is_verified_too(path):
    write_archive(path, Archive({}, {}, {"policy": {"w": NUMBERS}, "replay": {"obs": -NUMBERS}}))
    data = path.read_bytes()
    damaged = patched(data, data.index((-NUMBERS).tobytes()), b"x")
    assert "replay.safetensors" in refusal(path, damaged, lambda path: read_archive(path, only=["policy"]))


def test_about_is_read_without_the_other_members(path):
    data = forge()
    path.write_bytes(patched(data, data.index(PAYLOADS["config.json"]), b"["))
    assert read_about(path) == {"step": 7}
    refusal(path)


def test_the_digest_of_tensors_is_that_in_the_manifest(path):
    write_archive(path, SMALL)
    with zipfile.ZipFile(path) as file:
        listed = json.loads(file.read("manifest.json"))["members"]["policy.safetensors"]
        assert listed == hashlib.sha256(file.read("policy.safetensors")).hexdigest()
    assert tensors_digest(SMALL.tensors["policy"]) == listed


# --- large files ---


def test_zip64_is_used_where_a_member_needs_it(path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 200)
    archive = Archive({}, {}, {"replay": {"obs": np.arange(1000)}, "small": {"w": np.zeros(1)}})
    write_archive(path, archive)
    monkeypatch.undo()
    assert b"\x01\x00\x10\x00" in path.read_bytes()  # the extra field of ZIP64
    assert_same_arrays(read_archive(path).tensors["replay"], archive.tensors["replay"])


def test_a_large_group_is_written_and_read_shard_by_shard(path, monkeypatch):
    monkeypatch.setattr(tensor_shards, "SHARD_BYTES", 1 << 20)
    archive = Archive({}, {}, {"policy": {"w": NUMBERS}, "replay": {"obs": np.arange(1 << 21), "done": np.zeros(9)}})
    with memory_limit(4 << 20):
        write_archive(path, archive)
    with zipfile.ZipFile(path) as file:
        shards = [f"replay-{number:05}-of-00017.safetensors" for number in range(1, 18)]
        assert sorted(file.namelist()) == sorted(["manifest.json", "policy.safetensors", *shards])
    with memory_limit((16 << 20) + (5 << 20)):
        got = read_archive(path)
    for name, group in archive.tensors.items():
        assert_same_arrays(got.tensors[name], group)
    assert read_archive(path, only=["policy"]).tensors.keys() == {"policy"}
    assert read_archive(path, only=["replay"]).tensors.keys() == {"replay"}


LARGE_FILE = """
import resource, sys
from pathlib import Path
import numpy as np
from hotlap.models.archive import Archive, read_archive, write_archive

path, size = Path(sys.argv[1]), (4 << 30) + 4096
obs = np.zeros((size // 64, 64), np.uint8)
obs[:] = np.arange(64, dtype=np.uint8)  # pages that are not written to take no memory
obs[-1, -1] = 200
write_archive(path, Archive({}, {}, {"replay": {"obs": obs}}))
del obs
assert path.stat().st_size > size
got = read_archive(path).tensors["replay"]["obs"]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
assert got.shape == (size // 64, 64) and got[-1, -1] == 200
got[-1, -1] = 63
assert (got[0] == np.arange(64)).all() and all((rows == got[0]).all() for rows in np.array_split(got, 64))
print(peak - size)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
def test_a_file_of_more_than_4_gib_comes_back_with_little_more_memory_than_its_size(path):
    answer = subprocess.run([sys.executable, "-c", LARGE_FILE, str(path)], capture_output=True, text=True, check=True)
    path.unlink()
    assert int(answer.stdout) < 1.2 * (1 << 30)


# --- refusals to write ---


@pytest.mark.parametrize("name", ["../up", "A", "a.b", "", "manifest", "x" * 65, "a\n", "é", "a-00001-of-00002"])
def test_a_bad_member_name_is_refused(path, name):
    with pytest.raises(ArchiveError, match=r"^[^\n]*a member cannot be called[^\n]*$"):
        write_archive(path, Archive({}, {name: 1}, {}))
    with pytest.raises(ArchiveError, match=r"^[^\n]*a member cannot be called[^\n]*$"):
        write_archive(path, Archive({}, {}, {name: {}}))


@pytest.mark.parametrize(
    ("archive", "text"),
    [
        (Archive({}, {f"d{i}": i for i in range(1024)}, {}), "members: 1025, more than the limit of 1024"),
        (Archive({}, {"d": "x" * subject.MAX_DOCUMENTS_BYTES}, {}), "bytes of documents"),
        (Archive({"d": "x" * subject.MAX_MANIFEST_BYTES}, {"e": 1}, {}), "bytes of manifest"),
        (Archive([], {"e": 1}, {}), "about must be a dict, got list"),
        (Archive({}, {"d": float("nan")}, {}), r"d\.json is nan"),
        (Archive({"d": {1: 2}}, {"e": 1}, {}), r"manifest\.json\['about'\]\['d'\] has the key 1"),
        (Archive({}, {}, {"policy": {"w": [1.0]}}), "NumPy array with a text name, got list"),
    ],
)
def test_content_that_cannot_be_stored_is_refused_before_anything_is_written(path, monkeypatch, archive, text):
    monkeypatch.delattr(subject, "_write_member")
    with pytest.raises(ArchiveError, match=text) as caught:
        write_archive(path, archive)
    assert str(caught.value).startswith(f"{path}: not written: ")
    assert list(path.parent.iterdir()) == []


def test_as_many_members_as_allowed_are_stored(path):
    write_archive(path, Archive({}, {f"d{i}": i for i in range(1023)}, {}))
    assert len(read_archive(path).documents) == 1023


# --- atomic writes; see also the tests of atomic_files ---


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    write_archive(path, SMALL)
    before = path.read_bytes()
    monkeypatch.setattr(subject, "_write_member", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_archive(path, Archive({}, {}, {}))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_larger_than_the_system_allows_leaves_the_old_one(path):
    resource = pytest.importorskip("resource")
    write_archive(path, SMALL)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OutputFileError, match=r"cannot be written \(File too large\)"):
            write_archive(path, Archive({}, {}, {"policy": {"w": np.zeros(1 << 20)}}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_small(read_archive(path))
    assert list(path.parent.iterdir()) == [path]


def test_importing_it_loads_no_learning_library():
    code = "import hotlap.models.archive, sys; print({'torch', 'stable_baselines3'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"

"""An entry as a file: what was written is read, and what is not an entry is refused before it is unpacked."""

import zipfile

import numpy as np
import pytest

from benchmark.small_entries import members_of, refusal_of, small_protocol, write_members
from hotlap.benchmark.actions import to_runs
from hotlap.benchmark.entry_file import DOCUMENT, MAX_FILE_BYTES, LapClaim, check_name, open_entry, write_entry
from hotlap.benchmark.lap_replays import LapOutcomes
from hotlap.benchmark.protocol import BUILT_IN
from hotlap.benchmark.recording import Recording
from hotlap.errors import InputFileError, ReplayError

RNG = np.random.default_rng(0)
DRIVES = [to_runs(RNG.random((num_ticks, 3), np.float32)) for num_ticks in (400, 1, 2)]
TIMES_S, IS_CLEAN = [20.5, None, 30.0], [True, False, False]


@pytest.fixture(scope="module")
def protocol():
    return small_protocol(num_scenarios=0)


def write(path, protocol):
    laps = LapOutcomes(np.array(TIMES_S, np.float32), np.array(IS_CLEAN), np.zeros(3, np.int32), np.zeros(3, np.int64))
    recording = Recording((BUILT_IN,), {"track-01": DRIVES}, [])
    write_entry(path, "someone", protocol, recording, {"track-01": laps}, None, model=b"weights")
    return path


@pytest.fixture
def entry(protocol, tmp_path):
    return write(tmp_path / "entry.zip", protocol)


def read_all(path, protocol):
    with open_entry(path, protocol) as entry:
        drives = {track: entry.drives_on(track) for track in entry.document.laps}
        return entry.document, drives, entry.model()


def refusal(path, protocol):
    return refusal_of(read_all, ReplayError, path, protocol)


def test_what_was_written_is_read(protocol, entry, tmp_path):
    document, found, model = read_all(entry, protocol)
    assert (document.name, document.parts, model) == ("someone", (BUILT_IN,), b"weights")
    claims = [LapClaim(*claim) for claim in zip((400, 1, 2), TIMES_S, IS_CLEAN, strict=True)]
    assert document.laps == {"track-01": claims}
    for read, written in zip(found["track-01"], DRIVES, strict=True):
        np.testing.assert_array_equal(read, written)
    assert write(tmp_path / "again.zip", protocol).read_bytes() == entry.read_bytes()


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", 7, None])
def test_a_name_that_cannot_be_shown_is_refused(name):
    assert check_name("Ayrton S.") == "Ayrton S."
    with pytest.raises(ReplayError, match="name: must have 1 to 64 printable characters"):
        check_name(name)


def test_missing_and_foreign_members_are_refused(protocol, entry, tmp_path):
    members = members_of(entry)
    lacking = {name: content for name, content in members.items() if name != "track-01.actions"}
    assert "'track-01.actions': is missing" in refusal(write_members(tmp_path / "a.zip", lacking), protocol)
    more = members | {"../evil.py": b"x"}
    assert "does not belong to an entry" in refusal(write_members(tmp_path / "b.zip", more), protocol)
    assert "must hold entry.json" in refusal(write_members(tmp_path / "c.zip", {"x": b""}), protocol)


def test_bombs_huge_and_damaged_files_are_refused_before_they_are_read(protocol, entry, tmp_path):
    members = members_of(entry)
    bomb = write_members(tmp_path / "bomb.zip", members | {DOCUMENT: b" " * (5 << 20)})
    assert bomb.stat().st_size < 1 << 20
    assert "more bytes than an entry may have" in refusal(bomb, protocol)
    huge = tmp_path / "huge.zip"
    with huge.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # a sparse file
    assert "an entry has at most" in refusal(huge, protocol)
    content = entry.read_bytes()
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(content[: len(content) // 2])
    assert "is damaged or not a zip" in refusal(damaged, protocol)
    damaged.write_bytes(content[:1000] + bytes([content[1000] ^ 255]) + content[1001:])
    refusal(damaged, protocol)
    assert "is a folder" in refusal(tmp_path, protocol)
    with pytest.raises(InputFileError, match="no such file"):
        read_all(tmp_path / "none.zip", protocol)


def test_a_name_with_a_nul_does_not_pass_for_another(protocol, entry, tmp_path):
    """zipfile cuts such a name, and would read this member instead of the one whose size was checked."""
    members = members_of(entry) | {"entry.jsonXx": b" " * (5 << 20)}
    content = write_members(tmp_path / "forged.zip", members).read_bytes()
    (tmp_path / "forged.zip").write_bytes(content.replace(b"entry.jsonXx", b"entry.json\0x"))
    assert "does not belong to an entry" in refusal(tmp_path / "forged.zip", protocol)


def test_encrypted_and_nested_documents_are_refused(protocol, entry, tmp_path):
    members = members_of(entry)
    deep = write_members(tmp_path / "deep.zip", members | {DOCUMENT: b"[" * 100_000})
    assert "is not valid JSON" in refusal(deep, protocol)
    twice = tmp_path / "twice.zip"
    with zipfile.ZipFile(twice, "w") as zipped:
        zipped.writestr(DOCUMENT, members[DOCUMENT])
        with pytest.warns(UserWarning, match="Duplicate"):
            zipped.writestr(DOCUMENT, members[DOCUMENT])
    assert "every member once" in refusal(twice, protocol)

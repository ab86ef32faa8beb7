"""A journal's lines reach the file by themselves, in order, and a crash costs the last of them at most."""

import errno
import threading
import time

import pytest

from hotlap.errors import InputFileError, ModelError, OutputFileError
from hotlap.training.run_files.journal import Journal, read_lines

NEVER_S = 3600.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jsonl"


def test_lines_are_written_on_closing_in_their_order(path):
    journal = Journal(path, flush_interval_s=NEVER_S)
    for number in range(1000):
        journal.add(b"%d" % number)
    assert path.stat().st_size == 0  # no line is worth a write of its own
    journal.close()
    journal.close()
    assert read_lines(path) == [b"%d" % number for number in range(1000)]


def test_lines_reach_the_file_while_the_caller_does_something_else(path):
    journal = Journal(path, flush_interval_s=0.01)
    journal.add(b"one")
    deadline = time.monotonic() + 8.0
    while not read_lines(path) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert read_lines(path) == [b"one"]
    journal.close()


def test_no_line_is_lost_or_moved_between_two_threads(path):
    journal = Journal(path, flush_interval_s=0.0001)
    for number in range(20_000):
        journal.add(b"%d" % number)
    journal.close()
    assert read_lines(path) == [b"%d" % number for number in range(20_000)]


@pytest.mark.parametrize("to_disk", [False, True])
def test_a_flush_writes_at_once(path, to_disk):
    journal = Journal(path, flush_interval_s=NEVER_S)
    journal.add(b"one")
    journal.flush(to_disk=to_disk)
    assert read_lines(path) == [b"one"]
    journal.close()
    journal.flush(to_disk=to_disk)
    with pytest.raises(OutputFileError, match="the journal was closed"):
        journal.add(b"two")


def test_a_new_journal_begins_anew_and_a_kept_one_goes_on(path):
    path.write_bytes(b"old\n")
    Journal(path).close()
    assert path.read_bytes() == b""
    path.write_bytes(b"one\ntwo\nthr")
    journal = Journal(path, keep_bytes=4)
    journal.add(b"2")
    journal.close()
    assert path.read_bytes() == b"one\n2\n"


def test_a_line_without_its_end_is_none(path):
    for text, lines in [(b"", []), (b"on", []), (b"one\n", [b"one"]), (b"one\ntwo", [b"one"]), (b"\n", [b""])]:
        path.write_bytes(text)
        assert read_lines(path) == lines


def test_its_thread_ends_with_it(path):
    before = threading.active_count()
    journal = Journal(path)
    assert threading.active_count() == before + 1
    journal.close()
    assert threading.active_count() == before


class Disk:
    """A file on a disk with room for so many bytes more; like the real one, it takes what fits before it fails."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, content):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(content[: self.room])
        self.room -= taken
        return taken

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.fixture
def filling(path):
    """A journal on a disk with room for ten bytes, and the disk."""
    journal = Journal(path, flush_interval_s=NEVER_S)
    journal._file = Disk(journal._file, 10)
    yield journal, journal._file
    journal.close()


def test_a_full_disk_is_warned_about_once_and_ends_nothing(path, filling, caplog):
    journal, _ = filling
    for number in range(20):
        journal.add(b"%d" % number)
        journal.flush(to_disk=True)
    [warning] = caplog.messages
    assert f"{path}: cannot be written (No space left on device)" in warning
    assert "wait in memory" in warning


def test_a_line_that_does_not_fit_leaves_no_part_of_itself(path, filling):
    journal, _ = filling
    journal.add(b"one")
    journal.flush()
    journal.add(b"two, far too long")
    journal.flush()
    assert path.read_bytes() == b"one\n"


def test_what_waited_is_written_in_its_place_once_there_is_room(path, filling, monkeypatch):
    monkeypatch.setattr("hotlap.training.run_files.journal.LINES_A_WRITE", 7)
    journal, disk = filling
    for number in range(100):
        journal.add(b"%d" % number)
        journal.flush()
    kept = read_lines(path)
    assert 0 < len(kept) < 10
    disk.room = 1000
    journal.add(b"100")
    journal.flush()
    assert read_lines(path) == [b"%d" % number for number in range(101)]


def test_closing_on_a_full_disk_says_what_is_lost(path, filling, caplog):
    journal, _ = filling
    journal.add(b"one")
    journal.flush()
    for number in range(5):
        journal.add(b"line %d" % number)
    journal.close()
    assert "5 lines at its end were never written" in caplog.messages[-1]
    assert read_lines(path) == [b"one"]


def test_a_record_has_no_line_end(path):
    journal = Journal(path, flush_interval_s=NEVER_S)
    for record in (b"\x00\n", b"", b"ab"):
        journal.add_record(record)
    journal.close()
    assert path.read_bytes() == b"\x00\nab"


def test_places_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(OutputFileError, match="cannot be written"):
        Journal(tmp_path / "none" / "a.jsonl")
    with pytest.raises(InputFileError, match="no such journal"):
        read_lines(tmp_path / "none.jsonl")
    with pytest.raises(ModelError, match="cannot be read"):
        read_lines(tmp_path)

"""A journal's lines reach the file by themselves, in order, and a crash costs the last of them at most."""

import errno
import threading
import time

import pytest

from hotlap.errors import InputFileError, ModelError, OutputFileError
from hotlap.training.journal import Journal, read_lines

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


def test_what_could_not_be_written_is_said(path):
    journal = Journal(path, flush_interval_s=NEVER_S)

    class FullDisk:
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    file, journal._file = journal._file, FullDisk()
    file.close()
    journal.add(b"one")
    for call in (journal.flush, lambda: journal.add(b"two"), journal.close):
        with pytest.raises(OutputFileError, match=r"a\.jsonl: cannot be written \(No space left on device\)"):
            call()


def test_places_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(OutputFileError, match="cannot be written"):
        Journal(tmp_path / "none" / "a.jsonl")
    with pytest.raises(InputFileError, match="no such journal"):
        read_lines(tmp_path / "none.jsonl")
    with pytest.raises(ModelError, match="cannot be read"):
        read_lines(tmp_path)

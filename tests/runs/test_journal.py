"""A journal's lines are written in the background, in order, and a crash loses at most the last of them."""

import threading
import time

import pytest

from hotlap.errors import InputFileError, ModelError, OutputFileError
from hotlap.runs.journal import Journal, read_lines
from runs.full_disk import Disk

NEVER_S = 3600.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jsonl"


@pytest.mark.parametrize("interval_s", [NEVER_S, 0.0001])
def test_no_line_is_lost_or_reordered_and_closing_ends_the_thread(path, interval_s):
    before = threading.active_count()
    journal = Journal(path, flush_interval_s=interval_s)
    assert threading.active_count() == before + 1
    for number in range(20_000):
        journal.add(b"%d" % number)
    if interval_s == NEVER_S:
        assert path.stat().st_size == 0  # lines are not written one by one
    journal.close()
    journal.close()
    assert threading.active_count() == before
    assert read_lines(path) == [b"%d" % number for number in range(20_000)]


def test_lines_are_written_in_the_background(path):
    journal = Journal(path, flush_interval_s=0.01)
    journal.add(b"one")
    deadline = time.monotonic() + 8.0
    while not read_lines(path) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert read_lines(path) == [b"one"]
    journal.close()


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


def test_a_new_journal_is_empty_and_a_continued_one_is_truncated_first(path):
    path.write_bytes(b"old\n")
    Journal(path).close()
    assert path.read_bytes() == b""
    path.write_bytes(b"one\ntwo\nthr")
    journal = Journal(path, keep_bytes=4)
    journal.add(b"2")
    journal.close()
    assert path.read_bytes() == b"one\n2\n"


def test_a_line_without_its_line_end_is_ignored(path):
    for text, lines in [(b"", []), (b"on", []), (b"one\n", [b"one"]), (b"one\ntwo", [b"one"]), (b"\n", [b""])]:
        path.write_bytes(text)
        assert read_lines(path) == lines


@pytest.fixture
def filling(path):
    """A journal on a disk with room for ten bytes, and the disk."""
    journal = Journal(path, flush_interval_s=NEVER_S)
    journal._file = Disk(journal._file, 10)
    yield journal, journal._file
    journal.close()


def test_a_full_disk_is_warned_about_once_and_the_lines_are_written_once_there_is_space(
    path, filling, monkeypatch, caplog
):
    monkeypatch.setattr("hotlap.runs.journal.RECORDS_PER_WRITE", 7)
    journal, disk = filling
    for number in range(100):
        journal.add(b"%d" % number)
        journal.flush(to_disk=True)
    [warning] = caplog.messages
    assert f"{path}: cannot be written (No space left on device)" in warning
    assert "stay in memory" in warning
    assert 0 < len(read_lines(path)) < 10
    disk.room = 1000
    journal.add(b"100")
    journal.flush()
    assert read_lines(path) == [b"%d" % number for number in range(101)]


def test_lines_that_do_not_fit_are_not_written_in_part_and_reported_as_lost_at_the_end(path, filling, caplog):
    journal, _ = filling
    journal.add(b"one")
    journal.flush()
    for number in range(5):
        journal.add(b"line %d" % number)
        journal.flush()
        assert path.read_bytes() == b"one\n"
    journal.close()
    assert "the last 5 records could not be written" in caplog.messages[-1]
    assert path.read_bytes() == b"one\n"


def test_a_record_is_written_without_a_line_end(path):
    journal = Journal(path, flush_interval_s=NEVER_S)
    for record in (b"\x00\n", b"", b"ab"):
        journal.add_record(record)
    journal.close()
    assert path.read_bytes() == b"\x00\nab"


def test_unusable_paths_are_refused(tmp_path):
    with pytest.raises(OutputFileError, match="cannot be written"):
        Journal(tmp_path / "none" / "a.jsonl")
    with pytest.raises(InputFileError, match="no such journal"):
        read_lines(tmp_path / "none.jsonl")
    with pytest.raises(ModelError, match="cannot be read"):
        read_lines(tmp_path)

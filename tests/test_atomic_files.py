"""Files that appear whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from hotlap.atomic_files import atomic_write, write_atomically
from hotlap.errors import OutputFileError


@pytest.fixture
def path(tmp_path):
    write_atomically(tmp_path / "file", b"before")
    return tmp_path / "file"


def disk_full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(path):
    with atomic_write(path) as file:
        file.write(b"aft")
        file.flush()
        assert path.read_bytes() == b"before"
        file.write(b"er")
    assert path.read_bytes() == b"after"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (Path, "open")])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, disk_full)
    with pytest.raises(OutputFileError, match=r"file: cannot be written \(No space left on device\)\. Free some space"):
        write_atomically(path, b"after")
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_while_writing_deletes_the_draft_and_passes_through(path, error):
    with pytest.raises(error), atomic_write(path):
        raise error
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == b"before"


@pytest.mark.skipif(os.name != "posix", reason="folders can be flushed on POSIX systems only")
def test_the_content_is_flushed_before_the_rename_and_the_folder_after_it(path, monkeypatch):
    flushed, real = [], os.fsync

    def record(descriptor):
        flushed.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), path.read_bytes()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    write_atomically(path, b"after")
    assert flushed == [(False, b"before"), (True, b"after")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere/file", r"nowhere.*cannot be written \(No such file or directory\)"),
        (".", "this is a folder"),
        ("fi\0le", r"cannot be written \(.*embedded null"),
        ("x" * 300, r"cannot be written \(File name too long\)"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path, name, words):
    with pytest.raises(OutputFileError, match=words):
        write_atomically(tmp_path / name, b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputFileError, match=r"pipe: cannot be written, this is a device or a pipe\. Name a regular"):
        write_atomically(tmp_path / "pipe", b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

"""Event files that TensorBoard reads, whatever happened to the disk; truncated, earlier events stay bit-identical."""

import errno
import math
import os
import struct
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.errors import OutputFileError
from hotlap.runs.tensorboard_files import EventWriter, drop_events_after
from runs.full_disk import Disk

RECORD_OVERHEAD_BYTES = 16


def write_log(folder: Path, steps: list[int]) -> Path:
    """An event file as training writes it: the library's logger, dumped at each of these steps."""
    before = set(folder.glob("*"))
    logger = configure(str(folder), ["tensorboard"])
    for step in steps:
        logger.record("rollout/ep_rew_mean", 0.5 * step)
        logger.record("train/loss", -1.0 * step)
        logger.dump(step)
    logger.close()
    (path,) = set(folder.glob("*")) - before
    # Two loggers of one process and second would be given the same name.
    return path.rename(path.with_name(f"{path.name}.{len(before)}"))


def read_log(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The scalars that TensorBoard itself reads from a folder."""
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def expected(steps: list[int]) -> dict[str, list[tuple[int, float]]]:
    return {
        "rollout/ep_rew_mean": [(step, 0.5 * step) for step in steps],
        "train/loss": [(step, -1.0 * step) for step in steps],
    }


# --- writing ---


def test_tensorboard_reads_the_written_numbers(tmp_path):
    writer = EventWriter(tmp_path)
    for step in (3, 10):
        writer.write({"a/int": step, "a/float": 0.5 * step, "b/mean": np.float32(step + 0.5)}, step)
    writer.close()
    floats = {"a/float": [(3, 1.5), (10, 5.0)], "b/mean": [(3, 3.5), (10, 10.5)]}
    assert read_log(tmp_path) == {"a/int": [(3, 3.0), (10, 10.0)], **floats}


def test_each_writer_has_its_own_file_and_nan_is_logged_as_nan(tmp_path):
    for step, value in ((1, 1.0), (2, math.nan)):
        writer = EventWriter(tmp_path)
        writer.write({"a": value}, step)
        writer.close()
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
    assert str(read_log(tmp_path)) == "{'a': [(1, 1.0), (2, nan)]}"


def test_a_full_disk_leaves_a_readable_file_that_can_be_continued(tmp_path):
    writer = EventWriter(tmp_path)
    writer._journal._file = disk = Disk(writer._journal._file, 10_000)
    for step in range(6):
        disk.room = 20 if step in (2, 3) else 10_000  # 20 bytes: a part of a record
        writer.write({"a": step}, step)
        writer.flush()
        if step in (2, 3):
            assert read_log(tmp_path) == {"a": [(0, 0.0), (1, 1.0)]}
    writer.close()
    assert read_log(tmp_path) == {"a": [(step, float(step)) for step in range(6)]}


def test_an_unusable_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError, match="cannot be created"):
        EventWriter(tmp_path / "file" / "tensorboard")


# --- truncating ---


@pytest.mark.parametrize("step", [0, 100, 250, 400, 10**9])
def test_events_up_to_the_step_are_kept_bit_for_bit_and_later_ones_removed(tmp_path, step):
    path = write_log(tmp_path, [100, 200, 300, 400])
    whole, before = path.read_bytes(), path.stat()
    drop_events_after(tmp_path, step)
    assert read_log(tmp_path) == (expected([one for one in (100, 200, 300, 400) if one <= step]) if step else {})
    assert path.stat().st_size > 0  # its version
    assert whole.startswith(path.read_bytes())
    # Where nothing is removed, the file is not rewritten.
    is_same = (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert is_same == (step >= 400)


@pytest.mark.parametrize("torn_bytes", [1, 4, 5, 30])
def test_an_incomplete_record_is_removed_and_those_before_it_kept(tmp_path, torn_bytes):
    path = write_log(tmp_path, [100, 200, 300])
    path.write_bytes(path.read_bytes()[:-torn_bytes])
    drop_events_after(tmp_path, 10**9)
    found = read_log(tmp_path)
    assert found["rollout/ep_rew_mean"][:2] == expected([100, 200])["rollout/ep_rew_mean"]
    assert found["train/loss"] == expected([100, 200])["train/loss"]
    content, place = path.read_bytes(), 0
    while place < len(content):  # complete records only
        place += struct.unpack_from("<Q", content, place)[0] + RECORD_OVERHEAD_BYTES
    assert place == len(content)


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"\xff" * 100, b"\x05", struct.pack("<QI", 1 << 63, 0)])
def test_bytes_left_by_a_power_cut_are_removed(tmp_path, tail):
    path = write_log(tmp_path, [100, 200])
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    drop_events_after(tmp_path, 200)
    assert path.read_bytes() == whole
    # A whole record that is not an event is removed too, and those after it are kept.
    path.write_bytes(whole + struct.pack("<QI", 3, 0) + b"\xff\xff\xff" + b"\x00" * 4 + whole)
    drop_events_after(tmp_path, 200)
    assert path.read_bytes() == whole + whole


def test_other_files_and_a_missing_folder_are_ignored(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"x")
    drop_events_after(tmp_path, 0)
    drop_events_after(tmp_path / "none", 0)
    assert (tmp_path / "notes.txt").read_bytes() == b"x"


def test_a_full_disk_is_reported_in_one_line_and_leaves_the_file_unchanged(tmp_path):
    path = write_log(tmp_path, [100, 200])
    whole = path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OutputFileError, match=r"cannot be written \(No space left on device\)"):
            drop_events_after(tmp_path, 100)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_truncated_event_files_are_flushed_to_disk_before_they_replace_the_old(tmp_path, monkeypatch):
    write_log(tmp_path, [100, 200])
    calls, fsync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync") or fsync(descriptor))
    monkeypatch.setattr(Path, "replace", lambda self, target: calls.append("replace") or replace(self, target))
    drop_events_after(tmp_path, 100)
    assert calls[:2] == ["fsync", "replace"]


def test_a_clock_set_back_does_not_put_a_later_file_first(tmp_path, monkeypatch):
    names = []
    for now_s in (2_000_000_000.0, 1_000_000_000.0, 1_000_000_000.0):
        monkeypatch.setattr("hotlap.runs.tensorboard_files.time.time", lambda now_s=now_s: now_s)
        EventWriter(tmp_path).close()
        [new] = {path.name for path in tmp_path.iterdir()} - set(names)
        names.append(new)
    assert names == sorted(names)

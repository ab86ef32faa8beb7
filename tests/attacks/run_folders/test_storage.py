"""States too large, full and read-only disks, power cuts and clocks: one line, and nothing saved is lost."""

import errno
import json
import os
import time
from pathlib import Path

import pytest

from attacks.run_folders.attacked_runs import (
    RUN,
    assert_as_in_peace,
    content,
    write_recipe,
)
from hotlap import atomic_files as hotlap_files
from hotlap.models import archive
from hotlap.runs import run_lock
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.run_lock import LOCK_NAME
from hotlap.training.checkpoint import CheckpointManager

# --- states too large, disks too full ---


def test_a_state_beyond_the_limits_is_said_at_the_start_and_never_ends_the_run(hotlap, monkeypatch):
    monkeypatch.setattr(archive, "MAX_DOCUMENTS_BYTES", 100)
    code, lines = hotlap("train", "--recipe", write_recipe())
    warnings = [line for line in lines if line.startswith("hotlap: ")]
    assert code == 1
    assert "checkpoints cannot be written, so this run cannot be resumed" in warnings[0]
    assert "bytes of documents" in warnings[1]
    assert "Training continues without this checkpoint" in warnings[1]
    assert "finished, but 2 checkpoints or best models could not be written" in warnings[2]
    assert len(warnings) == 3
    assert RunFolder(RUN, "ppo_seed42").is_finished


def test_a_state_that_grows_beyond_the_limits_keeps_the_older_checkpoints_and_resumes(stopped, hotlap, monkeypatch):
    write = archive.write_archive

    def growing(path, content):
        if path.name == "checkpoint_80.zip":
            raise archive.ArchiveError(f"{path}: not written: bytes of documents: 9, more than the limit of 8.")
        write(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hotlap.training.checkpoint.write_archive", growing)
        assert hotlap("resume", stopped)[0] == 1
    assert CheckpointManager(stopped).steps() == [40, 60]
    assert hotlap("resume", stopped / "checkpoint_60.zip")[0] == 0
    assert_as_in_peace(hotlap)


def test_a_disk_too_small_for_one_checkpoint_is_said_at_the_start(hotlap, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("hotlap.training.run_writer.shutil.disk_usage", lambda _: usage)
    code, lines = hotlap("train", "--recipe", write_recipe())
    assert code == 0
    assert any("a checkpoint takes up to 0 MB, and 0 MB are free on this disk" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("config.toml", 2),
        (LOCK_NAME, 2),
        ("events.out.tfevents", 2),
        ("ppo_seed42_metrics.jsonl", 2),
        ("checkpoint_40.zip", 1),
        ("ppo_seed42_best.zip", 1),
        ("ppo_seed42_model.zip", 2),
        ("ppo_seed42_metrics.json.", 2),
        ("ppo_seed42_results.json", 2),
    ],
)
def test_a_full_disk_at_each_kind_of_write_gives_one_line_and_loses_nothing(hotlap, monkeypatch, name, code):
    changes = {"evaluation": {"interval": 50, "episodes": 1}}
    opened, open_file = hotlap_files._opened, os.open

    def refuse(path):
        if name in f"{Path(path).name}.":
            raise OSError(errno.ENOSPC, "No space left on device")

    def full_draft(path):
        refuse(path)
        return opened(path)

    def full_open(path, *arguments, **options):
        refuse(path)
        return open_file(path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hotlap_files, "_opened", full_draft)
        patch.setattr(os, "open", full_open)
        found, lines = hotlap("train", "--recipe", write_recipe(**changes))
    told = [line for line in lines if line.startswith("hotlap: ")]
    assert found == code
    assert "No space left on device" in told[0]
    assert len(told) == (2 if code == 1 else 1)  # where it went on, the last line says what is missing
    if code == 2:
        started = (RUN / "config.toml").exists()
        again = ["resume", RUN] if started else ["train", "--recipe", write_recipe(**changes)]
        assert hotlap(*again)[0] == 0
        assert_as_in_peace(hotlap, **changes)
    assert [file.name for file in RUN.rglob("*.partial")] == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_run_is_refused_in_one_line_and_a_finished_one_can_be_asked(stopped, hotlap):
    stopped.chmod(0o500)
    try:
        code, [line] = hotlap("resume", stopped)
        assert (code, "Permission denied" in line) == (2, True)
    finally:
        stopped.chmod(0o700)


def test_a_file_system_mounted_read_only_is_refused_in_one_line(stopped, hotlap, monkeypatch):
    def read_only(path, *arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    before = content(stopped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_lock, "open_plain", read_only)
        code, [line] = hotlap("resume", stopped)
    assert (code, "this run cannot be locked (Read-only file system)" in line) == (2, True)
    assert content(stopped) == before


# --- power cuts and clocks ---


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"\0" * 100 + b"\n", b"\0\0\n\0\0\n", b'{"timestep"\n\0', b"\xff\n" * 3]
)
def test_what_a_power_cut_left_in_the_journal_does_not_block_resume(stopped, hotlap, tail):
    journal = stopped / "ppo_seed42_metrics.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)
    # The checkpoint of step 60 resumes from 32, before which there are four points: the first step and every tenth.
    journal.write_bytes(b"".join(kept[:4]) + tail)
    assert hotlap("resume", stopped)[0] == 0
    assert_as_in_peace(hotlap)
    assert not journal.exists()


def test_a_clock_that_jumps_back_changes_nothing_but_times(stopped, hotlap, monkeypatch):
    now_s = time.time
    monkeypatch.setattr(time, "time", lambda: now_s() - 10 * 86_400)
    assert hotlap("resume", stopped)[0] == 0
    assert_as_in_peace(hotlap)
    found = json.loads((RUN / "ppo_seed42_results.json").read_text())["experiment_results"]
    assert found["metrics"]["training_time_seconds"] >= 0.0

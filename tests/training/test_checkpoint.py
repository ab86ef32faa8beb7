"""Checkpoints on disk: kept as many as asked for, the newest whole one found, the old ones safe from the new."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import ArchiveError, ConfigError, InputFileError, OutputFileError
from hotlap.models.archive import Archive, read_archive, write_archive
from hotlap.training.checkpoint import CheckpointConfig, CheckpointManager, load_checkpoint, save_snapshot
from hotlap.training.state.snapshot import REPLAY_GROUP, Snapshot


def state(step: int, with_replay: bool = False, num_weights: int = 4) -> Snapshot:
    """A run's state as far as a checkpoint looks into it."""
    groups = {"policy": {"w": np.full(num_weights, step, np.float32)}}
    if with_replay:
        groups[REPLAY_GROUP] = {"rewards": np.arange(step, dtype=np.float32)}
    return Snapshot({"learner": {"counters": {"num_timesteps": step}}}, groups)


def card(algorithm: str = "ppo") -> dict:
    return {"algorithm": algorithm, "config_digest": "x"}


def save(folder: Path, steps: list[int], algorithm: str = "ppo", keep: int = 0) -> CheckpointManager:
    manager = CheckpointManager(folder, CheckpointConfig(keep=keep))
    for step in steps:
        manager.save(state(step, algorithm == "sac"), card(algorithm), step)
    return manager


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def with_replays(folder: Path) -> list[int]:
    manager = CheckpointManager(folder)
    return [step for step in manager.steps() if REPLAY_GROUP in read_archive(manager.path_of(step)).tensors]


# --- there and back ---


def test_a_checkpoint_comes_back_as_it_went(tmp_path):
    # Saved at step 700 within a rollout that began at 640: that is where the run goes on.
    path = CheckpointManager(tmp_path).save(state(640, with_replay=True), card("sac"), 700)
    found = load_checkpoint(path)
    assert path == tmp_path / "checkpoint_700.zip"
    assert (found.path, found.step, found.card, found.snapshot.step) == (path, 700, card("sac"), 640)
    assert found.snapshot.plain == state(640).plain
    assert set(found.snapshot.groups) == {"policy", REPLAY_GROUP}
    np.testing.assert_array_equal(found.snapshot.groups["policy"]["w"], state(640).groups["policy"]["w"])
    assert read_archive(path).about == {"card": card("sac"), "step": 700, "resumes_from": 640}


def test_equal_states_give_equal_bytes(tmp_path):
    for name in ("a.zip", "b.zip"):
        save_snapshot(tmp_path / name, state(3), card(), 5)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


# --- names ---


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    save(tmp_path, [900, 10_000, 1000, 99])
    manager = CheckpointManager(tmp_path)
    assert manager.steps() == [99, 900, 1000, 10_000]
    assert manager.names() == [f"checkpoint_{step}.zip" for step in (99, 900, 1000, 10_000)]


def test_other_files_are_no_checkpoints(tmp_path):
    for name in ("checkpoint_.zip", "checkpoint_1.zip.partial", "checkpoint_-1.zip", "checkpoint_07.zip", "x_1.zip"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "checkpoint_\u0663.zip").write_bytes(b"x")
    assert CheckpointManager(tmp_path).steps() == []


def test_a_folder_that_is_not_there_has_none(tmp_path):
    manager = CheckpointManager(tmp_path / "none")
    assert manager.steps() == []
    assert manager.names() == []
    assert manager.find_newest() is None


# --- how many are kept ---


@pytest.mark.parametrize(("keep", "left"), [(0, [1, 2, 3, 4, 5]), (1, [5]), (2, [4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_last_so_many_are_kept(tmp_path, keep, left):
    assert save(tmp_path, [1, 2, 3, 4, 5], keep=keep).steps() == left


def test_nothing_else_is_thinned_out(tmp_path):
    for name in ("checkpoint_best.zip", "ppo_seed1_model.zip", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    save(tmp_path, [1, 2], keep=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint_2.zip",
        "checkpoint_best.zip",
        "notes.txt",
        "ppo_seed1_model.zip",
    ]


def test_a_damaged_one_from_further_on_does_not_push_out_the_new_one(tmp_path):
    save(tmp_path, [100, 200, 300])
    damage(tmp_path / "checkpoint_300.zip")
    # The run went on from 200.
    manager = save(tmp_path, [250], keep=1)
    assert manager.steps() == [250, 300]
    assert manager.find_newest().step == 250


def test_one_that_cannot_be_removed_is_said_and_the_run_goes_on(tmp_path, caplog, monkeypatch):
    save(tmp_path, [1])
    unlink = Path.unlink

    def refuse(path, **options):
        if path.name == "checkpoint_1.zip":
            raise PermissionError(13, "Permission denied")
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert save(tmp_path, [2], keep=1).steps() == [1, 2]
    assert "checkpoint_1.zip: cannot be removed (Permission denied)" in caplog.text


@pytest.mark.parametrize("keep", [0, 3])
def test_only_the_newest_two_hold_the_replay_buffer(tmp_path, keep):
    manager = save(tmp_path, [10, 20, 30, 40], "sac", keep)
    assert with_replays(tmp_path) == [30, 40]
    # All else in the older ones is as it was.
    for step in manager.steps():
        found = load_checkpoint(manager.path_of(step))
        assert (found.step, found.snapshot.step, found.card) == (step, step, card("sac"))
        np.testing.assert_array_equal(found.snapshot.groups["policy"]["w"], np.full(4, step, np.float32))


def test_a_checkpoint_that_has_no_replay_buffer_to_lose_is_not_rewritten(tmp_path):
    save(tmp_path, [10, 20])
    before = (tmp_path / "checkpoint_10.zip").stat()
    save(tmp_path, [30, 40])
    after = (tmp_path / "checkpoint_10.zip").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_damaged_one_that_should_lose_its_replay_buffer_is_said_and_left(tmp_path, caplog):
    save(tmp_path, [10, 20], "sac")
    damage(tmp_path / "checkpoint_10.zip")
    before = (tmp_path / "checkpoint_10.zip").read_bytes()
    save(tmp_path, [30], "sac")
    assert "checkpoint_10.zip" in caplog.text
    assert (tmp_path / "checkpoint_10.zip").read_bytes() == before


# --- the newest whole one ---


def test_the_newest_is_found_by_its_step_not_by_its_name_or_date(tmp_path):
    save(tmp_path, [10_000, 9000])
    assert CheckpointManager(tmp_path).find_newest().step == 10_000


def test_damaged_ones_are_passed_over_with_a_word(tmp_path, caplog):
    manager = save(tmp_path, [1, 2, 3, 4])
    damage(manager.path_of(4))
    manager.path_of(3).write_bytes(manager.path_of(3).read_bytes()[:-7])
    with caplog.at_level(logging.WARNING):
        assert manager.find_newest().step == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "checkpoint_4.zip" in caplog.messages[0]
    assert "checkpoint_3.zip" in caplog.messages[1]
    assert not any("\n" in message for message in caplog.messages)


def test_where_all_are_damaged_there_is_none(tmp_path, caplog):
    manager = save(tmp_path, [1, 2])
    damage(manager.path_of(1))
    manager.path_of(2).write_bytes(b"")
    assert manager.find_newest() is None
    assert len(caplog.records) == 2


def whole_about() -> dict:
    return {"card": card(), "step": 7, "resumes_from": 7}


@pytest.mark.parametrize(
    ("about", "documents"),
    [
        ({}, {"state": state(7).plain}),
        (whole_about(), {}),
        (whole_about(), {"state": [1]}),
        (whole_about(), {"state": {"learner": {}}}),
        ({**whole_about(), "step": "x"}, {"state": state(7).plain}),
        ({**whole_about(), "card": 5}, {"state": state(7).plain}),
        ({**whole_about(), "resumes_from": 6}, {"state": state(7).plain}),
    ],
)
def test_a_whole_file_that_is_no_checkpoint_is_refused_and_passed_over(tmp_path, about, documents):
    path = tmp_path / "checkpoint_7.zip"
    write_archive(path, Archive(about, dict(documents), {}))
    with pytest.raises(ArchiveError, match=r"checkpoint_7\.zip: is no checkpoint of a run"):
        load_checkpoint(path)
    assert CheckpointManager(tmp_path).find_newest() is None


def test_a_checkpoint_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such file"):
        load_checkpoint(tmp_path / "checkpoint_1.zip")


# --- when the disk is full ---


def test_a_write_that_fails_leaves_all_others_as_they_were(tmp_path, monkeypatch):
    manager = save(tmp_path, [1, 2], "sac", keep=2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputFileError, match=r"checkpoint_3\.zip: cannot be written \(No space left on device\)"):
        manager.save(state(3, with_replay=True), card("sac"), 3)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert manager.find_newest().step == 2


def test_a_disk_that_is_really_full_costs_the_new_checkpoint_only(tmp_path):
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root on Linux can make a small disk")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a disk")
    try:
        manager = CheckpointManager(tmp_path, CheckpointConfig(keep=1))
        manager.save(state(1, num_weights=20_000), card(), 1)
        before = manager.path_of(1).read_bytes()
        with pytest.raises(OutputFileError, match=r"checkpoint_2\.zip: cannot be written \(No space left on device\)"):
            manager.save(state(2, num_weights=60_000), card(), 2)
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_1.zip"]
        assert manager.path_of(1).read_bytes() == before
        assert manager.find_newest().step == 1
    finally:
        subprocess.run(["umount", tmp_path], check=True)


# --- settings ---


def test_settings_are_counts():
    assert CheckpointConfig() == CheckpointConfig(interval=10_000, keep=0)
    for name in ("interval", "keep"):
        with pytest.raises(ConfigError, match=f"{name} must be zero or more, got -1"):
            CheckpointConfig(**{name: -1})

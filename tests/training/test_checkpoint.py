"""Checkpoints on disk: how many are kept, which one is found, and that a failed save damages none."""

import os
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from hotlap.errors import ArchiveError, OutputFileError
from hotlap.models.archive import Archive, read_archive, write_archive
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot
from hotlap.training.checkpoint import CheckpointConfig, CheckpointManager, load_checkpoint, save_snapshot


def state(step: int, with_replay: bool = False) -> Snapshot:
    """The parts of a run's state that a checkpoint reads."""
    groups = {"policy": {"w": np.full(4, step, np.float32)}}
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


def test_a_checkpoint_is_read_as_it_was_written_and_equal_states_give_equal_bytes(tmp_path):
    # Saved at step 700, within a rollout that began at 640: a run resumes from 640.
    path = CheckpointManager(tmp_path).save(state(640, with_replay=True), card("sac"), 700)
    found = load_checkpoint(path)
    assert path == tmp_path / "checkpoint_700.zip"
    assert (found.path, found.step, found.card, found.snapshot.step) == (path, 700, card("sac"), 640)
    assert found.snapshot.plain == state(640).plain
    assert set(found.snapshot.groups) == {"policy", REPLAY_GROUP}
    np.testing.assert_array_equal(found.snapshot.groups["policy"]["w"], state(640).groups["policy"]["w"])
    about = {"card": card("sac"), "step": 700, "resumes_from": 640, "has_replay_buffer": True}
    assert read_archive(path).about == about
    save_snapshot(tmp_path / "again.zip", state(640, with_replay=True), card("sac"), 700)
    assert (tmp_path / "again.zip").read_bytes() == path.read_bytes()


def test_checkpoints_are_sorted_by_step_and_other_files_are_not_checkpoints(tmp_path):
    manager = CheckpointManager(tmp_path / "run")
    assert (manager.steps(), manager.names(), manager.find_newest()) == ([], [], None)  # no folder yet
    save(tmp_path, [900, 10_000, 1000, 99])
    for name in (".zip", "1.zip.partial", "-1.zip", "07.zip", "\u0663.zip", "best.zip"):
        (tmp_path / f"checkpoint_{name}").write_bytes(b"x")
    (tmp_path / "x_1.zip").write_bytes(b"x")
    manager = CheckpointManager(tmp_path)
    assert manager.steps() == [99, 900, 1000, 10_000]
    assert manager.names() == [f"checkpoint_{step}.zip" for step in (99, 900, 1000, 10_000)]
    assert manager.find_newest().step == 10_000  # neither the last by name nor by date


@pytest.mark.parametrize(("keep", "left"), [(0, [1, 2, 3, 4, 5]), (1, [5]), (2, [4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_newest_are_kept_and_other_files_are_not_removed(tmp_path, keep, left):
    others = ["checkpoint_best.zip", "notes.txt", "ppo_seed1_model.zip"]
    for name in others:
        (tmp_path / name).write_bytes(b"x")
    assert save(tmp_path, [1, 2, 3, 4, 5], keep=keep).steps() == left
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"checkpoint_{step}.zip" for step in left] + others


def test_a_damaged_later_checkpoint_does_not_count_as_kept(tmp_path):
    save(tmp_path, [100, 200, 300])
    damage(tmp_path / "checkpoint_300.zip")
    # The run resumed from 200.
    manager = save(tmp_path, [250], keep=1)
    assert manager.steps() == [250, 300]
    assert manager.find_newest().step == 250


def test_a_checkpoint_that_cannot_be_removed_is_warned_about(tmp_path, caplog, monkeypatch):
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
def test_only_the_newest_two_keep_the_replay_buffer(tmp_path, keep):
    manager = save(tmp_path, [10, 20, 30, 40], "sac", keep)
    # The rest of the older ones is unchanged.
    for step in manager.steps():
        found = load_checkpoint(manager.path_of(step))
        assert (REPLAY_GROUP in found.snapshot.groups) == (step in (30, 40))
        assert (found.step, found.snapshot.step, found.card) == (step, step, card("sac"))
        np.testing.assert_array_equal(found.snapshot.groups["policy"]["w"], np.full(4, step, np.float32))


def test_a_checkpoint_without_a_replay_buffer_is_not_rewritten(tmp_path):
    save(tmp_path, [10, 20])
    before = (tmp_path / "checkpoint_10.zip").stat()
    save(tmp_path, [30, 40])
    after = (tmp_path / "checkpoint_10.zip").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_damaged_checkpoint_that_cannot_be_rewritten_is_warned_about_and_unchanged(tmp_path, caplog):
    save(tmp_path, [10, 20], "sac")
    damage(tmp_path / "checkpoint_10.zip")
    before = (tmp_path / "checkpoint_10.zip").read_bytes()
    save(tmp_path, [30], "sac")
    assert "checkpoint_10.zip" in caplog.text
    assert (tmp_path / "checkpoint_10.zip").read_bytes() == before


def test_damaged_checkpoints_are_skipped_with_a_warning(tmp_path, caplog):
    manager = save(tmp_path, [1, 2, 3, 4])
    damage(manager.path_of(4))
    manager.path_of(3).write_bytes(manager.path_of(3).read_bytes()[:-7])
    assert manager.find_newest().step == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "checkpoint_4.zip" in caplog.messages[0]
    assert "checkpoint_3.zip" in caplog.messages[1]
    assert not any("\n" in message for message in caplog.messages)
    manager.path_of(2).write_bytes(b"")
    damage(manager.path_of(1))
    assert manager.find_newest() is None


ABOUT, STATE = {"card": card(), "step": 7, "resumes_from": 7}, {"state": state(7).plain}


@pytest.mark.parametrize(
    ("about", "documents"),
    [
        ({}, STATE),
        (ABOUT, {}),
        (ABOUT, {"state": [1]}),
        (ABOUT, {"state": {"learner": {}}}),
        ({**ABOUT, "step": "x"}, STATE),
        ({**ABOUT, "card": 5}, STATE),
        ({**ABOUT, "resumes_from": 6}, STATE),
    ],
)
def test_an_archive_that_is_not_a_checkpoint_is_refused_and_skipped(tmp_path, about, documents):
    path = tmp_path / "checkpoint_7.zip"
    write_archive(path, Archive(about, dict(documents), {}))
    with pytest.raises(ArchiveError, match=r"checkpoint_7\.zip: is not a checkpoint of a run"):
        load_checkpoint(path)
    assert CheckpointManager(tmp_path).find_newest() is None


def test_a_failed_write_leaves_all_other_checkpoints_unchanged(tmp_path, monkeypatch):
    manager = save(tmp_path, [1, 2], "sac", keep=2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OutputFileError, match=r"checkpoint_3\.zip: cannot be written \(No space left on device\)"):
        manager.save(state(3, with_replay=True), card("sac"), 3)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert manager.find_newest().step == 2

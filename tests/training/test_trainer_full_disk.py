"""A disk that is full for a while costs the checkpoints of that time and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.training.trainer import Observer, Trainer
from tiny_runs import (
    StopAt,
    assert_same_run,
    folder_at,
    tiny_config,
    train,
)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a megabyte."""
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root on Linux can mount a file system")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=512k", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("this system does not allow mounting")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


class FillDisk(Observer):
    """Fills the disk from one step to another."""

    def __init__(self, disk: Path, first: int, last: int) -> None:
        self._file, self._first, self._last = disk / "filler", first, last

    def on_step(self, events) -> bool:
        if events.num_timesteps == self._first:
            with self._file.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(512))
                except OSError:
                    pass
        if events.num_timesteps == self._last:
            self._file.unlink()
        return True


def test_a_full_disk_costs_the_new_checkpoint_only(small_disk, whole, unevaluated, caplog):
    config = tiny_config(steps=150, recording_interval=1)
    path = small_disk / "run"
    trainer = Trainer(config, folder_at(path, config), observers=[FillDisk(small_disk, 50, 110)])
    seen = []

    class Look(Observer):
        def on_step(self, events):
            if events.num_timesteps == 100:
                seen.append(trainer.checkpoints.find_newest().step)
            return True

    trainer.observers = (*trainer.observers, Look())
    assert trainer.run().step == 150
    assert seen == [40]
    assert "checkpoint_80.zip: cannot be written (No space left on device)" in caplog.text
    assert "Training continues" in caplog.text
    assert "metrics.jsonl: cannot be written" in caplog.text
    assert trainer.checkpoints.steps() == [40, 120]
    assert_same_run(path, whole(config), config)


def test_a_stop_on_a_full_disk_is_reported_as_unsaved_and_the_checkpoint_before_it_works(
    small_disk, whole, unevaluated
):
    config, path = tiny_config(), small_disk / "run"
    stop = StopAt(70)
    stop.trainer = Trainer(config, folder_at(path, config), observers=[FillDisk(small_disk, 60, 1000), stop])
    outcome = stop.trainer.run()
    assert (outcome.results, outcome.is_saved) == (None, False)
    (small_disk / "filler").unlink()
    train(config, path, resume=True)
    assert_same_run(path, whole(config), config)

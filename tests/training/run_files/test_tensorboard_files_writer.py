"""Event files that TensorBoard reads back, whatever the disk did while they were written."""

import errno
import math

import numpy as np
import pytest
from stable_baselines3.common.logger import Logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.errors import OutputFileError
from hotlap.training.run_files.tensorboard_files import EventWriter


def read_back(folder):
    """What TensorBoard sees: for each name, its steps and values."""
    events = EventAccumulator(str(folder)).Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def test_tensorboard_reads_the_numbers_that_the_logger_was_given(tmp_path):
    logger = Logger(None, [EventWriter(tmp_path)])
    for step in (3, 10):
        logger.record("a/int", step)
        logger.record("a/float", 0.5 * step)
        logger.record_mean("b/mean", np.float32(step))
        logger.record_mean("b/mean", np.float64(step + 1))
        logger.dump(step)
    logger.close()
    assert read_back(tmp_path) == {
        "a/int": [(3, 3.0), (10, 10.0)],
        "a/float": [(3, 1.5), (10, 5.0)],
        "b/mean": [(3, 3.5), (10, 10.5)],
    }


def test_what_is_no_number_or_not_for_tensorboard_is_left_out(tmp_path):
    logger = Logger(None, [EventWriter(tmp_path)])
    logger.record("shown", 1)
    logger.record("hidden", 2, exclude="tensorboard")
    logger.record("text", "hello")
    logger.record("array", np.zeros(3))
    logger.dump(1)
    logger.close()
    assert read_back(tmp_path) == {"shown": [(1, 1.0)]}


def test_a_figure_that_is_no_number_is_told_as_such(tmp_path):
    writer = EventWriter(tmp_path)
    writer.write({"nan": math.nan}, {"nan": None}, 5)
    writer.close()
    [(step, value)] = read_back(tmp_path)["nan"]
    assert step == 5
    assert math.isnan(value)


def test_each_writer_has_a_file_of_its_own(tmp_path):
    for step in (1, 2):
        writer = EventWriter(tmp_path)
        writer.write({"a": step}, {}, step)
        writer.close()
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
    assert read_back(tmp_path) == {"a": [(1, 1.0), (2, 2.0)]}


def test_a_full_disk_leaves_a_file_that_can_be_read_and_gone_on_with(tmp_path):
    writer = EventWriter(tmp_path)
    file = writer._journal._file

    class Filling:
        """Takes half a record and is full until told otherwise."""

        is_full = False

        def write(self, content):
            if not self.is_full:
                return file.write(content)
            if len(content) < 20:
                raise OSError(errno.ENOSPC, "No space left on device")
            return file.write(content[: len(content) - 19])

        def __getattr__(self, name):
            return getattr(file, name)

    writer._journal._file = disk = Filling()
    for step in range(6):
        disk.is_full = step in (2, 3)
        writer.write({"a": step}, {}, step)
        writer._journal.flush()
        if disk.is_full:
            assert read_back(tmp_path) == {"a": [(0, 0.0), (1, 1.0)]}
    writer.close()
    assert read_back(tmp_path) == {"a": [(step, float(step)) for step in range(6)]}


def test_a_place_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError, match="cannot be made"):
        EventWriter(tmp_path / "file" / "tensorboard")

"""Event files cut back to a step: what was logged up to it stays to the bit, what came after is gone."""

import errno
import struct
from pathlib import Path

import pytest
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.errors import OutputFileError
from hotlap.training.run_files.tensorboard_files import drop_events_after

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
    """What TensorBoard itself makes of a folder."""
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def expected(steps: list[int]) -> dict[str, list[tuple[int, float]]]:
    return {
        "rollout/ep_rew_mean": [(step, 0.5 * step) for step in steps],
        "train/loss": [(step, -1.0 * step) for step in steps],
    }


@pytest.mark.parametrize("step", [100, 250, 300, 10**9])
def test_events_up_to_the_step_stay_and_later_ones_go(tmp_path, step):
    write_log(tmp_path, [100, 200, 300, 400])
    drop_events_after(tmp_path, step)
    assert read_log(tmp_path) == expected([one for one in (100, 200, 300, 400) if one <= step])


def test_before_the_first_step_nothing_is_left_but_the_file_can_be_read(tmp_path):
    path = write_log(tmp_path, [100])
    drop_events_after(tmp_path, 0)
    assert read_log(tmp_path) == {}
    assert path.stat().st_size > 0  # its version


def test_what_stays_is_not_touched(tmp_path):
    path = write_log(tmp_path, [100, 200])
    whole, before = path.read_bytes(), path.stat()
    drop_events_after(tmp_path, 200)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino
    drop_events_after(tmp_path, 100)
    assert whole.startswith(path.read_bytes())
    assert len(path.read_bytes()) < len(whole)


def test_a_run_that_goes_on_has_one_axis_without_repeats(tmp_path):
    write_log(tmp_path, [100, 200, 300])
    drop_events_after(tmp_path, 200)
    write_log(tmp_path, [300, 400])
    drop_events_after(tmp_path, 300)
    write_log(tmp_path, [400, 500])
    assert len(list(tmp_path.iterdir())) == 3
    found = [sorted(points) for points in read_all(tmp_path).values()]
    assert found == [sorted(points) for points in expected([100, 200, 300, 400, 500]).values()]


def read_all(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The points of every file: TensorBoard's reader takes files up by their names, which tell times that we gave."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for tag, points in read_log(path).items():
            found.setdefault(tag, []).extend(points)
    return found


@pytest.mark.parametrize("torn_bytes", [1, 4, 5, 30])
def test_a_record_torn_by_a_crash_goes_and_those_before_it_stay(tmp_path, torn_bytes):
    path = write_log(tmp_path, [100, 200, 300])
    path.write_bytes(path.read_bytes()[:-torn_bytes])
    drop_events_after(tmp_path, 10**9)
    found = read_log(tmp_path)
    assert found["rollout/ep_rew_mean"][:2] == expected([100, 200])["rollout/ep_rew_mean"]
    assert found["train/loss"] == expected([100, 200])["train/loss"]
    assert_whole(path)


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"\xff" * 100, b"\x05", struct.pack("<QI", 1 << 63, 0)])
def test_what_a_power_cut_leaves_behind_the_records_goes(tmp_path, tail):
    path = write_log(tmp_path, [100, 200])
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    drop_events_after(tmp_path, 200)
    assert path.read_bytes() == whole


def test_a_record_that_is_no_event_goes_and_the_others_stay(tmp_path):
    path = write_log(tmp_path, [100])
    whole = path.read_bytes()
    path.write_bytes(whole + struct.pack("<QI", 3, 0) + b"\xff\xff\xff" + b"\x00" * 4 + whole)
    drop_events_after(tmp_path, 100)
    assert path.read_bytes() == whole + whole


def assert_whole(path: Path) -> None:
    """A file of whole records, by walking over it once more."""
    content, place = path.read_bytes(), 0
    while place < len(content):
        place += struct.unpack_from("<Q", content, place)[0] + RECORD_OVERHEAD_BYTES
    assert place == len(content)


def test_other_files_and_a_folder_that_is_not_there_are_no_matter(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"x")
    drop_events_after(tmp_path, 0)
    drop_events_after(tmp_path / "none", 0)
    assert (tmp_path / "notes.txt").read_bytes() == b"x"


def test_a_full_disk_is_said_in_one_line_and_leaves_the_file_as_it_was(tmp_path):
    path = write_log(tmp_path, [100, 200])
    whole = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OutputFileError, match=r"cannot be cut back to step 100 \(No space left on device\)"):
            drop_events_after(tmp_path, 100)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]

"""The page's data files: what the engine drives on, and recorded drives that are still true."""

import json
import struct
from datetime import timedelta

import numpy as np
import pytest

from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import SHIPPED_FOLDER
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import find_entries, load_track
from hotlap.web import page_data
from hotlap.web.page_data import drivers_list, page_file
from hotlap.web.policy_file import policy_bytes
from hotlap.web.replay_format import Replay
from hotlap.web.replays import simulate, verify

BUILT_IN = ("track-01", "track-02", "track-03")


def test_a_track_file_holds_the_simulators_own_records():
    track = load_track("track-01")
    content = page_data.track_file(track)
    magic, length = struct.unpack_from("<4sI", content)
    header = json.loads(content[8 : 8 + length])
    assert (magic, length % 4, header["physics"]) == (b"HLT1", 0, PHYSICS_VERSION)
    at = 8 + length
    counts = (1, header["num_nodes"], header["num_portals"])
    for dtype, count, part in zip((TRACK_DTYPE, NODE_DTYPE, PORTAL_DTYPE), counts, track.guided_ribbon, strict=True):
        assert content[at : at + dtype.itemsize * count] == part.tobytes()
        at += dtype.itemsize * count
    line = np.frombuffer(content, "<f4", offset=at).reshape(3, header["num_line_points"])
    assert 0.0 < line[2].min() < line[2].max() < 80.0
    assert header["optimal_lap_time_sec"] == pytest.approx(28.311, abs=0.01)


@pytest.mark.parametrize("track_id", ["train-003", "test-010"])
def test_the_list_says_of_a_generated_track_what_the_track_itself_does(track_id):
    (entry,) = find_entries([track_id])
    listed, built = page_data.describe_entry(entry), page_data.describe_track(load_track(track_id), entry.source)
    assert {name: listed[name] for name in built} == built
    shape = np.array(listed["shape"]).reshape(-1, 2)
    nodes = load_track(track_id).nodes
    extent = np.array([np.ptp(nodes.x_m), np.ptp(nodes.y_m)])
    assert np.ptp(shape, axis=0) == pytest.approx(99 * extent / extent.max(), abs=3)


def test_medals_of_a_generated_track_are_as_far_from_its_optimum_as_those_of_the_built_in_ones():
    for track_id in BUILT_IN:
        described = page_data.describe_track(load_track(track_id), "built-in")
        for name, factor in page_data.MEDAL_FACTORS.items():
            assert described["medals_sec"][name] / described["optimal_lap_time_sec"] == pytest.approx(factor, abs=0.01)


def test_every_generated_track_has_its_day_and_none_comes_twice_in_125_days():
    days = [page_data.DAY_ONE + timedelta(days=number) for number in range(-125, 250)]
    ids = [page_data.daily_track(day) for day in days]
    for first in (0, 60, 250):
        assert len(set(ids[first : first + 125])) == 125
    assert page_data.daily_track(page_data.DAY_ONE) == "train-000"
    assert page_data.daily_track(page_data.DAY_ONE + timedelta(days=1)) == "train-047"


@pytest.mark.parametrize("track_id", BUILT_IN)
@pytest.mark.parametrize("driver", page_data.RECORDED_DRIVERS)
def test_recorded_drives_are_driven_again_to_the_bit_and_are_clean(track_id, driver):
    replay = Replay.from_bytes(page_data.recorded_drive(driver, track_id))
    assert verify(replay, track_id).time_s == float(replay.lap_time_s)
    assert all(lap.is_clean for lap in simulate(replay, track_id))


def test_the_recorded_run_has_policies_of_this_physics():
    run = page_data.recorded_run()
    files = [run["best"]["policy"], *(one["policy"] for one in run["checkpoints"])]
    assert len(files) > 10
    for name in files:
        content, media_type = page_data.page_file(name.removeprefix("data/"))
        _, length = struct.unpack_from("<4sI", content)
        assert json.loads(content[8 : 8 + length])["physics"] == PHYSICS_VERSION
        assert media_type == "application/octet-stream"


def test_every_named_file_exists_and_nothing_else_is_read(tmp_path):
    for name in page_data.file_names():
        content, media_type = page_data.page_file(name)
        assert content
        if media_type == page_data.JSON:
            json.loads(content)
    for name in (
        "",
        "../page_data.py",
        "track-01",
        "track-01.csv",
        "nowhere.track",
        "../../track-01.track",
        "tracks.json/",
        "recorded-run.json\0",
    ):
        assert page_data.page_file(name) is None


def test_a_split_track_has_files_too_on_the_server():
    content, _ = page_data.page_file("train-000.track")
    assert content.startswith(b"HLT1")
    (driver,) = json.loads(page_data.page_file("train-000.drivers.json")[0])
    assert driver["id"] == "generalist"


def test_the_shipped_drivers_are_first_and_their_policies_are_data_files():
    drivers = drivers_list("track-02")
    assert [driver["id"] for driver in drivers[:2]] == ["champion", "generalist"]
    assert [driver["track"] for driver in drivers[:2]] == ["track-02", None]
    for driver, shipped in zip(drivers, ("track-02", "generalist"), strict=False):
        content, _ = page_file(driver["policy"].removeprefix("data/"))
        assert content == policy_bytes(read_model(SHIPPED_FOLDER / f"{shipped}.zip"))
    assert [driver["id"] for driver in drivers_list("train-000")] == ["generalist"]
    assert page_file("train-000.champion.policy") is None
    assert page_file("../track-01.champion.policy") is None

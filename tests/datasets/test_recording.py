"""Datasets: Minari loads them, the environment gives their numbers again, and the same task gives the same bytes."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import forked_python
from evaluation.statue import Statue
from hotlap.datasets.episodes import DRIVER_ACTION
from hotlap.datasets.recording import RecordingTask, default_id, record_dataset, verify_dataset
from hotlap.errors import ConfigError, DatasetError, HotlapError, OutputFileError
from hotlap.evaluation.evaluate import evaluate
from hotlap.optimal.reference import find_reference
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import load_track
from hotlap.web.replays import find_recorded

minari = pytest.importorskip("minari", reason='Minari is missing: pip install "hotlap[data]"')


NUM_TICKS = 200


def record(root: Path, *drivers: str, name: str = "test-v0", **settings):
    task = RecordingTask(drivers, **{"tracks": ("track-01",), **settings})
    return record_dataset(task, root, name, pytest.fail)


def shortened(driver_id: str, track_id: str):
    """The beginning of a drive that ships."""
    replay = find_recorded(driver_id, load_track(track_id))
    return replace(replay, actions=replay.actions[:NUM_TICKS])


@pytest.fixture(scope="module")
def champion(compiled, tmp_path_factory):
    """Two episodes of the champion with noise."""
    return record(tmp_path_factory.mktemp("champion"), "champion", episodes=2, seed=5, noise=0.05)


@pytest.fixture(scope="module")
def loaded(champion):
    return minari.MinariDataset(champion.folder)


def test_minari_loads_it_by_its_id(champion, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(champion.folder.parents[1]))
    assert list(minari.list_local_datasets()) == ["test-v0"]
    dataset = minari.load_dataset("test-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (2, champion.steps)
    assert [len(episode) for episode in dataset] == [len(episode.rewards) for episode in dataset]
    assert dataset.sample_episodes(1)[0].observations.shape[1] == dataset.observation_space.shape[0]


def test_its_spaces_are_those_that_minari_itself_writes(champion, loaded):
    from minari.serialization import serialize_space

    about = json.loads((champion.folder / "metadata.json").read_text("utf-8"))
    env = loaded.recover_environment()
    assert about["observation_space"] == serialize_space(env.observation_space)
    assert about["action_space"] == serialize_space(env.action_space)
    for episode in loaded:
        assert all(env.action_space.contains(action) for action in episode.actions[::50])
        assert all(env.observation_space.contains(row) for row in episode.observations[::50])


def test_the_recovered_environment_gives_the_same_numbers_from_seed_and_actions(loaded):
    env = loaded.recover_environment()
    for episode, about in zip(loaded, loaded.storage.get_episode_metadata([0, 1]), strict=True):
        obs, _ = env.reset(seed=about["seed"], options=about["options"])
        assert (obs == episode.observations[0]).all()
        for step, action in enumerate(episode.actions):
            obs, reward, _, _, info = env.step(action)
            assert (obs == episode.observations[step + 1]).all()
            assert reward == episode.rewards[step]
        assert info["lapTime"] == episode.infos["lapTime"][-1]
        assert not episode.terminations.any()
        assert episode.truncations.nonzero()[0].tolist() == [len(episode) - 1]


def test_gap_and_time_to_go_fit_the_lap(loaded):
    lap_s = find_reference(load_track("track-01")).lap_time_s
    for episode in loaded:
        infos, [start, end] = episode.infos, np.flatnonzero(np.diff(episode.infos["optimalTimeToGo"]) > 10.0) + 1
        # Between two crossings of the line the time lost is that of the lap, but for parts of a tick.
        lost_s = infos["gap"][end] - infos["gap"][start]
        assert lost_s == pytest.approx(float(infos["lapTime"][-1]) - lap_s, abs=0.01)
        assert infos["gap"][0] == 0.0
        assert np.diff(infos["gap"]).max() < 0.02


def test_noise_moves_the_car_and_the_drivers_wish_is_kept(loaded, tmp_path, compiled):
    noisy, quiet = loaded[0], record(tmp_path, "champion", episodes=1, seed=5)
    quiet = minari.MinariDataset(quiet.folder)[0]
    assert (quiet.infos[DRIVER_ACTION][:-1] == quiet.actions).all()
    apart = noisy.actions - noisy.infos[DRIVER_ACTION][:-1]
    assert 0.01 < apart[:, 0].std() < 0.1
    assert (noisy.infos[DRIVER_ACTION][0] == quiet.actions[0]).all()


def test_without_noise_the_lap_is_that_of_evaluate(tmp_path, compiled):
    found = record(tmp_path, "champion", episodes=3, seed=11)
    times_s = evaluate(find_driver("champion", "track-01"), "track-01", episodes=3, start="random", seed=11).lap_times_s
    recorded_s = [float(episode.infos["lapTime"][-1]) for episode in minari.MinariDataset(found.folder)]
    assert sorted(recorded_s) == sorted(times_s)
    assert (found.laps, found.clean_laps, found.stuck) == (3, 3, 0)


def test_another_process_writes_the_same_bytes(champion, tmp_path):
    options = [
        "champion",
        "--track",
        "track-01",
        "--episodes",
        "2",
        "--seed",
        "5",
        "--noise",
        "0.05",
        "--id",
        "test-v0",
        "--out",
        "again",
    ]
    command = [sys.executable, "-m", "hotlap", "dataset", "record", *options]
    answer = forked_python.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=50)
    assert answer.returncode == 0, answer.stderr
    for name in ("main_data.hdf5", "metadata.json"):
        assert (tmp_path / "again" / "test-v0" / "data" / name).read_bytes() == (champion.folder / name).read_bytes()


def test_the_optimal_drive_and_another_observation(tmp_path, compiled, monkeypatch):
    replay = shortened("optimal", "track-01")
    monkeypatch.setattr("hotlap.datasets.sources.find_recorded", lambda *_: replay)
    found = record(tmp_path, "optimal", start="line", observation="road-2")
    dataset = minari.MinariDataset(found.folder)
    assert (dataset[0].actions == replay.actions).all()
    assert dataset.recover_environment().unwrapped.observation_space == dataset.observation_space
    assert dataset[0].observations.shape[1] == dataset.observation_space.shape[0] > 58
    assert verify_dataset(found.folder) == (1, NUM_TICKS)


@pytest.fixture(scope="module")
def replays(compiled, tmp_path_factory):
    """The first seconds of two people, on two tracks."""
    folder = tmp_path_factory.mktemp("replays")
    for name, track_id in (("ada", "track-02"), ("ben", "track-01")):
        (folder / f"{name}.replay").write_bytes(shortened("casual", track_id).to_bytes())
    drivers = [str(folder / f"{name}.replay") for name in ("ada", "ben")]
    return record(folder, *drivers, tracks=("track-01", "track-02"))


def test_replays_are_recorded_on_their_own_roads(replays):
    dataset = minari.MinariDataset(replays.folder)
    about = list(dataset.storage.get_episode_metadata(range(2)))
    assert [one["driver"] for one in about] == ["ada", "ben"]
    assert [one["track"] for one in about] == ["track-02", "track-01"]
    assert [(one["ended_by"], one["options"]["start"]) for one in about] == [("inputs", "line")] * 2
    assert (dataset[0].actions == shortened("casual", "track-02").actions).all()
    assert verify_dataset(replays.folder.parent) == (2, 2 * NUM_TICKS)


def test_a_changed_number_is_found(replays, tmp_path):
    for place, change in (("observations", 1e-6), ("infos/gap", 0.1), ("actions", 1e-4)):
        folder = tmp_path / place / "data"
        folder.mkdir(parents=True)
        for name in ("main_data.hdf5", "metadata.json"):
            (folder / name).write_bytes((replays.folder / name).read_bytes())
        with h5py.File(folder / "main_data.hdf5", "a") as file:
            column = file["episode_1"][place]
            column[100] = column[100] * np.float32(0.5) + np.float32(change)
        with pytest.raises(DatasetError, match=r"episode 1: .* is not what the simulator gives"):
            verify_dataset(folder)
    (folder / "main_data.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(DatasetError, match="is damaged"):
        verify_dataset(folder)
    (folder / "metadata.json").write_text("{}")
    with pytest.raises(DatasetError, match="was not written by"):
        verify_dataset(folder)


def test_a_stuck_car_ends_its_episode(tmp_path, compiled, monkeypatch):
    monkeypatch.setattr("hotlap.datasets.sources.make_driver", lambda *_: Statue())
    monkeypatch.setattr("hotlap.evaluation.evaluate.STUCK_AFTER_S", 2)
    found = record(tmp_path, "casual", episodes=1, start="line")
    assert (found.stuck, found.laps, found.steps) == (1, 0, 121)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": "grid"}, "start must be one of"),
        ({"episodes": 0}, "episodes must be from 1"),
        ({"laps": 0}, "laps must be from 1"),
        ({"noise": 2.0}, "noise must be from 0"),
        ({"observation": "race"}, "needs other cars"),
        ({"observation": "eyes"}, "observation must be"),
        ({"tracks": ("nowhere",)}, "track 'nowhere' is not known"),
        ({"drivers": ("nobody",)}, "driver 'nobody' is not known"),
        ({"drivers": ("nobody.replay",)}, "cannot be read"),
        ({"drivers": ("leaderboard",)}, "there is none yet"),
        ({"drivers": ()}, "name at least one"),
        ({"name": "../x-v0"}, "dataset id '../x-v0'"),
        ({"name": "x"}, "dataset id 'x'"),
        ({"name": "con/x-v0"}, "is the name of a device"),
    ],
)
def test_bad_input_is_refused_before_driving(tmp_path, settings, message):
    drivers = settings.pop("drivers", ("casual",))
    with pytest.raises(HotlapError, match=message) as error:
        record(tmp_path, *drivers, **settings)
    assert "\n" not in str(error.value)
    assert list(tmp_path.rglob("*.hdf5")) == []


def test_nothing_is_overwritten_and_nothing_half_is_left(champion, tmp_path, monkeypatch):
    with pytest.raises(OutputFileError, match="is there already"):
        record(champion.folder.parents[1], "champion")
    monkeypatch.setattr("hotlap.datasets.minari_files.DatasetWriter.finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        record(tmp_path, "champion", episodes=1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with pytest.raises(ConfigError, match="observation: 'race'"):
        RecordingTask(("casual",), observation="race")


def test_the_default_id_names_tracks_and_drivers():
    assert default_id(RecordingTask(("champion",), ("track-01",))) == "hotlap/track-01/champion-v0"
    assert default_id(RecordingTask(("runs/a b.zip", "casual"))) == "hotlap/own-tracks/a_b-casual-v0"

"""Runs in the results folder as the page shows them."""

import json
import shutil
import socket
from dataclasses import replace

import pytest

from hotlap.errors import ModelError, TrainingError
from hotlap.runs.run_config import load_config
from hotlap.runs.run_lock import RunLock, find_holder, is_locked
from hotlap.web.drivers import list_drivers
from hotlap.web.page_data import page_file
from hotlap.web.runs import find_run_folder, new_points, read_curves, run_folders, view_run
from reports.written_runs import LUNAR, write_events, write_run

LOGGED = {
    "rollout/ep_rew_mean": [(1000, 0.5), (2000, 0.75)],
    "racer/completion_rate": [(1000, 0.25)],
    "train/loss": [(1000, 9.0)],
}


@pytest.fixture
def experiments(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "experiments"
    folder.mkdir(parents=True)
    return folder


def test_a_finished_and_a_stopped_run_are_told_apart(experiments):
    write_run(experiments / "done", seed=1, steps=4000)
    write_run(experiments / "half", seed=2, is_finished=False, steps=4000)
    done, half = (view_run(name, find_run_folder(name)) for name in ("done", "half"))
    assert (done.state, done.step, done.steps) == ("finished", 4000, 4000)
    assert half.state == "stopped"
    assert half.step <= 4000
    assert done.track == "track-01"
    assert done.as_plain()["id"] == "done"


def test_a_run_on_generated_roads_is_shown_on_the_first_of_its_evaluations(experiments):
    write_run(experiments / "stream", seed=1, steps=4000)
    path = experiments / "stream" / "config.toml"
    config = load_config(path)
    path.write_text(replace(config, racer=replace(config.racer, track="generated")).to_toml())
    assert view_run("stream", find_run_folder("stream")).track == "generated-000"
    assert page_file("generated-000.track") is not None
    (experiments / "stream" / "ppo_seed1_model.zip").touch()
    [driver] = [one for one in list_drivers("track-02", has_optimal=False) if one["id"] == "run:stream"]
    assert driver["track"] is None


def test_a_run_whose_lock_is_held_is_running(experiments):
    folder = experiments / "busy"
    write_run(folder, is_finished=False)
    with RunLock(folder):
        assert view_run("busy", folder).state == "running"
        assert find_holder(folder).is_here
        assert is_locked(folder)
    assert view_run("busy", folder).state == "stopped"
    assert not is_locked(folder)


def test_a_lock_left_by_a_dead_process_is_not_a_running_run(experiments):
    folder = experiments / "dead"
    write_run(folder, is_finished=False)
    (folder / ".run.lock").write_text(json.dumps({"pid": 999_999_999, "host": socket.gethostname()}))
    assert find_holder(folder) is None
    assert not is_locked(folder)
    assert view_run("dead", folder).state == "stopped"


def test_curves_have_the_names_of_the_api_and_no_others(experiments):
    write_run(experiments / "one", is_finished=False, logged=LOGGED)
    assert read_curves(experiments / "one") == {
        "return": {"step": [1000, 2000], "value": [0.5, 0.75]},
        "completion_rate": {"step": [1000], "value": [0.25]},
    }


def test_only_new_points_are_sent_and_a_curve_that_restarts_is_sent_whole():
    before = {"return": {"step": [1, 2, 3], "value": [0.1, 0.2, 0.3]}}
    longer = {"return": {"step": [1, 2, 3, 4], "value": [0.1, 0.2, 0.3, 0.4]}, "gap": {"step": [4], "value": [9.0]}}
    assert new_points(before, before) == {}
    assert new_points(before, longer) == {
        "return": {"step": [4], "value": [0.4]},
        "gap": {"step": [4], "value": [9.0]},
    }
    resumed = {"return": {"step": [1, 2, 5], "value": [0.1, 0.2, 0.5]}}
    assert new_points(before, resumed) == resumed


def test_links_odd_names_and_other_environments_are_not_listed(experiments, tmp_path):
    write_run(experiments / "good", is_finished=False)
    write_run(tmp_path / "elsewhere", is_finished=False)
    (experiments / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    for name in ("a b", "-x", ".hidden", "x" * 200):
        shutil.copytree(experiments / "good", experiments / name)
    (experiments / "empty").mkdir()
    (experiments / "file").write_text("x")
    assert list(run_folders()) == ["good"]
    write_run(experiments / "lander", env=LUNAR)
    assert view_run("lander", experiments / "lander") is None
    for name in ("link", "a b", "..", "../elsewhere", "good/../good", ""):
        with pytest.raises(TrainingError, match="is not known"):
            find_run_folder(name)


def test_a_run_with_a_link_in_it_or_a_damaged_configuration_is_left_out(experiments, tmp_path):
    write_run(experiments / "linked", is_finished=False)
    (experiments / "linked" / "checkpoint_5.zip").symlink_to(tmp_path / "secret")
    write_run(experiments / "damaged", is_finished=False)
    (experiments / "damaged" / "config.toml").write_text("nonsense = [", encoding="utf-8")
    for name in ("linked", "damaged"):
        assert view_run(name, experiments / name) is None


def test_damaged_events_are_an_error_or_no_points(experiments):
    write_run(experiments / "one", is_finished=False)
    path = experiments / "one" / "tensorboard" / "events.out.tfevents.1700000000.x"
    write_events(path, LOGGED)
    content = path.read_bytes()
    for damaged in (content[:-7], b"\0" * 300, content[:40] + b"\xff" * 40 + content[80:], b""):
        path.write_bytes(damaged)
        try:
            curves = read_curves(experiments / "one")
        except ModelError:
            continue
        assert set(curves) <= {"return", "completion_rate"}

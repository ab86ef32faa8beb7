"""`hotlap drive`: laps, a picture, and exit codes."""

import itertools
import re
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from evaluation.statue import Statue
from hotlap.drivers import driver as driver_module
from hotlap.envs import race_video, rendering


def test_a_lap_and_its_picture(hotlap, tmp_path):
    png = tmp_path / "new" / "line.png"
    answer = hotlap("drive", "casual", "--laps", 1, "--png", png, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {"driver", "track", "laps", "top_speed_mps", "race", "png", "video"}
    [lap] = answer.figures["laps"]
    assert lap["clean"] is True
    assert 30.0 < lap["time_sec"] < 45.0
    assert 20.0 < answer.figures["top_speed_mps"] < 60.0
    assert (answer.figures["png"], answer.figures["race"], answer.figures["video"]) == (str(png), None, None)
    with Image.open(png) as image:
        assert min(image.size) > 300
    answer = hotlap("drive", "--laps", 1)
    assert answer.code == 0
    assert re.match(r"lap 1  standing  4.* clean(?s:.*)km/h", answer.out)


def test_another_car(hotlap, refused):
    answer = hotlap("drive", "casual", "--laps", 1, "--car", "grip=0.8,power=0.9", "--json")
    assert (answer.code, answer.figures["car"]) == (0, "grip=0.8,power=0.9")
    assert answer.figures["laps"][0]["time_sec"] > 44.0
    arguments = ("drive", "casual", "--rivals", "casual", "--car", "grip=0.9")
    assert "--car: the cars of a race are all the standard car." in refused(*arguments)


def test_rivals_make_it_a_race(hotlap):
    arguments = ("drive", "champion", "--laps", 1, "--rivals", "champion@0.3*2,champion@0.2")
    answer = hotlap(*arguments, "--json")
    assert answer.code == 0, answer.err
    assert 30.0 < answer.figures["laps"][0]["time_sec"] < 45.0
    race = answer.figures["race"]
    assert race["rivals"] == ["champion@0.3", "champion@0.3", "champion@0.2"]
    assert (race["cars"], race["position"]) == (4, 1)
    assert set(race) == {"rivals", "cars", "position", "contacts", "at_fault_contacts", "overtakes"}
    assert f"position 1 of 4, {race['contacts']} contact" in hotlap(*arguments).out


def test_a_film_of_the_drive(hotlap, tmp_path, monkeypatch):
    shades = itertools.count()
    monkeypatch.setattr(rendering, "draw_frame", lambda *_: np.full((60, 60, 3), next(shades) % 255, np.uint8))
    monkeypatch.setattr(race_video, "MAX_S", 5.0)
    gif = tmp_path / "new" / "drive.gif"
    answer = hotlap("drive", "champion", "--laps", 1, "--video", gif)
    assert answer.out.splitlines()[-1] == f"video: {gif}"
    with Image.open(gif) as image:
        assert image.n_frames == 51  # ten a second, until it is cut off


def test_a_model_drives_its_own_track_unless_another_is_named(hotlap, monkeypatch):
    # A stand-in for a model trained on track-02: `drive` and `evaluate` must choose the same track.
    model = SimpleNamespace(card=Mock(track="track-02"))
    monkeypatch.setattr("hotlap.runs.find_driver.find_driver_model", lambda name, track: model)
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: Statue())
    assert hotlap("drive", "model.zip", "--json").figures["track"] == "track-02"
    assert hotlap("drive", "model.zip", "--track", "track-03", "--json").figures["track"] == "track-03"


def test_a_stuck_car_gives_exit_code_1(hotlap, monkeypatch):
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: Statue())
    as_text, as_json = hotlap("drive", "--laps", 2), hotlap("drive", "--laps", 2, "--json")
    assert "stuck after 0 of 2 laps" in as_text.out
    assert "stuck after 0 of 1 lap\n" in hotlap("drive", "--laps", 1).out
    assert (as_text.code, as_json.code, as_json.figures["laps"]) == (1, 1, [])
    assert "Traceback" not in as_text.err + as_json.err


def test_bad_input_is_refused_in_one_line_before_driving(refused, tmp_path, monkeypatch):
    assert "driver 'nobody' is not known" in refused("drive", "nobody")
    assert "track 'nowhere' is not known" in refused("drive", "--track", "nowhere")
    assert "'--laps'" in refused("drive", "--laps", 0)
    assert "'--laps'" in refused("drive", "--laps", 1001)
    assert "from 1 to 32 cars, got 33" in refused("drive", "--rivals", "casual*32")
    assert "driver '': write NAME" in refused("drive", "--rivals", "")
    assert "must end in .mp4 or .gif" in refused("drive", "--video", tmp_path / "drive.avi")
    assert "'--seed'" in refused("drive", "--seed", "x")
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: pytest.fail("a driver was made"))
    assert "is a folder. Name a file" in refused("drive", "--png", tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("drive", "--png", tmp_path / "file" / "a.png")

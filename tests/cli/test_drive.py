"""`hotlap drive`: laps, a picture, and exit codes."""

import re
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from hotlap.drivers import driver as driver_module


class Statue:
    """Never moves."""

    name = "statue"

    def begin(self, fleet, seed):
        self._num_cars = fleet.num_cars

    def act(self, obs):
        return np.zeros((self._num_cars, 3), np.float32)


def test_a_lap_and_its_picture(hotlap, tmp_path):
    png = tmp_path / "new" / "line.png"
    answer = hotlap("drive", "casual", "--laps", 1, "--png", png, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {"driver", "track", "laps", "top_speed_mps", "png"}
    [lap] = answer.figures["laps"]
    assert lap["clean"] is True
    assert 30.0 < lap["time_sec"] < 45.0
    assert 20.0 < answer.figures["top_speed_mps"] < 60.0
    assert answer.figures["png"] == str(png)
    with Image.open(png) as image:
        assert min(image.size) > 300
    answer = hotlap("drive", "--laps", 1)
    assert answer.code == 0
    assert re.match(r"lap 1  standing  4.* clean(?s:.*)km/h", answer.out)


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
    assert "'--seed'" in refused("drive", "--seed", "x")
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: pytest.fail("a driver was made"))
    assert "is a folder. Name a file" in refused("drive", "--png", tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("drive", "--png", tmp_path / "file" / "a.png")

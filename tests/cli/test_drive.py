"""`hotlap drive`: laps, a picture, and an honest end."""

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


def test_for_people(hotlap):
    answer = hotlap("drive", "--laps", 1)
    assert answer.code == 0
    assert answer.out.startswith("lap 1  standing  4")
    assert "clean" in answer.out
    assert "km/h" in answer.out


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_getting_stuck_is_below_what_was_asked(hotlap, monkeypatch, more):
    monkeypatch.setattr(driver_module, "make_driver", lambda name: Statue())
    answer = hotlap("drive", "--laps", 2, *more)
    assert answer.code == 1
    assert "Traceback" not in answer.err
    if more:
        assert answer.figures["laps"] == []
    else:
        assert "stuck after 0 of 2 laps" in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "driver 'nobody' is not known"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
        (["--laps", "0"], "'--laps'"),
        (["--laps", "1001"], "'--laps'"),
        (["--laps", "some"], "'--laps'"),
        (["--seed", "x"], "'--seed'"),
    ],
)
def test_bad_input_is_refused_in_one_line(refused, arguments, words):
    assert words in refused("drive", *arguments)


def test_a_picture_that_cannot_be_written_is_refused_before_driving(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "make_driver", lambda name: pytest.fail("it drove"))
    assert "is a folder. Name a file" in refused("drive", "--png", tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("drive", "--png", tmp_path / "file" / "a.png")

"""Films of races."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.race_video import RaceVideo
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError, OutputFileError


def film(path: Path, num_ticks: int) -> None:
    fleet = RaceFleet(["track-01"], RacerSettings(), 1, 3, start="rolling", num_threads=1)
    fleet.seed(np.zeros(1, np.uint64))
    fleet.reset()
    video = RaceVideo(path)
    video.add(fleet)
    for _ in range(num_ticks // 2):
        fleet.step(np.zeros((3, 3), np.float32), autoreset=False, repeat=2)
        video.add(fleet)
    video.close()


def test_a_gif_has_ten_frames_a_second(tmp_path):
    film(tmp_path / "race.gif", 30)
    with Image.open(tmp_path / "race.gif") as image:
        assert image.n_frames == 6  # at 0, 0.1, … 0.5 s
        assert image.info["duration"] == 100


def test_an_mp4_has_twenty_frames_a_second(tmp_path):
    film(tmp_path / "race.mp4", 30)
    video = cv2.VideoCapture(str(tmp_path / "race.mp4"))
    assert video.get(cv2.CAP_PROP_FPS) == 20.0
    assert video.get(cv2.CAP_PROP_FRAME_COUNT) == 10 or video.get(cv2.CAP_PROP_FRAME_COUNT) == 11
    _, frame = video.read()
    assert frame.shape == (600, 600, 3)


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_users_file(tmp_path):
    path = tmp_path / "missing" / "race.mp4"
    with pytest.raises(OutputFileError) as caught:
        RaceVideo(path)
    assert str(caught.value) == f"--video {path}: cannot be written. Choose another folder."


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.mp4 or \.gif"):
        RaceVideo(tmp_path / "race.avi")


@pytest.mark.parametrize("name", ["race.mp4", "race.gif"])
def test_an_interrupted_film_leaves_the_old_one_and_no_draft(tmp_path, name):
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), RaceVideo(tmp_path / name):
        raise KeyboardInterrupt
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"old")]

"""What all exchange needs: a model's spaces, and files that are there whole or not at all."""

from pathlib import Path

import gymnasium as gym
import pytest

from hotlap.drivers.model_files import ModelCard, PolicySettings
from hotlap.envs.registration import RACER_ID
from hotlap.errors import ConfigError, OutputFileError
from hotlap.training.exchange import spaces_of, write_file


def card(environment, **more):
    return ModelCard("ppo", environment, 0, 0, "", "", PolicySettings(), "", "", **more)


def test_the_racer_shows_what_stack_and_waves_say():
    observations, actions = spaces_of(card(RACER_ID, stack=3, lap_waves=4))
    assert (observations.shape, actions.shape) == ((3 * 14 + 2 * 4,), (3,))


def test_other_environments_are_asked_with_their_arguments():
    observations, actions = spaces_of(card("FrozenLake-v1", env_args={"map_name": "8x8"}))
    assert (observations, actions) == (gym.spaces.Discrete(64), gym.spaces.Discrete(4))


def test_an_unknown_environment_is_refused():
    with pytest.raises(ConfigError, match="'Nowhere-v0' is not known to Gymnasium"):
        spaces_of(card("Nowhere-v0"))


def test_a_file_takes_the_place_of_the_one_before(tmp_path):
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        write_file(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_could_not_be_written_whole_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_file(path, b"before")
    write = Path.write_bytes

    def run_out_of_room(self, content):
        write(self, content[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", run_out_of_room)
    with pytest.raises(OutputFileError, match=r"file: cannot be written \(No space left on device\)"):
        write_file(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(OutputFileError, match=r"nowhere.*cannot be written \(No such file or directory\)"):
        write_file(tmp_path / "nowhere" / "file", b"")

"""Importing the package registers our environments with Gymnasium."""

import subprocess
import sys

import gymnasium as gym
import pytest

import hotlap
from hotlap.envs.registration import RACER_ID, register_environments


@pytest.mark.parametrize("imports", ["gymnasium, hotlap", "hotlap, gymnasium", "hotlap, gymnasium.spaces"])
def test_importing_the_package_registers_the_environment_whatever_comes_first(imports):
    code = f"import {imports}; print(type(gymnasium.make('hotlap/Racer-v0').unwrapped).__name__)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "RacerEnv"
    assert answer.stderr == ""


def test_make_makes_the_single_environment_with_its_arguments():
    env = gym.make("hotlap/Racer-v0", track_id="track-02", config={"episode": {"maxSteps": 7}})
    assert isinstance(env.unwrapped, hotlap.RacerEnv)
    assert env.unwrapped.fleet.tracks[0].track_id == "track-02"
    assert env.unwrapped.fleet.settings.episode.max_ticks == 7
    assert env.spec is not None
    assert env.spec.id == RACER_ID == "hotlap/Racer-v0"
    assert env.spec.max_episode_steps is None


def test_make_vec_makes_the_batched_environment():
    env = gym.make_vec(
        "hotlap/Racer-v0", num_envs=5, vectorization_mode="vector_entry_point", track_id=["track-01", "track-03"]
    )
    assert isinstance(env, hotlap.RacerVectorEnv)
    assert env.num_envs == 5
    assert [track.track_id for track in env.fleet.tracks] == ["track-01", "track-03"]
    assert env.spec is not None
    assert env.spec.id == "hotlap/Racer-v0"


def test_a_spec_makes_the_same_environment_again():
    spec = gym.make("hotlap/Racer-v0", track_id="track-03").spec
    assert gym.make(spec).unwrapped.fleet.tracks[0].track_id == "track-03"


def test_registering_twice_changes_nothing(recwarn):
    before = gym.spec(RACER_ID)
    register_environments()
    assert gym.spec(RACER_ID) is before
    assert len(recwarn) == 0


def test_make_reports_an_unknown_track():
    with pytest.raises(ValueError, match="track 'nowhere' is not known"):
        gym.make("hotlap/Racer-v0", track_id="nowhere")


def test_public_names():
    assert set(hotlap.__all__) <= set(dir(hotlap))
    assert isinstance(hotlap.PHYSICS_VERSION, str)
    assert issubclass(hotlap.HotlapError, Exception)
    with pytest.raises(AttributeError, match="no attribute 'RacerEnvv'"):
        hotlap.RacerEnvv  # noqa: B018

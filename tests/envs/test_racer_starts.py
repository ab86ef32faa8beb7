"""How a car's episodes begin: starts, seeds, options and configuration; and how saved states continue them."""

import copy
import hashlib
import json
import math
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import hotlap
from envs.racer_drives import (
    BRAKE,
    GAS,
    RESET_KEYS,
    assert_same_state,
    make,
    rollout,
)
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ConfigError, HotlapError, UnknownTrackError

# --- starts and seeds ---


def test_the_start_on_the_line_does_not_depend_on_the_seed():
    one, _ = hotlap.RacerEnv().reset(seed=1)
    other, _ = hotlap.RacerEnv().reset(seed=2)
    np.testing.assert_array_equal(one, other)


def test_random_starts_are_drawn_from_the_seed():
    env = hotlap.RacerEnv()
    options = {"start": "random"}
    first, info = env.reset(seed=1, options=options)
    second, _ = env.reset(options=options)
    again, _ = env.reset(seed=1, options=options)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    assert list(info) == RESET_KEYS
    assert info["speed"] > 0.0
    assert info["speed"] == pytest.approx(first[9] * env.fleet.top_speed_mps, rel=1e-5)


def test_options_override_the_start_of_the_config():
    env = hotlap.RacerEnv(config={"episode": {"start": "random"}})
    options = hotlap.RacerEnv()
    np.testing.assert_array_equal(env.reset(seed=9)[0], options.reset(seed=9, options={"start": "random"})[0])
    assert env.reset(seed=9, options={"start": "line"})[1]["speed"] == 0.0
    assert env.reset(seed=9, options={})[1]["speed"] > 0.0


@pytest.mark.parametrize(("spun_fraction", "digest"), [(0.0, "d6ebf983e275f40c"), (0.125, "75be2365f8a367d5")])
def test_random_starts_with_and_without_spun_cars_keep_their_bits(spun_fraction, digest):
    envs = hotlap.RacerVectorEnv(512, config={"episode": {"start": "random", "spunFraction": spun_fraction}})
    envs.reset(seed=11)
    found = hashlib.sha256()
    for column in envs.get_state().values():
        found.update(np.ascontiguousarray(column).tobytes())
    assert found.hexdigest()[:16] == digest


def test_random_starts_are_all_over_the_track():
    env = hotlap.RacerEnv()
    places = [env.reset(options={"start": "random"})[0][12] for _ in range(200)]
    assert min(places) < 0.05
    assert max(places) > 0.95
    assert np.histogram(places, 4, (0, 1))[0].min() > 25


def test_from_a_random_start_the_clock_starts_at_the_line():
    env = hotlap.RacerEnv()
    obs, _ = env.reset(seed=11, options={"start": "random"})
    driver = CasualDriver()
    driver.begin(env.fleet, 0)
    crossed_at = None
    for tick in range(1, 9000):
        before = obs[12]
        obs, _, _, _, info = env.step(driver.act(obs[None])[0])
        if obs[12] < before - 0.5:
            if crossed_at is not None:
                break
            crossed_at = tick
            assert "lapTime" not in info
        assert crossed_at is not None or (info["lap"], info["checkpoint"]) == (1, 0)
    assert info["lapTime"] == pytest.approx((tick - crossed_at) / 60.0, abs=1.1 / 60.0)
    assert info["lap"] == 2


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63, 2**64 - 1, 2**64, 2**200 + 3])
def test_seeds_of_any_size(seed):
    options = {"start": "random"}
    one, other = hotlap.RacerEnv(), hotlap.RacerEnv()
    np.testing.assert_array_equal(one.reset(seed=seed, options=options)[0], other.reset(seed=seed, options=options)[0])


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_invalid_seeds_are_refused(seed):
    with pytest.raises(gym.error.Error, match=r"[Ss]eed"):
        hotlap.RacerEnv().reset(seed=seed)


def test_without_a_seed_two_environments_differ():
    options = {"start": "random"}
    assert not np.array_equal(hotlap.RacerEnv().reset(options=options)[0], hotlap.RacerEnv().reset(options=options)[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "pit"}, "start must be one of 'line', 'random', got 'pit'"),
        ({"start": 1}, "start must be"),
        ({"strat": "random"}, "unknown key 'strat'"),
        ("random", "options must be a dict"),
    ],
)
def test_bad_options_are_refused_and_nothing_moves(options, words):
    env = make()
    env.step(GAS)
    before = env.get_state()
    with pytest.raises(ConfigError, match=words):
        env.reset(options=options)
    assert_same_state(env.get_state(), before)


# --- configuration ---


def test_the_config_may_be_a_dict_or_a_file(tmp_path):
    config = {"weights": {"progress": 3.0}, "episode": {"maxSteps": 9}}
    path = tmp_path / "ai-config.json"
    path.write_text(json.dumps(config))
    for source in (config, path, str(path)):
        settings = hotlap.RacerEnv(config=source).fleet.settings
        assert (settings.rewards.progress, settings.episode.max_ticks) == (3.0, 9)
    assert config == {"weights": {"progress": 3.0}, "episode": {"maxSteps": 9}}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"weights": {"speed": 1.0}}, "'speed'"),
        ({"episode": {"maxSteps": 1.5}}, "maxSteps must be a whole number"),
        (7, "must be a mapping or a path"),
    ],
)
def test_the_error_of_a_bad_config_names_the_key(config, words):
    with pytest.raises(ConfigError, match=words):
        hotlap.RacerEnv(config=config)


def test_a_missing_config_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json: no such settings file"):
        hotlap.RacerEnv(config=tmp_path / "none.json")


@pytest.mark.parametrize("track_id", ["track-1", "", "../track-01", "TRACK-01", None, 1, ["track-01"]])
def test_an_unknown_track_is_refused(track_id):
    with pytest.raises(UnknownTrackError, match="is not known"):
        hotlap.RacerEnv(track_id)


# --- saved states ---


def test_a_restored_environment_continues_bit_identically():
    env = hotlap.RacerEnv(config={"episode": {"maxSteps": 150}})
    rollout(env, 100)
    state = env.get_state()
    other = hotlap.RacerEnv(config={"episode": {"maxSteps": 150}})
    other.set_state(copy.deepcopy(state))
    assert_same_state(other.get_state(), state)
    for tick in range(200):
        action = [math.sin(tick / 9.0), 0.7, 0.0]
        assert data_equivalence(env.step(action), other.step(action), exact=True)
    options = {"start": "random"}
    assert data_equivalence(env.reset(options=options), other.reset(options=options), exact=True)


def test_a_state_is_a_dict_of_arrays_and_belongs_to_its_track():
    env = make()
    assert all(isinstance(column, np.ndarray) and column.dtype.kind in "fiu" for column in env.get_state().values())
    long_way = hotlap.RacerEnv("track-02")
    long_way.reset(seed=0)
    state = long_way.get_state()
    state["node"][:] = long_way.fleet.tracks[0].nodes.num_nodes - 1
    before = env.get_state()
    with pytest.raises(HotlapError, match="another track"):
        env.set_state(state)
    assert_same_state(env.get_state(), before)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_is_independent(clone):
    env = make()
    for _ in range(30):
        env.step(GAS)
    twin = clone(env)
    assert_same_state(twin.get_state(), env.get_state())
    here = env.get_state()
    assert data_equivalence(twin.step(GAS), clone(env).step(GAS), exact=True)
    assert_same_state(env.get_state(), here)
    assert data_equivalence(env.step(GAS)[0], twin._batch.obs[0], exact=True)
    assert data_equivalence(env.step(BRAKE), twin.step(BRAKE), exact=True)

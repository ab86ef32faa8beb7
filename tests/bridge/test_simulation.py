"""One connection's world: what a reset keeps and what it does not, and traces equal to the local environments'."""

import numpy as np
import pytest

import hotlap
from bridge.conversation import GAS, SHORT, SHORT_RANDOM, Talk
from hotlap.bridge.simulation import settings_from
from hotlap.drivers.casual import CasualDriver
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.golden_traces import reflexes
from hotlap.tracks.registry import load_track, save_track


@pytest.fixture
def talk() -> Talk:
    return Talk()


def fleet_of(talk: Talk):
    return talk.session._world.fleet


# --- traces ---


def test_one_car_drives_as_the_local_environment_bit_for_bit(talk):
    env = hotlap.RacerEnv("track-03", config=SHORT_RANDOM)
    for seed in (7, None, None, 8):
        obs, info = env.reset(seed=seed)
        reply = talk(type="reset", trackId="track-03", config=SHORT_RANDOM, seed=seed)
        assert (reply["observation"], reply["info"]) == (obs.tolist(), info)
        for tick in range(80):
            action = reflexes(obs[None], tick)[0]
            obs, *rest = env.step(action)
            reply = talk(type="step", action=action.tolist())
            assert reply["observation"] == obs.tolist()
            assert [reply[key] for key in ("reward", "terminated", "truncated", "info")] == rest


def test_a_lap_is_told_with_its_time(talk):
    env, driver = hotlap.RacerEnv(), CasualDriver()
    obs, _ = env.reset(seed=0)
    talk(type="reset", seed=0)
    driver.begin(env.fleet, 0)
    told = []
    for _ in range(2800):
        action = driver.act(obs[None])[0]
        obs, _, _, _, info = env.step(action)
        reply = talk(type="step", action=action.tolist())
        assert reply["info"] == info
        told += [info["lapTime"]] if "lapTime" in info else []
    assert len(told) == 1
    assert 35.0 < told[0] < 45.0


def test_actions_out_of_range_are_clipped(talk):
    other = Talk()
    for one in (talk, other):
        one(type="reset", seed=0)
    for wild, tame in (([5, 9, -3], [1, 1, 0]), ([-1e300, 1e300, 0], [-1, 1, 0]), ([1e38, 0.5, 2], [1, 0.5, 1])):
        assert talk(type="step", action=wild) == other(type="step", action=tame)


def test_a_batch_drives_as_the_local_batch_bit_for_bit(talk):
    ids = ["track-01", "track-03"]
    env = hotlap.RacerVectorEnv(7, ids, config=SHORT_RANDOM)
    obs, info = env.reset(seed=3)
    reply = talk(type="reset", trackId=ids, config=SHORT_RANDOM, seed=3, numEnvs=7)
    assert list(reply) == ["type", "observation", "info"]
    assert reply["observation"] == obs.tolist()
    assert reply["info"] == {key: info[key].tolist() for key in reply["info"]}
    num_ended = 0
    for tick in range(160):
        actions = reflexes(obs, tick)
        actions[::3] = [0.0, 0.0, 1.0]
        obs, rewards, terminated, truncated, info = env.step(actions)
        reply = talk(type="step", action=actions.tolist())
        assert list(reply) == ["type", "observation", "reward", "terminated", "truncated", "info", "finals"]
        assert reply["observation"] == obs.tolist()
        assert reply["reward"] == rewards.tolist()
        assert (reply["terminated"], reply["truncated"]) == (terminated.tolist(), truncated.tolist())
        assert reply["info"] == {key: info[key].tolist() for key in reply["info"]}
        ended = np.flatnonzero(terminated | truncated).tolist()
        assert list(reply["finals"]) == [str(car) for car in ended]
        for car in ended:
            final = reply["finals"][str(car)]
            assert final["observation"] == info["final_obs"][car].tolist()
            assert final["info"] == {
                key: info["final_info"][key][car].item() for key in final["info"] if info["final_info"][f"_{key}"][car]
            }
        num_ended += len(ended)
    assert num_ended > 10


def test_a_lap_in_a_batch_is_told_of_its_car_and_null_for_the_others(talk):
    env, driver = hotlap.RacerEnv(), CasualDriver()
    obs, _ = env.reset(seed=1)
    talk(type="reset", numEnvs=3, seed=0)
    driver.begin(env.fleet, 0)
    told = []
    for _ in range(2800):
        action = driver.act(obs[None])[0]
        obs, _, _, _, info = env.step(action)
        columns = talk(type="step", action=[[0, 0, 1], action.tolist(), [0, 0, 1]])["info"]
        assert ("lapTime" in columns) == ("lapClean" in columns) == ("lapTime" in info)
        if "lapTime" in info:
            assert columns["lapTime"] == [None, info["lapTime"], None]
            assert columns["lapClean"] == [None, info["lapClean"], None]
            told.append(info["lapTime"])
    assert len(told) == 1


def test_a_batch_of_one_is_still_a_batch(talk):
    assert np.shape(talk(type="reset", numEnvs=1)["observation"]) == (1, 14)
    reply = talk(type="step", action=[GAS])
    assert np.shape(reply["observation"]) == (1, 14)
    assert np.shape(reply["reward"]) == (1,)
    assert "at `$.action" in talk(type="step", action=GAS)["message"]


@pytest.mark.parametrize("actions", [[], [GAS], [GAS] * 3, [GAS, [0, 0]]])
def test_a_batch_wants_one_action_for_each_car(talk, actions):
    talk(type="reset", numEnvs=2)
    assert talk(type="step", action=actions)["type"] == "error"
    assert talk(type="step", action=[GAS] * 2)["info"]["tick"] == [1, 1]


def test_the_largest_batch_is_served(talk):
    assert np.shape(talk(type="reset", numEnvs=1024)["observation"]) == (1024, 14)
    assert np.shape(talk(type="step", action=[GAS] * 1024)["observation"]) == (1024, 14)


# --- seeds ---


def test_seeds_may_be_listed(talk):
    listed = talk(type="reset", numEnvs=3, seed=[5, 2**70, 5], start="random")["observation"]
    env = hotlap.RacerEnv()
    for car, seed in enumerate((5, 2**70, 5)):
        assert listed[car] == env.reset(seed=seed, options={"start": "random"})[0].tolist()


def test_without_a_seed_worlds_differ(talk):
    assert talk(type="reset", start="random") != Talk()(type="reset", start="random")
    first = talk(type="reset", start="random", seed=1)
    assert talk(type="reset", start="random") != first
    assert talk(type="reset", start="random", seed=1) == first


# --- what is absent takes its default ---


def test_absent_means_the_default_not_the_last(talk):
    standing = talk(type="reset", seed=0)
    talk(type="reset", trackId="track-02", config={"episode": {"maxSteps": 2, "start": "random"}}, seed=5, numEnvs=2)
    assert talk(type="reset", seed=0) == standing
    assert fleet_of(talk).tracks[0].track_id == "track-01"
    assert fleet_of(talk).settings.episode.max_steps == 3000
    talk(type="reset", start="random")
    assert talk(type="reset")["info"]["speed"] == 0.0


def test_null_means_absent(talk):
    given = talk(type="reset", trackId=None, config=None, seed=None, numEnvs=None, start=None)
    assert given["observation"] == talk(type="reset")["observation"]


# --- a reset costs no more than a step ---


def test_the_same_world_is_kept_over_resets(talk):
    config = {"weights": {"progress": 2.0}}
    talk(type="reset", config=config)
    fleet = fleet_of(talk)
    talk(type="reset", config=config, seed=3)
    talk(type="reset", config=dict(config), start="random")
    assert fleet_of(talk) is fleet
    talk(type="reset", config={"weights": {"progress": 3.0}})
    assert fleet_of(talk) is not fleet


def test_tracks_and_settings_are_shared_among_connections(talk):
    other = Talk()
    for one in (talk, other):
        one(type="reset", config=SHORT)
    assert fleet_of(talk)._setting.ribbons is fleet_of(other)._setting.ribbons
    assert fleet_of(talk).settings is fleet_of(other).settings
    assert settings_from(b"") == settings_from(b"null") == settings_from(b"{}")


def test_a_track_imported_anew_is_driven_from_the_next_reset_on(talk, tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    assert "not known" in talk(type="reset", trackId="ring")["message"]
    lengths = []
    for radius_m in (60.0, 80.0):
        angles = np.linspace(0.0, 2.0 * np.pi, 80, endpoint=False)
        half_width = np.full(80, 5.0)
        save_track("ring", Centreline(radius_m * np.cos(angles), radius_m * np.sin(angles), half_width, half_width), "")
        assert talk(type="reset", trackId="ring")["type"] == "reset_result"
        lengths.append(fleet_of(talk).tracks[0].nodes.length_m)
    assert lengths[1] > 1.2 * lengths[0]
    assert load_track("ring") is fleet_of(talk).tracks[0]

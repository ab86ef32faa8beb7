"""The simulation of one connection: what a reset keeps, seeds, batches and laps.

Traces are compared with the local environments in test_remote_env.py and test_remote_vector.py."""

import numpy as np
import pytest

import hotlap
from bridge.json_clients import FULL_THROTTLE, SHORT, JsonSession
from hotlap.bridge.simulation_plan import settings_from
from hotlap.drivers.casual import CasualDriver
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.registry import load_track, save_track


def fleet_of(ask: JsonSession):
    return ask.session._simulation.fleet


@pytest.mark.parametrize("num_envs", [None, 3])
def test_a_lap_is_reported_on_the_step_that_ends_it(ask, num_envs):
    env, driver = hotlap.RacerEnv(), CasualDriver()
    obs, _ = env.reset(seed=1)
    ask(type="reset", numEnvs=num_envs, seed=0 if num_envs else 1)  # car 1 of a batch seeded 0 has seed 1
    driver.begin(env.fleet, 0)
    lap_times_s = []
    for _ in range(2800):
        action = driver.act(obs[None])[0]
        obs, _, _, _, info = env.step(action)
        rows = [[0, 0, 1], action.tolist(), [0, 0, 1]]
        reply = ask(type="step", action=rows if num_envs else rows[1])
        for key in ("lapTime", "lapClean"):
            expected = [None, info.get(key), None] if num_envs else info.get(key)
            assert reply["info"].get(key) == (expected if key in info else None)
        lap_times_s += [info["lapTime"]] if "lapTime" in info else []
    assert len(lap_times_s) == 1
    assert 35.0 < lap_times_s[0] < 45.0


def test_actions_out_of_range_are_clipped(ask):
    other = JsonSession()
    for one in (ask, other):
        one(type="reset", seed=0)
    pairs = {(5, 9, -3): [1, 1, 0], (-1e300, 1e300, 0): [-1, 1, 0], (1e38, 0.5, 2): [1, 0.5, 1]}
    for out_of_range, clipped in pairs.items():
        assert ask(type="step", action=out_of_range) == other(type="step", action=clipped)


@pytest.mark.parametrize("num_envs", [1, 1024])
def test_the_smallest_and_the_largest_batch_are_served(ask, num_envs):
    assert np.shape(ask(type="reset", numEnvs=num_envs)["observation"]) == (num_envs, 14)
    reply = ask(type="step", action=[FULL_THROTTLE] * num_envs)
    assert (np.shape(reply["observation"]), np.shape(reply["reward"])) == ((num_envs, 14), (num_envs,))


def test_a_batch_needs_one_action_for_each_car(ask):
    ask(type="reset", numEnvs=2)
    for actions in ([], FULL_THROTTLE, [FULL_THROTTLE], [FULL_THROTTLE] * 3, [FULL_THROTTLE, [0, 0]]):
        assert ask(type="step", action=actions)["type"] == "error"
    assert ask(type="step", action=[FULL_THROTTLE] * 2)["info"]["tick"] == [1, 1]


def test_seeds_may_be_a_list_and_without_one_starts_differ(ask):
    listed = ask(type="reset", numEnvs=3, seed=[5, 2**70, 5], start="random")["observation"]
    env = hotlap.RacerEnv()
    for car, seed in enumerate((5, 2**70, 5)):
        assert listed[car] == env.reset(seed=seed, options={"start": "random"})[0].tolist()
    assert ask(type="reset", start="random") != JsonSession()(type="reset", start="random")
    first = ask(type="reset", start="random", seed=1)
    assert ask(type="reset", start="random") != first
    assert ask(type="reset", start="random", seed=1) == first


def test_an_absent_field_takes_its_default_not_its_last_value(ask):
    standing = ask(type="reset", seed=0)
    ask(type="reset", trackId="track-02", config={"episode": {"maxSteps": 2, "start": "random"}}, seed=5, numEnvs=2)
    assert ask(type="reset", seed=0) == standing
    assert fleet_of(ask).tracks[0].track_id == "track-01"
    assert fleet_of(ask).settings.episode.max_ticks == 3000
    ask(type="reset", start="random")
    assert ask(type="reset")["info"]["speed"] == 0.0
    assert len(ask(type="reset", observation="road")["observation"]) == 58
    assert len(ask(type="reset")["observation"]) == 14
    null = ask(type="reset", trackId=None, config=None, seed=None, numEnvs=None, start=None, observation=None)
    assert null["observation"] == ask(type="reset")["observation"]


# --- what a reset reuses ---


def test_a_reset_that_changes_nothing_reuses_the_fleet(ask):
    config = {"weights": {"progress": 2.0}}
    ask(type="reset", config=config)
    fleet = fleet_of(ask)
    ask(type="reset", config=config, seed=3)
    ask(type="reset", config=dict(config), start="random")
    assert fleet_of(ask) is fleet
    ask(type="reset", config={"weights": {"progress": 3.0}})
    assert fleet_of(ask) is not fleet
    fleet = fleet_of(ask)
    ask(type="reset", config={"weights": {"progress": 3.0}}, observation="road")
    assert fleet_of(ask) is not fleet


def test_tracks_and_settings_are_shared_among_connections(ask):
    other = JsonSession()
    for one in (ask, other):
        one(type="reset", config=SHORT)
    assert fleet_of(ask).scenario.ribbons is fleet_of(other).scenario.ribbons
    assert fleet_of(ask).settings is fleet_of(other).settings
    assert settings_from(b"") == settings_from(b"null") == settings_from(b"{}")


def test_a_track_imported_again_is_used_from_the_next_reset_on(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    assert "not known" in ask(type="reset", trackId="ring")["message"]
    lengths = []
    for radius_m in (60.0, 80.0):
        angles = np.linspace(0.0, 2.0 * np.pi, 80, endpoint=False)
        half_width = np.full(80, 5.0)
        save_track("ring", Centreline(radius_m * np.cos(angles), radius_m * np.sin(angles), half_width, half_width), "")
        assert ask(type="reset", trackId="ring")["type"] == "reset_result"
        lengths.append(fleet_of(ask).tracks[0].nodes.length_m)
    assert lengths[1] > 1.2 * lengths[0]
    assert load_track("ring") is fleet_of(ask).tracks[0]

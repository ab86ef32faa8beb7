"""Sessions: every message gets the reply of the protocol, and a refused one changes nothing."""

import json
import logging

import numpy as np
import pytest

import hotlap
from bridge.json_clients import FULL_THROTTLE, JsonSession, strict_json
from hotlap.bridge import session as session_module
from hotlap.bridge.binary import read_step, write_actions
from hotlap.bridge.simulation import Simulation
from hotlap.tracks.registry import list_tracks

STEP_KEYS = {
    "progress", "speed", "wall", "offTrack", "backward", "stillness", "lap", "checkpoint", "stepCount", "tick",
    "rawSpeed", "wallContact", "stillnessCounter",
}  # fmt: skip


@pytest.mark.parametrize("num_envs", [None, 2])
def test_replies_have_exactly_the_fields_of_the_protocol(ask, num_envs):
    reply = ask(type="reset", seed=1, numEnvs=num_envs)
    assert list(reply) == ["type", "observation", "info"]
    assert reply["type"] == "reset_result"
    assert np.shape(reply["observation"]) == ((num_envs, 14) if num_envs else (14,))
    assert set(reply["info"]) == {"lap", "checkpoint", "stepCount", "tick", "speed"}
    reply = ask(type="step", action=[FULL_THROTTLE] * num_envs if num_envs else FULL_THROTTLE)
    finals = ["finals"] if num_envs else []
    assert list(reply) == ["type", "observation", "reward", "terminated", "truncated", "info", *finals]
    assert reply["type"] == "step_result"
    assert np.shape(reply["observation"]) == ((num_envs, 14) if num_envs else (14,))
    assert not np.any([reply["terminated"], reply["truncated"]])
    assert set(reply["info"]) == STEP_KEYS
    np.testing.assert_allclose(reply["reward"], np.sum(list(reply["info"].values())[:6], axis=0), atol=1e-7)


def test_hello_describes_the_bridge(ask):
    tracks = [entry.track_id for entry in list_tracks()]
    described = {"type": "hello_result", "protocol": 1, "physics": hotlap.PHYSICS_VERSION, "tracks": tracks}
    assert ask(type="hello") == described
    assert ask(type="hello", binary=True)["binary"] is True


def test_close_drops_the_simulation_but_not_the_connection_and_unknown_fields_are_ignored(ask):
    no_episode = {"type": "error", "message": 'step: no episode has begun. Send {"type":"reset"} first.'}
    assert ask(type="step", action=FULL_THROTTLE) == no_episode
    assert ask(type="get_state")["message"].startswith("get_state: no episode has begun")
    assert ask(type="set_state", state={})["message"].startswith("set_state: no episode has begun")
    ask(type="reset")
    assert ask(type="close") == {"type": "close_result"}
    assert ask(type="step", action=FULL_THROTTLE) == no_episode
    assert ask(type="close", why=None) == {"type": "close_result"}
    assert ask(type="reset", colour="red", nested={"a": [1]})["type"] == "reset_result"
    assert ask(type="step", action=FULL_THROTTLE, id=7)["type"] == "step_result"


def test_stepping_after_the_end_of_an_episode_is_allowed(ask):
    ask(type="reset", config={"episode": {"maxSteps": 3}})
    ends = [ask(type="step", action=FULL_THROTTLE)["truncated"] for _ in range(5)]
    assert ends == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"type": "reset", "trackId": "../../../etc/passwd"}, "is not known"),
        ({"type": "reset", "trackId": "/etc/passwd"}, "is not known"),
        ({"type": "reset", "trackId": "track-01.csv"}, "Did you mean 'track-01'?"),
        ({"type": "reset", "trackId": ["track-01"]}, "a list of tracks needs numEnvs"),
        ({"type": "reset", "config": "/etc/passwd"}, "Expected `object`, got `str`"),
        ({"type": "reset", "config": ["a"]}, "Expected `object`, got `array`"),
        ({"type": "reset", "config": {"weight": {}}}, "unknown key 'weight'. Did you mean 'weights'?"),
        ({"type": "reset", "config": {"weights": {"progress": "much"}}}, "progress must be a number"),
        ({"type": "reset", "config": {"episode": "ai-config.json"}}, "episode must be an object"),
        ({"type": "reset", "seed": -1}, "seed must be zero or more, got -1"),
        ({"type": "reset", "seed": [1]}, "one seed for each of the numEnvs cars, got 1"),
        ({"type": "reset", "numEnvs": 3, "seed": [1, 2]}, "one seed for each of the numEnvs cars, got 2"),
        ({"type": "jump"}, "Known types: hello, reset, step, close, get_state, set_state."),
        ({"type": "reset", "actionRepeat": 61}, "actionRepeat must be from 1 to 60 ticks, got 61."),
        ({"type": "reset", "actionRepeat": 0}, "actionRepeat must be from 1 to 60 ticks, got 0."),
        ({"type": "reset", "actionRepeat": True}, "Expected `int | null`, got `bool`"),
        ({"type": "reset", "numEnvs": 0}, "numEnvs must be from 1 to 1024, got 0."),
        ({"type": "reset", "numEnvs": 1025}, "numEnvs must be from 1 to 1024, got 1025."),
        ({"type": "reset", "config": {"episode": {"maxSteps": 0}}}, "maxSteps must be from 1 to 2147483647 ticks, got"),
        ({"type": "reset", "numEnvs": 1024, "actionRepeat": 17}, "at most 16384, got 17 times 1024"),
    ],
)
def test_a_refused_request_gets_the_reason_and_changes_nothing(ask, message, words):
    ask(type="reset", seed=4)
    before = ask(type="step", action=FULL_THROTTLE)
    refused = ask(**message)
    assert list(refused) == ["type", "message"]
    assert refused["type"] == "error"
    assert words in refused["message"]
    after = ask(type="step", action=FULL_THROTTLE)
    assert after["info"]["tick"] == before["info"]["tick"] + 1


def test_a_bad_action_does_not_move_the_car(ask):
    ask(type="hello", binary=True)
    ask(type="reset")
    for action in ([0, 0], "gas", None, [0, 0, None], [[0, 1, 0]], [1e999, 0, 0]):
        text = json.dumps({"type": "step", "action": action}).replace("Infinity", "1e999")
        assert strict_json(ask.session.answer(text.encode()).data)["type"] == "error"
    for bad in (np.nan, np.inf):
        refused = ask.session.answer(write_actions(np.array([[0, bad, 0]], np.float32)), is_binary=True)
        assert "must be finite" in strict_json(refused.data)["message"]
    assert ask(type="step", action=FULL_THROTTLE)["info"]["tick"] == 1


def test_binary_frames_must_be_enabled(ask):
    ask(type="reset")
    action = write_actions(np.array([FULL_THROTTLE], np.float32))
    refused = ask.session.answer(action, is_binary=True)
    assert not refused.is_binary
    assert "binary frames are not enabled" in strict_json(refused.data)["message"]
    ask(type="hello", binary=True)
    assert ask.session.answer(action, is_binary=True).is_binary
    ask(type="hello")
    assert not ask.session.answer(action, is_binary=True).is_binary


def test_binary_and_json_steps_give_the_same_results(ask):
    other = JsonSession()
    for one in (ask, other):
        one(type="hello", binary=True)
        one(type="reset", seed=5, start="random")
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = rng.uniform(-1, 1, 3).astype(np.float32)
        step = read_step(ask.session.answer(write_actions(action[None]), is_binary=True).data)
        reply = other(type="step", action=action.tolist())
        assert step.obs[0].tolist() == reply["observation"]
        assert step.rewards[0] == np.float32(reply["reward"])
        assert {name: step.infos[name][0].item() for name in reply["info"]} == reply["info"]
        assert len(step.ended) == 0


def test_an_internal_error_fails_one_request_and_logs_one_line(ask, monkeypatch, caplog):
    ask(type="reset")
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Simulation, "step", lambda self, action: 1 // 0)
        assert "internal error" in ask(type="step", action=FULL_THROTTLE)["message"]
    [record] = caplog.records
    assert (record.name, record.exc_info) == (session_module.__name__, None)
    assert "\n" not in record.getMessage()
    assert ask(type="step", action=FULL_THROTTLE)["type"] == "step_result"

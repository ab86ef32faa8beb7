"""A conversation: every message gets the reply the protocol promises, and a refused one changes nothing."""

import json
import logging

import numpy as np
import pytest

import hotlap
from bridge.conversation import GAS, Talk, strict_json
from bridge.hostile import messages
from hotlap.bridge import session as session_module
from hotlap.bridge.binary import read_step, write_actions
from hotlap.bridge.protocol import MAX_REQUEST_BYTES
from hotlap.bridge.simulation import Simulation
from hotlap.tracks.registry import list_tracks

STEP_KEYS = {
    "progress", "speed", "wall", "offTrack", "backward", "stillness", "lap", "checkpoint", "stepCount", "tick",
    "rawSpeed", "wallContact", "stillnessCounter",
}  # fmt: skip


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_reset_has_exactly_the_promised_fields(talk):
    reply = talk(type="reset", seed=1)
    assert list(reply) == ["type", "observation", "info"]
    assert reply["type"] == "reset_result"
    assert len(reply["observation"]) == 14
    assert set(reply["info"]) == {"lap", "checkpoint", "stepCount", "tick", "speed"}


def test_a_step_has_exactly_the_promised_fields(talk):
    talk(type="reset")
    reply = talk(type="step", action=GAS)
    assert list(reply) == ["type", "observation", "reward", "terminated", "truncated", "info"]
    assert reply["type"] == "step_result"
    assert len(reply["observation"]) == 14
    assert (reply["terminated"], reply["truncated"]) == (False, False)
    assert set(reply["info"]) == STEP_KEYS
    assert reply["reward"] == pytest.approx(sum(list(reply["info"].values())[:6]), abs=1e-7)


def test_hello_says_what_serves_here(talk):
    assert talk(type="hello") == {
        "type": "hello_result",
        "protocol": 1,
        "physics": hotlap.PHYSICS_VERSION,
        "tracks": [entry.track_id for entry in list_tracks()],
    }
    assert talk(type="hello", binary=True)["binary"] is True


def test_close_ends_the_world_but_not_the_conversation(talk):
    talk(type="reset")
    assert talk(type="close") == {"type": "close_result"}
    assert "no world yet" in talk(type="step", action=GAS)["message"]
    assert talk(type="close") == {"type": "close_result"}
    assert talk(type="reset")["type"] == "reset_result"
    assert talk(type="step", action=GAS)["type"] == "step_result"


def test_a_step_before_a_reset_is_an_error_and_no_more(talk):
    assert talk(type="step", action=GAS) == {
        "type": "error",
        "message": 'step: there is no world yet. Send {"type":"reset"} first.',
    }
    assert talk(type="reset")["type"] == "reset_result"


def test_stepping_on_after_the_end_is_allowed(talk):
    talk(type="reset", config={"episode": {"maxSteps": 3}})
    ends = [talk(type="step", action=GAS)["truncated"] for _ in range(5)]
    assert ends == [False, False, True, True, True]


def test_further_fields_are_ignored(talk):
    assert talk(type="reset", colour="red", nested={"a": [1]})["type"] == "reset_result"
    assert talk(type="step", action=GAS, id=7)["type"] == "step_result"
    assert talk(type="close", why=None) == {"type": "close_result"}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"type": "reset", "trackId": "nowhere"}, "track 'nowhere' is not known"),
        ({"type": "reset", "trackId": "../../../etc/passwd"}, "is not known"),
        ({"type": "reset", "trackId": "/etc/passwd"}, "is not known"),
        ({"type": "reset", "trackId": "track-01.csv"}, "Did you mean 'track-01'?"),
        ({"type": "reset", "trackId": ["track-01"]}, "a list of tracks needs numEnvs"),
        ({"type": "reset", "config": "ai-config.json"}, "Expected `object`, got `str`"),
        ({"type": "reset", "config": "/etc/passwd"}, "Expected `object`, got `str`"),
        ({"type": "reset", "config": ["a"]}, "Expected `object`, got `array`"),
        ({"type": "reset", "config": {"weight": {}}}, "unknown key 'weight'. Did you mean 'weights'?"),
        ({"type": "reset", "config": {"weights": {"progress": "much"}}}, "progress must be a number"),
        ({"type": "reset", "config": {"episode": "ai-config.json"}}, "episode must be an object"),
        ({"type": "reset", "seed": -1}, "seed must be zero or more, got -1"),
        ({"type": "reset", "seed": [1]}, "one seed for each of the numEnvs cars, got 1"),
        ({"type": "reset", "numEnvs": 3, "seed": [1, 2]}, "one seed for each of the numEnvs cars, got 2"),
        ({"type": "jump"}, "Known types: hello, reset, step, close."),
    ],
)
def test_a_refused_request_says_why_and_the_world_goes_on(talk, message, words):
    talk(type="reset", seed=4)
    before = talk(type="step", action=GAS)
    refused = talk(**message)
    assert list(refused) == ["type", "message"]
    assert refused["type"] == "error"
    assert words in refused["message"]
    after = talk(type="step", action=GAS)
    assert after["info"]["tick"] == before["info"]["tick"] + 1


@pytest.mark.parametrize("action", [[0, 0], "gas", None, [0, 0, None], [[0, 1, 0]], [1e999, 0, 0]])
def test_a_bad_action_moves_nothing(talk, action):
    talk(type="reset")
    talk(type="step", action=GAS)
    text = json.dumps({"type": "step", "action": action}).replace("Infinity", "1e999")
    assert strict_json(talk.session.answer(text.encode()).data)["type"] == "error"
    assert talk(type="step", action=GAS)["info"]["tick"] == 2


def test_a_request_of_the_largest_size_is_served_and_a_larger_one_refused(talk):
    text = b'{"type":"reset"}'
    reply = talk.session.answer(text + b" " * (MAX_REQUEST_BYTES - len(text)))
    assert strict_json(reply.data)["type"] == "reset_result"
    reply = talk.session.answer(text + b" " * (MAX_REQUEST_BYTES + 1 - len(text)))
    assert strict_json(reply.data) == {"type": "error", "message": "request: at most 65536 bytes, got 65537."}


def test_binary_must_be_asked_for(talk):
    talk(type="reset")
    action = write_actions(np.array([GAS], np.float32))
    refused = talk.session.answer(action, is_binary=True)
    assert not refused.is_binary
    assert "binary frames must be asked for" in strict_json(refused.data)["message"]
    talk(type="hello", binary=True)
    assert talk.session.answer(action, is_binary=True).is_binary
    talk(type="hello")
    assert not talk.session.answer(action, is_binary=True).is_binary


def test_binary_and_json_steps_are_the_same_steps(talk):
    other = Talk()
    for one in (talk, other):
        one(type="hello", binary=True)
        one(type="reset", seed=5, start="random")
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = rng.uniform(-1, 1, 3).astype(np.float32)
        step = read_step(talk.session.answer(write_actions(action[None]), is_binary=True).data)
        reply = other(type="step", action=action.tolist())
        assert step.obs[0].tolist() == reply["observation"]
        assert step.rewards[0] == np.float32(reply["reward"])
        assert {name: step.infos[name][0].item() for name in reply["info"]} == reply["info"]
        assert len(step.ended) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_binary_action_that_is_not_finite_moves_nothing(talk, bad):
    talk(type="hello", binary=True)
    talk(type="reset")
    refused = talk.session.answer(write_actions(np.array([[0, bad, 0]], np.float32)), is_binary=True)
    assert "must be finite" in strict_json(refused.data)["message"]
    assert talk(type="step", action=GAS)["info"]["tick"] == 1


def test_a_bug_of_ours_costs_one_request_and_one_line(talk, monkeypatch, caplog):
    talk(type="reset")
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Simulation, "step", lambda self, action: 1 // 0)
        assert "internal error" in talk(type="step", action=GAS)["message"]
    [record] = caplog.records
    assert record.name == session_module.__name__
    assert record.getMessage().count("\n") == 0
    assert record.exc_info is None
    assert talk(type="step", action=GAS)["type"] == "step_result"


def test_two_thousand_hostile_messages_get_a_reply_each(talk, caplog):
    kinds = {}
    for message in messages(seed=1, count=2000):
        reply = talk.session.answer(message.data[: 1 << 17], message.is_binary)
        kind = "binary" if reply.is_binary else strict_json(reply.data)["type"]
        kinds[kind] = kinds.get(kind, 0) + 1
    assert caplog.records == []  # nothing at WARNING or above: no bug of ours was hit
    assert set(kinds) >= {"error", "reset_result", "step_result", "close_result", "hello_result"}
    assert kinds["error"] > 1000
    assert talk(type="reset")["type"] == "reset_result"

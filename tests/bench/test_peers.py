"""Peers: measured where they are, listed as absent with the reason where they are not."""

import gymnasium as gym
import pytest

from hotlap.bench import peers as module
from hotlap.bench.peers import Peer, measure_peers

NAMES = [
    "Gymnasium LunarLander-v3", "EnvPool LunarLander-v3", "Gymnasium CarRacing-v3", "EnvPool CarRacing-v3",
    "highway-env racetrack-v0",
]  # fmt: skip


def fail_with(error: Exception):
    def run(seconds):
        raise error

    return run


def test_these_are_the_peers():
    assert [peer.name for peer in module._PEERS] == NAMES


def test_a_peer_that_is_here_is_measured_and_compared(monkeypatch):
    monkeypatch.setattr(module, "_PEERS", (Peer("half", "note", lambda seconds: 50.0),))
    result = measure_peers(4, 0.1)
    [peer] = result["peers"]
    assert (peer["name"], peer["note"], peer["steps_per_sec"], peer["absent"]) == ("half", "note", 50.0, None)
    assert peer["hotlap_one_thread_times"] == result["hotlap_one_thread_steps_per_sec"] / 50.0
    assert peer["hotlap_all_threads_times"] == result["hotlap_all_threads_steps_per_sec"] / 50.0


@pytest.mark.parametrize(
    "error",
    [ImportError("no module"), gym.error.DependencyNotInstalled("Box2D is\n not installed"), OSError("no such library"),
     RuntimeError("x" * 500), AttributeError()],
)  # fmt: skip
def test_a_peer_that_is_not_here_is_listed_with_the_reason(monkeypatch, error):
    rate, why = module._try(Peer("gone", "", fail_with(error)), 0.1)
    assert rate is None
    assert why
    assert len(why) <= 120
    assert "\n" not in why


def test_a_gymnasium_peer_is_run_for_the_time_given():
    rate = module._run_gymnasium("CartPole-v1")(0.2)
    assert 1_000 < rate < 10_000_000

"""Peers: measured if installed, otherwise listed as absent with the reason."""

import time

import gymnasium as gym
import pytest

from hotlap.bench import peers as module
from hotlap.bench.peers import Peer, measure_peers


def fail_with(error: Exception):
    def run(seconds):
        raise error

    return run


def test_installed_peer_is_measured_and_compared(monkeypatch):
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
def test_missing_peer_is_listed_with_the_reason(monkeypatch, error):
    rate, reason = module._try_peer(Peer("missing", "", fail_with(error)), 0.1)
    assert rate is None
    assert reason
    assert len(reason) <= 120
    assert "\n" not in reason


def test_gymnasium_peer_is_run_for_the_given_time():
    begin_s = time.perf_counter()
    assert module._run_gymnasium("CartPole-v1")(0.2) > 0.0
    assert time.perf_counter() - begin_s >= 0.2

"""Many clients at once, and bad company: nobody gets another's reply, and nobody is disturbed."""

import json
import time

import numpy as np
import psutil
import pytest
import websocket
from websocket import ABNF

import hotlap
from bridge.conversation import GAS, SHORT, SHORT_RANDOM, Phone, strict_json
from bridge.hostile import messages
from bridge.misbehaviour import half_a_frame, half_a_handshake, never_read, vanish

MEBIBYTE = 1 << 20


def converse(bridge_server, num_clients: int, seconds: float) -> int:
    """Clients that all have a request under way at any time, each driving its own car; the rounds they did.

    Every reply is compared with the local environment of the client's own seed, so a lost or swapped one shows.
    """
    phones = [Phone(bridge_server.url) for _ in range(num_clients)]
    envs = [hotlap.RacerEnv(config=SHORT_RANDOM) for _ in phones]
    rng = np.random.default_rng(0)
    for number, (phone, env) in enumerate(zip(phones, envs, strict=True)):
        reply = phone(type="reset", seed=number, config=SHORT_RANDOM)
        assert reply["observation"] == env.reset(seed=number)[0].tolist()
    rounds, end_s = 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        actions = rng.uniform([-1, 0, 0], [1, 1, 1], (num_clients, 3)).astype(np.float32)
        for phone, action in zip(phones, actions, strict=True):
            phone.socket.send(json.dumps({"type": "step", "action": action.tolist()}))
        for number in rng.permutation(num_clients):
            reply = strict_json(phones[number].socket.recv())
            obs, reward, terminated, truncated, info = envs[number].step(actions[number])
            assert (reply["observation"], reply["reward"], reply["info"]) == (obs.tolist(), reward, info)
            if terminated or truncated:
                reply = phones[number](type="reset", config=SHORT_RANDOM)
                assert reply["observation"] == envs[number].reset()[0].tolist()
        rounds += 1
    for phone in phones:
        phone.socket.close(timeout=1)
    return rounds


def memory_bytes(bridge_server) -> int:
    return psutil.Process(bridge_server.process.pid).memory_info().rss


def drive_episodes(phone: Phone, count: int, config: dict) -> tuple[int, int]:
    """Random actions over whole episodes; how many were terminated and truncated."""
    rng = np.random.default_rng(1)
    terminated = truncated = 0
    for episode in range(count):
        phone(type="reset", seed=episode, config=config)
        for tick in range(1, 3001):
            reply = phone(type="step", action=rng.uniform([-1, 0, 0], [1, 1, 1]).tolist())
            assert reply["info"]["tick"] == tick
            if reply["terminated"] or reply["truncated"]:
                break
        terminated += reply["terminated"]
        truncated += reply["truncated"]
    return terminated, truncated


def test_a_hundred_short_episodes(bridge_server):
    with Phone(bridge_server.url) as phone:
        assert sum(drive_episodes(phone, 100, SHORT)) == 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_episodes(bridge_server):
    with Phone(bridge_server.url) as phone:
        assert sum(drive_episodes(phone, 100, {})) == 100


def test_clients_at_once_get_their_own_replies(bridge_server):
    assert converse(bridge_server, num_clients=64, seconds=1.0) >= 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sixty_four_clients_for_a_minute_and_memory_stays_flat(bridge_server):
    converse(bridge_server, num_clients=64, seconds=5.0)
    before = memory_bytes(bridge_server)
    assert converse(bridge_server, num_clients=64, seconds=60.0) > 100
    assert memory_bytes(bridge_server) - before < 5 * MEBIBYTE


def test_connections_that_come_and_go_leave_no_memory_behind(bridge_server):
    def come_and_go() -> None:
        for number in range(150):
            with Phone(bridge_server.url) as phone:
                phone(type="reset", numEnvs=256 if number % 10 == 0 else None)

    come_and_go()
    before = memory_bytes(bridge_server)
    come_and_go()
    assert memory_bytes(bridge_server) - before < 5 * MEBIBYTE


# --- bad company ---


@pytest.mark.parametrize("misbehave", [vanish, half_a_frame, half_a_handshake, never_read])
def test_a_client_that_misbehaves_disturbs_nobody(bridge_server, misbehave):
    with Phone(bridge_server.url) as good:
        env = hotlap.RacerEnv()
        good(type="reset", seed=3)
        env.reset(seed=3)
        before = memory_bytes(bridge_server)
        bad = []
        for _ in range(5):
            phone = Phone(bridge_server.url)
            phone(type="reset")
            misbehave(phone)
            bad.append(phone)
            for _ in range(20):
                assert good(type="step", action=GAS)["observation"] == env.step(np.array(GAS))[0].tolist()
        assert memory_bytes(bridge_server) - before < 20 * MEBIBYTE
        for phone in bad:
            phone.socket.shutdown()
    assert bridge_server.log.count("\n") == 1


def outlive(bridge_server, seed: int, count: int) -> dict[str, int]:
    """Send hostile messages over the wire; each gets a reply or a goodbye. What came back, by kind."""
    seen: dict[str, int] = {}
    env = hotlap.RacerEnv()
    env.reset(seed=3)
    phone = Phone(bridge_server.url, skip_utf8_validation=True)
    with Phone(bridge_server.url) as witness:
        witness(type="reset", seed=3)
        for number, message in enumerate(messages(seed, count)):
            kind = exchange(phone, message)
            seen[kind] = seen.get(kind, 0) + 1
            if kind in ("goodbye", "hung up"):
                assert kind == "goodbye" or len(message.data) > 65_536
                phone = Phone(bridge_server.url, skip_utf8_validation=True)
            if number % 50 == 0:
                assert witness(type="step", action=GAS)["observation"] == env.step(np.array(GAS))[0].tolist()
    phone.socket.close(timeout=1)
    assert bridge_server.process.poll() is None
    assert bridge_server.log.count("\n") == 1
    return seen


def exchange(phone: Phone, message) -> str:
    try:
        phone.socket.send(message.data, ABNF.OPCODE_BINARY if message.is_binary else ABNF.OPCODE_TEXT)
        opcode, data = phone.socket.recv_data()
    except (ConnectionError, websocket.WebSocketConnectionClosedException):
        return "hung up"
    if opcode == ABNF.OPCODE_CLOSE:
        return "goodbye"
    return "binary" if opcode == ABNF.OPCODE_BINARY else strict_json(data)["type"]


def test_two_thousand_hostile_messages_are_outlived(bridge_server):
    seen = outlive(bridge_server, seed=2, count=2000)
    assert sum(seen.values()) == 2000
    assert seen["error"] > 1000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_hostile_messages_are_outlived(bridge_server):
    before = memory_bytes(bridge_server)
    seen = outlive(bridge_server, seed=3, count=100_000)
    assert sum(seen.values()) == 100_000
    assert {"error", "reset_result", "step_result", "close_result", "hello_result", "binary"} <= set(seen)
    assert memory_bytes(bridge_server) - before < 20 * MEBIBYTE

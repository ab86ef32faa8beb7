"""Many clients at once, misbehaving ones among them: each gets its own replies and memory stays bounded."""

import json
import time
from collections import Counter

import numpy as np
import psutil
import pytest
import websocket
from websocket import ABNF

import hotlap
from bridge.hostile import messages
from bridge.json_clients import FULL_THROTTLE, SHORT, SHORT_RANDOM, JsonClient, strict_json
from bridge.misbehaviour import drop_connection, ignore_replies, send_half_a_frame, send_half_a_handshake

MEBIBYTE = 1 << 20


def drive_together(bridge_server, num_clients: int, seconds: float) -> int:
    """Drive one car per client with all requests pending at the same time; returns the number of rounds.

    Every reply is compared with a local environment of the client's own seed, so a lost or swapped reply is noticed.
    """
    clients = [JsonClient(bridge_server.url) for _ in range(num_clients)]
    envs = [hotlap.RacerEnv(config=SHORT_RANDOM) for _ in clients]
    rng = np.random.default_rng(0)
    for number, (client, env) in enumerate(zip(clients, envs, strict=True)):
        reply = client(type="reset", seed=number, config=SHORT_RANDOM)
        assert reply["observation"] == env.reset(seed=number)[0].tolist()
    rounds, end_s = 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        actions = rng.uniform([-1, 0, 0], [1, 1, 1], (num_clients, 3)).astype(np.float32)
        for client, action in zip(clients, actions, strict=True):
            client.socket.send(json.dumps({"type": "step", "action": action.tolist()}))
        for number in rng.permutation(num_clients):
            reply = strict_json(clients[number].socket.recv())
            obs, reward, terminated, truncated, info = envs[number].step(actions[number])
            assert (reply["observation"], reply["reward"], reply["info"]) == (obs.tolist(), reward, info)
            if terminated or truncated:
                reply = clients[number](type="reset", config=SHORT_RANDOM)
                assert reply["observation"] == envs[number].reset()[0].tolist()
        rounds += 1
    for client in clients:
        client.socket.close(timeout=1)
    return rounds


def memory_bytes(bridge_server) -> int:
    return psutil.Process(bridge_server.process.pid).memory_info().rss


@pytest.mark.parametrize(
    "config", [SHORT, pytest.param({}, marks=[pytest.mark.slow, pytest.mark.timeout(600)])], ids=["short", "full"]
)
def test_a_hundred_episodes_end(client, config):
    rng = np.random.default_rng(1)
    for episode in range(100):
        client(type="reset", seed=episode, config=config)
        for tick in range(1, 3001):
            reply = client(type="step", action=rng.uniform([-1, 0, 0], [1, 1, 1]).tolist())
            assert reply["info"]["tick"] == tick
            if reply["terminated"] or reply["truncated"]:
                break
        assert reply["terminated"] or reply["truncated"]


def test_concurrent_clients_get_their_own_replies(bridge_server):
    assert drive_together(bridge_server, num_clients=64, seconds=1.0) >= 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_memory_stays_flat_while_64_clients_drive_for_a_minute(bridge_server):
    drive_together(bridge_server, num_clients=64, seconds=5.0)
    before = memory_bytes(bridge_server)
    assert drive_together(bridge_server, num_clients=64, seconds=60.0) > 100
    assert memory_bytes(bridge_server) - before < 5 * MEBIBYTE


def test_closed_connections_leave_no_memory_behind(bridge_server):
    def connect_and_close() -> None:
        for number in range(150):
            with JsonClient(bridge_server.url) as client:
                client(type="reset", numEnvs=256 if number % 10 == 0 else None)

    connect_and_close()
    before = memory_bytes(bridge_server)
    connect_and_close()
    assert memory_bytes(bridge_server) - before < 5 * MEBIBYTE


# --- misbehaving clients ---


def begin(client: JsonClient) -> hotlap.RacerEnv:
    """Begin an episode of the client and of a local environment, which is returned."""
    env = hotlap.RacerEnv()
    env.reset(seed=3)
    client(type="reset", seed=3)
    return env


def assert_same_step(client: JsonClient, env: hotlap.RacerEnv) -> None:
    obs = env.step(np.array(FULL_THROTTLE))[0]
    assert client(type="step", action=FULL_THROTTLE)["observation"] == obs.tolist()


@pytest.mark.parametrize("misbehave", [drop_connection, send_half_a_frame, send_half_a_handshake, ignore_replies])
def test_a_misbehaving_client_does_not_disturb_others(bridge_server, misbehave):
    with JsonClient(bridge_server.url) as good:
        env = begin(good)
        before = memory_bytes(bridge_server)
        bad = []
        for _ in range(5):
            client = JsonClient(bridge_server.url)
            client(type="reset")
            misbehave(client)
            bad.append(client)
            for _ in range(20):
                assert_same_step(good, env)
        assert memory_bytes(bridge_server) - before < 20 * MEBIBYTE
        for client in bad:
            client.socket.shutdown()
    assert bridge_server.log.count("\n") == 1


def exchange(client: JsonClient, message) -> str:
    try:
        client.socket.send(message.data, ABNF.OPCODE_BINARY if message.is_binary else ABNF.OPCODE_TEXT)
        opcode, data = client.socket.recv_data()
    except (ConnectionError, websocket.WebSocketConnectionClosedException):
        return "dropped"
    if opcode == ABNF.OPCODE_CLOSE:
        return "closed"
    return "binary" if opcode == ABNF.OPCODE_BINARY else strict_json(data)["type"]


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_hostile_messages_get_replies_and_do_no_harm(bridge_server, count):
    """Each message gets a reply or a close frame, and another client is not disturbed."""
    before, seen = memory_bytes(bridge_server), Counter()
    hostile = JsonClient(bridge_server.url, skip_utf8_validation=True)
    with JsonClient(bridge_server.url) as witness:
        env = begin(witness)
        for number, message in enumerate(messages(seed=2, count=count)):
            kind = exchange(hostile, message)
            seen[kind] += 1
            if kind in ("closed", "dropped"):
                assert kind == "closed" or len(message.data) > 65_536
                hostile = JsonClient(bridge_server.url, skip_utf8_validation=True)
            if number % 50 == 0:
                assert_same_step(witness, env)
    hostile.socket.close(timeout=1)
    assert bridge_server.process.poll() is None
    assert bridge_server.log.count("\n") == 1
    assert seen["error"] > count / 2
    assert {"error", "reset_result", "step_result", "close_result", "hello_result"} <= set(seen)
    assert memory_bytes(bridge_server) - before < 20 * MEBIBYTE

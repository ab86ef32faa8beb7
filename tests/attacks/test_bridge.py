"""What was tried against the bridge and its client: stolen tokens, expensive requests, forged log lines."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest
import websocket

import hotlap
from bridge.json_clients import FULL_THROTTLE, JsonClient, JsonSession
from bridge_process import BridgeProcess
from hotlap.bridge.access import AccessRules
from hotlap.bridge.client import BridgeClient
from hotlap.errors import BridgeConnectionError, BridgeError, ConfigError, UnknownTrackError
from hotlap.tracks.registry import list_tracks

MEBIBYTE = 1 << 20
TOKEN = "a-token-nobody-else-knows"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\n[bridge] listening on ws://evil:1\u202e\u2028\x00\x9b31m"


@contextmanager
def http_server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends the same answer to every connection; gives its address and the requests it got."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5.0)


# --- the token ---


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("connect", [BridgeClient, hotlap.RemoteRacerEnv], ids=["client", "environment"])
def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(monkeypatch, status, connect):
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", TOKEN)
    with http_server(b"HTTP/1.1 401 Unauthorized\r\n\r\n") as (thief, stolen):
        redirect = f"HTTP/1.1 {status} Moved\r\nLocation: ws://{thief}/\r\nContent-Length: 0\r\n\r\n"
        with http_server(redirect.encode()) as (place, asked):
            with pytest.raises(BridgeConnectionError, match="redirects to another address, which is not followed"):
                connect(f"ws://{place}")
            assert len(asked) == 1
            assert TOKEN.encode() in asked[0]
    assert stolen == []


def test_a_redirect_without_a_target_is_refused_too():
    with (
        http_server(b"HTTP/1.1 302 Found\r\n\r\n") as (place, _),
        pytest.raises(BridgeConnectionError, match="redirects"),
    ):
        BridgeClient(f"ws://{place}")


def test_a_token_in_the_url_is_not_shown_in_an_error():
    for answer in (b"HTTP/1.1 401 Unauthorized\r\n\r\n", b"nonsense\r\n\r\n", b""):
        with http_server(answer) as (place, _), pytest.raises(BridgeConnectionError) as caught:
            BridgeClient(f"ws://user:{TOKEN}@{place}/path?token={TOKEN}#{TOKEN}")
        assert TOKEN not in str(caught.value)
        assert f"ws://{place}/path: " in str(caught.value)


def test_a_token_in_the_url_is_not_shown_when_the_bridge_does_not_fit(bridge_server):
    with pytest.raises(UnknownTrackError, match="'nowhere' is not known to the bridge at ws://127") as caught:
        hotlap.RemoteRacerEnv(f"{bridge_server.url}/?token={TOKEN}", track_id="nowhere")
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "a\r\nX-Injected: 1", "a\nb", "t\u00f6ken", "\x1b[2J", "a\x00b"])
def test_a_token_that_would_forge_a_header_is_refused_and_not_quoted(token):
    with http_server(b"") as (place, asked), pytest.raises(ConfigError, match="only visible ASCII") as caught:
        BridgeClient(f"ws://{place}", token=token)
    assert asked == []
    assert token not in str(caught.value)


def test_a_token_is_not_guessed_by_length_type_or_encoding():
    rules = AccessRules("0.0.0.0", 9876, TOKEN)
    for guess in ("", TOKEN[:-1], TOKEN + " x", TOKEN.upper(), "*", "%", "\udc80", "None", "null", "true"):
        assert rules.check("/", [], {"Authorization": f"Bearer {guess}"}) is not None
        assert rules.check(f"/?token={guess}", [], {}) is not None


# --- what a server sends to a client's terminal ---


def test_what_a_server_answers_is_escaped_in_the_clients_error():
    body = ESCAPES.encode()
    with http_server(b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) as (place, _):
        with pytest.raises(BridgeConnectionError) as caught:
            BridgeClient(f"ws://{place}")
        assert str(caught.value).isprintable()


# --- what a client sends to the server's log ---


def test_what_a_client_sends_is_escaped_before_it_is_logged(caplog, monkeypatch):
    ask = JsonSession()
    requests = [
        {"type": ESCAPES},
        {"type": "reset", "trackId": ESCAPES},
        {"type": "reset", "start": ESCAPES},
        {"type": "reset", "config": {ESCAPES: 1}},
        {"type": "reset", "config": {"episode": {"start": ESCAPES}}},
        {"type": "reset", "config": {"weights": {"progress": ESCAPES}}},
    ]
    with caplog.at_level(logging.INFO):
        for request in requests:
            assert ask(**request)["type"] == "error"
        monkeypatch.setattr(type(ask.session), "_greet", lambda self, request: int(ESCAPES))
        ask(type="hello")
    assert len(caplog.records) == len(requests) + 1
    for record in caplog.records:
        assert record.getMessage().isprintable()
        assert len(record.getMessage()) < 500


def test_a_hostile_origin_path_or_header_writes_no_line_of_its_own(bridge_server, tmp_path):
    with BridgeProcess(tmp_path / "log", "--verbose", HOTLAP_BRIDGE_TOKEN=TOKEN) as server:
        for name in ("Origin", "Authorization", "User-Agent"):
            with server.connect() as plain:
                request = f"GET /\x1b[2J HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{name}: "
                plain.sendall(request.encode() + b"http://e\x1b[2J\x07\x9b31m\r\nSec-WebSocket-Version: 13\r\n")
                plain.sendall(b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
                plain.recv(1000)
        with JsonClient(f"{server.url}/?token={TOKEN}") as client:
            client(type=ESCAPES)
            client(type="hello")
        log = server.log_path.read_bytes()
    assert all(line.decode("utf-8").isprintable() for line in log.splitlines())
    assert all(line.startswith(b"[bridge] ") for line in log.splitlines())
    assert log.count(b"listening on ws://") == log.count(b"listening on ws://127.0.0.1") + log.count(b"ws://evil")
    assert TOKEN.encode() not in log


# --- origins and hosts that two parsers read differently ---


@pytest.mark.parametrize("origin", ["http://evil@127.0.0.1:{port}", "http://evil.com\\@127.0.0.1:{port}"])
def test_an_origin_with_a_user_or_a_backslash_is_refused(bridge_server, origin):
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        JsonClient(bridge_server.url, origin=origin.format(port=bridge_server.port))
    assert caught.value.status_code == 403
    JsonClient(bridge_server.url, origin=f"http://127.0.0.1:{bridge_server.port}").socket.close()


@pytest.mark.parametrize("user", ["evil@", "evil.com\\@", "evil:secret@", "@"])
def test_a_page_is_not_served_for_a_host_with_a_user(user):
    rules = AccessRules("127.0.0.1", 9876, None)
    assert rules.check_page("/", [], {"Host": "127.0.0.1:9876"}) is None
    assert rules.check_page("/", [], {"Host": f"{user}127.0.0.1:9876"}) is not None


# --- requests that cost too much ---


def test_one_long_track_named_a_thousand_times_is_packed_once():
    ask = JsonSession()
    ask(type="reset", trackId="train-004")
    request = {"type": "reset", "trackId": ["train-004"] * 1000, "numEnvs": 1000}
    assert len(json.dumps(request)) < 20_000
    assert len(ask(**request)["observation"]) == 1000
    fleet = ask.session._simulation.fleet
    assert len(fleet.tracks) == len(fleet.scenario.ribbons.tracks) == 1
    assert len(fleet.scenario.ribbons.nodes) == fleet.tracks[0].nodes.num_nodes


def test_no_more_tracks_are_built_than_there_are_cars():
    ask = JsonSession()
    every = [entry.track_id for entry in list_tracks()]
    assert ask(type="reset", trackId=every, numEnvs=2)["type"] == "reset_result"
    fleet = ask.session._simulation.fleet
    assert [track.track_id for track in fleet.tracks] == every[:2]
    assert "is not known" in ask(type="reset", trackId=[*every, "nowhere"], numEnvs=2)["message"]


def test_a_client_that_asks_for_a_hundred_tracks_does_not_keep_another_waiting(compiled, tmp_path):
    tracks = [entry.track_id for entry in list_tracks()][:100]
    waits_s, is_done = [], threading.Event()
    with (
        BridgeProcess(tmp_path / "log") as server,  # a new one, which has built no track yet
        JsonClient(server.url) as good,
        JsonClient(server.url, timeout=50.0) as greedy,
    ):

        def ask_for_all() -> None:
            reply = greedy(type="reset", trackId=tracks, numEnvs=1024, observation="road")
            assert np.shape(reply["observation"]) == (1024, 58)
            assert greedy(type="step", action=[FULL_THROTTLE] * 1024)["type"] == "step_result"
            is_done.set()

        good(type="reset")
        thread = threading.Thread(target=ask_for_all)
        thread.start()
        while not is_done.is_set() and thread.is_alive():
            began_s = time.perf_counter()
            assert good(type="step", action=FULL_THROTTLE)["type"] == "step_result"
            waits_s.append(time.perf_counter() - began_s)
        thread.join(50.0)
    assert is_done.is_set()
    print(f"\n{len(waits_s)} steps while 100 tracks were built, the longest took {max(waits_s):.3f} s")
    assert len(waits_s) > 50
    assert max(waits_s) < 1.0


def reset_with_varying_tracks(client: JsonClient, num_resets: int, tracks: list[str], rng: np.random.Generator) -> None:
    for _ in range(num_resets):
        chosen = rng.choice(tracks, rng.integers(1, 24)).tolist()
        assert client(type="reset", trackId=chosen, numEnvs=16)["type"] == "reset_result"


@pytest.mark.parametrize(
    ("num_resets", "num_tracks"),
    [(1_000, 20), pytest.param(10_000, 128, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
def test_memory_is_bounded_over_resets_with_varying_tracks(bridge_server, tmp_path, num_resets, num_tracks):
    tracks, rng = [entry.track_id for entry in list_tracks()][:num_tracks], np.random.default_rng(0)
    with BridgeProcess(tmp_path / "log") as server, JsonClient(server.url) as client:
        process = psutil.Process(server.process.pid)
        reset_with_varying_tracks(client, 100, tracks, rng)
        before = process.memory_info().rss
        reset_with_varying_tracks(client, num_resets - 100, tracks, rng)
        grown = process.memory_info().rss - before
    assert grown < 50 * MEBIBYTE


@pytest.mark.parametrize("depth", [65, 1_000, 20_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused_on_every_python_and_the_connection_lives_on(bridge_server, depth, opening):
    with JsonClient(bridge_server.url) as client:
        for field in ("config", "action", "trackId", "extra"):
            for kind in ("reset", "step", "hello"):
                text = f'{{"type":"{kind}","{field}":{(opening * depth)[:60_000]}'
                assert "nested too deeply" in client.send_text(text)["message"]
        assert client(type="reset")["type"] == "reset_result"


def test_a_client_that_is_refused_can_neither_step_nor_learn_the_token(bridge_server, tmp_path):
    with BridgeProcess(tmp_path / "log", HOTLAP_BRIDGE_TOKEN=TOKEN) as server:
        for header in ([], ["Authorization: Bearer x"], [f"Authorization: Basic {TOKEN}"], [f"X-Token: {TOKEN}"]):
            with pytest.raises(websocket.WebSocketBadStatusException) as caught:
                JsonClient(server.url, header=header)
            assert TOKEN.encode() not in (caught.value.resp_body or b"")
        with JsonClient(server.url, header=[f"Authorization: Bearer {TOKEN}"]) as client:
            client(type="reset")
            assert client(type="step", action=FULL_THROTTLE)["type"] == "step_result"


def test_a_hostile_reply_is_an_error_of_the_client_and_never_a_crash(monkeypatch):
    from hotlap.bridge.client import read_step

    class Wire:
        def __init__(self, reply: bytes) -> None:
            self.reply = reply

        def send(self, *_: object) -> None: ...

        def recv_data(self) -> tuple[int, bytes]:
            return websocket.ABNF.OPCODE_TEXT, self.reply

        def settimeout(self, _: float) -> None: ...

        def getstatus(self) -> int:
            return 101

        def close(self, **_: object) -> None: ...

    for reply in (
        b"[" * 100_000,
        b'{"type":"step_result","info":' + b'{"a":' * 50_000,
        b'{"type":"step_result"}',
        b"\xff\xfe",
        json.dumps({"type": "error", "message": ESCAPES}).encode(),
    ):
        monkeypatch.setattr(websocket, "create_connection", lambda *_, reply=reply, **__: Wire(reply))
        with BridgeClient() as client, pytest.raises(BridgeError) as caught:
            client.ask(b"{}", read_step)
        assert str(caught.value).isprintable()
